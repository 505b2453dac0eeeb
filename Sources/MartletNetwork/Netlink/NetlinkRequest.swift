package import MartletTransport
import Glibc

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
        message(NetlinkMessage.Kind.getAddress, request | dump, sequence, [UInt8](repeating: 0, count: 8))
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
        return message(NetlinkMessage.Kind.getRoute, request, sequence, body + attribute(1, address.bytes))
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
            default: if belongs(message) { try table.add(message) }
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

/// Whether a datagram that came unasked is a reason to ask again.
///
/// News only say that something changed. What they say is not put together to a state: a link that goes down takes its
/// default route of IPv4 along without a word about the route.
package enum NetlinkNewsRule {
    /// Whether a path may have changed. What cannot be read may be anything.
    package static func matters(_ datagram: ArraySlice<UInt8>) -> Bool {
        do throws(NetlinkFault) {
            for message in try NetlinkMessage.messages(in: datagram) {
                switch message.type {
                case NetlinkMessage.Kind.newLink:
                    // Wireless drivers tell of every scan.
                    if !(try LinkRecord(message.payload).isWirelessNews) { return true }
                case NetlinkMessage.Kind.deletedLink, NetlinkMessage.Kind.newAddress,
                    NetlinkMessage.Kind.deletedAddress, NetlinkMessage.Kind.overrun,
                    NetlinkMessage.Kind.error:
                    return true
                case NetlinkMessage.Kind.newRoute, NetlinkMessage.Kind.deletedRoute:
                    // Routers that speak BGP change thousands of others a minute.
                    if RouteRecord.concernsDefault(message.payload) { return true }
                default: break
                }
            }
            return false
        } catch {
            return true
        }
    }
}

/// What the kernel says when it is asked which way an address is reached.
package enum RouteAnswer: Hashable, Sendable {
    /// By this route; one to this machine itself leads over the loopback link.
    case route(RouteRecord)
    /// By none.
    case unreachable
    /// It does not say, with this errno.
    case refused(Int32)

    /// Reads a datagram; `nil` where it does not hold the answer.
    package init?(_ datagram: [UInt8], sequence: UInt32) throws(NetlinkFault) {
        for message in try NetlinkMessage.messages(in: datagram[...]) where message.sequence == sequence {
            switch message.type {
            case NetlinkMessage.Kind.newRoute:
                guard let route = try RouteRecord(message.payload) else { continue }
                // 1 leads somewhere, 2 to this machine; the rest are ways of not getting there.
                self = route.type == 1 || route.type == 2 ? .route(route) : .unreachable
                return
            case NetlinkMessage.Kind.error:
                switch try message.errorCode() {
                case 0: continue
                case ENETUNREACH, EHOSTUNREACH, EACCES, EINVAL: self = .unreachable
                case let code: self = .refused(code)
                }
                return
            default: continue
            }
        }
        return nil
    }
}
