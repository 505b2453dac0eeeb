/// Bytes that are no netlink message, or none of the kind they say they are.
package struct NetlinkFault: Error, Hashable, Sendable, CustomStringConvertible {
    /// What could not be read, such as `nlmsghdr.length`.
    package let field: String
    /// The byte of the datagram it was noticed at, from 0.
    package let offset: Int

    /// A fault of a field.
    package init(_ field: String, at offset: Int) {
        self.field = field
        self.offset = offset
    }

    /// The field and its place.
    package var description: String { "netlink: \(field) is malformed at byte \(offset)" }
}
