/// The bytes of an IPv6 address as groups of digits, none left out.
package enum IPv6Groups {
    /// Such as `2001:db8:0:0:0:0:0:1`, of bytes in the network's order.
    package static func text(of bytes: [UInt8]) -> String {
        var groups: [String] = []
        for index in stride(from: 0, to: bytes.count - 1, by: 2) {
            let group = UInt16(bytes[index]) << 8 | UInt16(bytes[index + 1])
            groups.append(String(group, radix: 16))
        }
        return groups.joined(separator: ":")
    }
}
