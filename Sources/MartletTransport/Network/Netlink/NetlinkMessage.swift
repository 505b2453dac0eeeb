/// One message of a netlink datagram (RFC 3549 §2.2): its header, and the bytes behind it.
package struct NetlinkMessage: Hashable, Sendable {
    /// What it is: ``Kind`` has those that are understood.
    package var type: UInt16
    /// `NLM_F_…`.
    package var flags: UInt16
    /// The number of the request it answers; 0 for news.
    package var sequence: UInt32
    /// What the header's length counts, without the header.
    package var payload: ArraySlice<UInt8>

    /// The types of messages.
    package enum Kind {
        /// Nothing.
        package static let noOperation: UInt16 = 1
        /// An error, or with the number 0 an acknowledgement.
        package static let error: UInt16 = 2
        /// The end of an answer of several messages.
        package static let done: UInt16 = 3
        /// Data was lost.
        package static let overrun: UInt16 = 4
        /// A link that is there, or has changed.
        package static let newLink: UInt16 = 16
        /// A link that is gone.
        package static let deletedLink: UInt16 = 17
        /// Asks for links.
        package static let getLink: UInt16 = 18
        /// An address that is there.
        package static let newAddress: UInt16 = 20
        /// An address that is gone.
        package static let deletedAddress: UInt16 = 21
        /// Asks for addresses.
        package static let getAddress: UInt16 = 22
        /// A route that is there.
        package static let newRoute: UInt16 = 24
        /// A route that is gone.
        package static let deletedRoute: UInt16 = 25
        /// Asks for routes.
        package static let getRoute: UInt16 = 26
    }

    /// The flag of an answer that was not taken of one state: something changed meanwhile (`NLM_F_DUMP_INTR`).
    package static let interrupted: UInt16 = 0x10
    /// The length of the header.
    static let headerCount = 16

    /// The messages of a datagram, in order.
    ///
    /// - Parameter datagram: As it was received, whole; its first byte has the index 0 where faults are to point right.
    /// - Throws: What is wrong with a header. Nothing that a length says is taken for granted.
    package static func messages(in datagram: ArraySlice<UInt8>) throws(NetlinkFault) -> [NetlinkMessage] {
        var messages: [NetlinkMessage] = []
        var rest = datagram
        while !rest.isEmpty {
            let length: UInt32 = try NetlinkNumber.read(from: rest, at: 0, "nlmsghdr.length")
            guard let count = Int(exactly: length), count >= headerCount, count <= rest.count else {
                throw NetlinkFault("nlmsghdr.length", at: rest.startIndex)
            }
            let message = rest.prefix(count)
            messages.append(
                NetlinkMessage(
                    type: try NetlinkNumber.read(from: message, at: 4, "nlmsghdr.type"),
                    flags: try NetlinkNumber.read(from: message, at: 6, "nlmsghdr.flags"),
                    sequence: try NetlinkNumber.read(from: message, at: 8, "nlmsghdr.sequence"),
                    payload: message.dropFirst(headerCount)))
            rest = rest.dropFirst(NetlinkMessage.aligned(count))
        }
        return messages
    }

    /// The next multiple of four: where the next message, or attribute, begins.
    static func aligned(_ count: Int) -> Int { (count + 3) & ~3 }

    /// The errno of an error, or of the end of an answer; 0 for none.
    /// - Throws: Where there are too few bytes for a number.
    package func errorCode() throws(NetlinkFault) -> Int32 {
        // Kernels before 2.6.27 end an answer without a number.
        if type == Kind.done, payload.isEmpty { return 0 }
        let bits: UInt32 = try NetlinkNumber.read(from: payload, at: 0, "nlmsgerr.error")
        // Negative, but for what makes no sense: the smallest number has no positive one.
        let code = Int32(bitPattern: bits)
        return code == .min ? .max : abs(code)
    }
}
