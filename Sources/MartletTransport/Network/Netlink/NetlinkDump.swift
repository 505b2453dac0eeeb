/// One question to the kernel that it answers in several datagrams, and how far the answer has come.
package struct NetlinkDump: Sendable {
    /// What can be asked for.
    package enum Question: Hashable, Sendable, CaseIterable {
        /// All links.
        case links
        /// All addresses.
        case addresses
        /// All routes of IPv4.
        case routes4
        /// All routes of IPv6.
        case routes6
    }

    /// How far it has come.
    package enum Progress: Hashable, Sendable {
        /// There is more to be received.
        case more
        /// All is there; whether something changed while it was put together, so that it may not fit together.
        case done(isInterrupted: Bool)
        /// The kernel refused, with this errno.
        case failed(Int32)
    }

    private let question: Question
    private let sequence: UInt32
    private var isInterrupted = false

    /// A question.
    /// - Parameter sequence: Tells its answer from others on the same socket.
    package init(_ question: Question, sequence: UInt32) {
        self.question = question
        self.sequence = sequence
    }

    /// What is sent.
    package var request: [UInt8] {
        switch question {
        case .links: NetlinkRequest.links(sequence: sequence)
        case .addresses: NetlinkRequest.addresses(sequence: sequence)
        case .routes4: NetlinkRequest.routes(.ipv4, sequence: sequence)
        case .routes6: NetlinkRequest.routes(.ipv6, sequence: sequence)
        }
    }

    /// Takes a datagram, and puts what it says into a table.
    ///
    /// Messages that answer other questions are passed over. What follows the end is not looked at.
    /// - Throws: What is malformed; the answer is of no use then.
    package mutating func receive(
        _ datagram: [UInt8], into table: inout NetworkTable
    ) throws(NetlinkFault) -> Progress {
        for message in try NetlinkMessage.messages(in: datagram[...]) where message.sequence == sequence {
            if message.flags & NetlinkMessage.interrupted != 0 { isInterrupted = true }
            switch message.type {
            case NetlinkMessage.Kind.done:
                let code = try message.errorCode()
                return code == 0 ? .done(isInterrupted: isInterrupted) : .failed(code)
            case NetlinkMessage.Kind.error:
                let code = try message.errorCode()
                if code != 0 { return .failed(code) }
            case NetlinkMessage.Kind.overrun: isInterrupted = true
            default:
                if belongs(message) { try table.add(message) }
            }
        }
        return .more
    }

    /// A kernel without IPv6 answers for its routes with those of all families.
    private func belongs(_ message: NetlinkMessage) -> Bool {
        switch question {
        case .links: message.type == NetlinkMessage.Kind.newLink
        case .addresses: message.type == NetlinkMessage.Kind.newAddress
        case .routes4:
            message.type == NetlinkMessage.Kind.newRoute
                && message.payload.first == IPAddress.Family.ipv4.number
        case .routes6:
            message.type == NetlinkMessage.Kind.newRoute
                && message.payload.first == IPAddress.Family.ipv6.number
        }
    }
}
