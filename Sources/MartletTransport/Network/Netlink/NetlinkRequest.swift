/// Writes what the kernel is asked.
package enum NetlinkRequest {
    private static let request: UInt16 = 0x1
    private static let dump: UInt16 = 0x300
    /// What a link's statistics are left out by: they are a fifth of what is said of it.
    private static let skipStatistics: UInt32 = 1 << 3

    /// Asks for all links.
    package static func links(sequence: UInt32) -> [UInt8] {
        // ifinfomsg: family, padding, type, index, flags, change.
        let body = [UInt8](repeating: 0, count: 16)
        let mask = attribute(29, NetlinkNumber.bytes(of: skipStatistics))
        return message(NetlinkMessage.Kind.getLink, request | dump, sequence, body + mask)
    }

    /// Asks for all addresses of all links.
    package static func addresses(sequence: UInt32) -> [UInt8] {
        // ifaddrmsg: family, prefix length, flags, scope, index.
        message(
            NetlinkMessage.Kind.getAddress, request | dump, sequence, [UInt8](repeating: 0, count: 8))
    }

    /// Asks for all routes of a family.
    package static func routes(_ family: IPAddress.Family, sequence: UInt32) -> [UInt8] {
        message(
            NetlinkMessage.Kind.getRoute, request | dump, sequence,
            [family.number] + [UInt8](repeating: 0, count: 11))
    }

    /// Asks which way an address is reached now.
    package static func route(to address: IPAddress, sequence: UInt32) -> [UInt8] {
        // rtmsg: family, lengths of destination and source, tos, table, protocol, scope, type, flags.
        let body = [address.family.number, UInt8(address.bytes.count * 8)] + [UInt8](repeating: 0, count: 10)
        return message(
            NetlinkMessage.Kind.getRoute, request, sequence, body + attribute(1, address.bytes))
    }

    private static func attribute(_ type: UInt16, _ value: [UInt8]) -> [UInt8] {
        let bytes =
            NetlinkNumber.bytes(of: UInt16(clamping: value.count + 4)) + NetlinkNumber.bytes(of: type) + value
        return bytes + [UInt8](repeating: 0, count: NetlinkMessage.aligned(bytes.count) - bytes.count)
    }

    private static func message(
        _ type: UInt16, _ flags: UInt16, _ sequence: UInt32, _ payload: [UInt8]
    ) -> [UInt8] {
        let count = NetlinkMessage.headerCount + payload.count
        return NetlinkNumber.bytes(of: UInt32(clamping: count)) + NetlinkNumber.bytes(of: type)
            + NetlinkNumber.bytes(of: flags) + NetlinkNumber.bytes(of: sequence)
            + NetlinkNumber.bytes(of: 0 as UInt32) + payload
    }
}
