/// An IPv4 address out of a host (WHATWG URL Standard, IPv4 parser).
///
/// Up to four numbers in decimal, octal (`0…`) or hexadecimal (`0x…`); the last fills the bytes that remain.
/// Every host that ends in a number is an address or an error, so that no resolver reads it otherwise.
struct IPv4Literal: CustomStringConvertible {
    private let value: UInt32

    /// The address a host is, nil when it does not end in a number.
    init?(host: String, at position: Int) throws(URLFault) {
        var parts = host.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        if parts.count > 1, parts.last?.isEmpty == true { parts.removeLast() }
        guard let last = parts.last, IPv4Literal.looksLikeNumber(last) else { return nil }
        let fault = URLFault(
            .invalidIPv4Address, at: position, "a host that ends in a number must be an IPv4 address")
        guard parts.count <= 4 else { throw fault }
        var value: UInt64 = 0
        for (index, part) in parts.enumerated() {
            guard let number = IPv4Literal.number(part) else { throw fault }
            let isLast = index == parts.count - 1
            // The last number fills the bytes the others left.
            let byteCount = isLast ? 5 - parts.count : 1
            guard number < 1 << UInt64(8 * byteCount) else { throw fault }
            value = value << UInt64(8 * byteCount) | number
        }
        self.value = UInt32(truncatingIfNeeded: value)
    }

    /// The address from its 32 bits, most significant first.
    init(bits: UInt32) {
        value = bits
    }

    /// The dotted quad.
    var description: String {
        "\(value >> 24).\(value >> 16 & 255).\(value >> 8 & 255).\(value & 255)"
    }

    /// Whether a last label makes the host an address: digits only, or hexadecimal behind `0x`.
    private static func looksLikeNumber(_ part: Substring.UTF8View) -> Bool {
        guard !part.isEmpty else { return false }
        return part.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
            || part.starts(with: "0x".utf8)
                && part.dropFirst(2).allSatisfy { PercentEncoding.hexValue($0) != nil }
    }

    /// One number, nil when it is malformed; too large ones are clamped above every limit.
    private static func number(_ part: Substring.UTF8View) -> UInt64? {
        guard !part.isEmpty else { return nil }
        var digits = part
        var radix: UInt64 = 10
        if part.starts(with: "0x".utf8) {
            radix = 16
            digits = part.dropFirst(2)
        } else if part.count > 1, part.first == UInt8(ascii: "0") {
            radix = 8
            digits = part.dropFirst()
        }
        var value: UInt64 = 0
        for byte in digits {
            guard let digit = PercentEncoding.hexValue(byte), UInt64(digit) < radix else { return nil }
            value = min(value * radix + UInt64(digit), 1 << 40)
        }
        return value
    }
}
