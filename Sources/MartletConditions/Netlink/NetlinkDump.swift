import Glibc
import MartletTransport

/// A request for all objects of a kind, and the progress of its response, which has several datagrams.
package struct NetlinkDump: Sendable {
    package enum Query: Hashable, Sendable, CaseIterable {
        case links
        case addresses
        case routes4
        case routes6
    }

    package enum Progress: Hashable, Sendable {
        case more
        /// The response is complete. It may be inconsistent if something changed in the meantime.
        case done(isInterrupted: Bool)
        /// The kernel rejected the request, with this errno.
        case failed(Int32)
    }

    private let query: Query
    private let sequence: UInt32
    private var isInterrupted = false

    /// Creates a request.
    /// - Parameter sequence: The number that distinguishes its response from others on the same socket.
    package init(_ query: Query, sequence: UInt32) { (self.query, self.sequence) = (query, sequence) }

    /// The type of the messages in the response, and the family of their objects if only one is requested.
    private var answer: (type: UInt16, family: UInt8?) {
        switch query {
        case .links: (NetlinkMessage.Kind.newLink, nil)
        case .addresses: (NetlinkMessage.Kind.newAddress, nil)
        case .routes4: (NetlinkMessage.Kind.newRoute, IPAddress.Family.ipv4.number)
        case .routes6: (NetlinkMessage.Kind.newRoute, IPAddress.Family.ipv6.number)
        }
    }

    var request: [UInt8] {
        let body: [UInt8] =
            switch query {
            // ifinfomsg: family, padding, type, index, flags, change. The attribute IFLA_EXT_MASK omits the statistics
            // (RTEXT_FILTER_SKIP_STATS), a fifth of the response.
            case .links:
                [UInt8](repeating: 0, count: 16) + NetlinkAttribute.bytes(29, NetlinkNumber.bytes(of: 8 as UInt32))
            // ifaddrmsg: family, prefix length, flags, scope, index.
            case .addresses: [UInt8](repeating: 0, count: 8)
            // rtmsg: family, lengths of destination and source, tos, table, protocol, scope, type, flags.
            case .routes4, .routes6: [answer.family ?? 0] + [UInt8](repeating: 0, count: 11)
            }
        return NetlinkMessage.request(answer.type, isDump: true, sequence: sequence, body)
    }

    /// Adds the objects of a datagram to a table. Messages of other responses, and messages after the end, are ignored.
    /// - Throws: The error of a malformed message; the response is then unusable.
    package mutating func receive(_ datagram: [UInt8], into table: inout NetworkTable) throws(NetlinkError) -> Progress
    {
        let answer = answer
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
            // A kernel without IPv6 responds to a request for IPv6 routes with the routes of all families.
            case answer.type where answer.family == nil || answer.family == message.payload.first:
                try table.add(message)
            default: break
            }
        }
        return .more
    }
}

/// The rule that decides whether a notification is a reason to query the kernel. The contents of notifications are not
/// combined into a state: when a link goes down, its IPv4 routes are removed without a message.
package enum NetlinkEventRule {
    /// Whether a path may have changed. A malformed datagram counts as a change.
    package static func matters(_ datagram: ArraySlice<UInt8>) -> Bool {
        do throws(NetlinkError) {
            for message in try NetlinkMessage.messages(in: datagram) {
                switch message.type {
                case NetlinkMessage.Kind.newLink:
                    // Wireless drivers report every scan.
                    if !(try LinkRecord(message.payload).isWirelessEvent) { return true }
                case NetlinkMessage.Kind.deletedLink, NetlinkMessage.Kind.newAddress,
                    NetlinkMessage.Kind.deletedAddress, NetlinkMessage.Kind.overrun, NetlinkMessage.Kind.error:
                    return true
                case NetlinkMessage.Kind.newRoute, NetlinkMessage.Kind.deletedRoute:
                    // BGP routers change thousands of other routes a minute.
                    if RouteRecord.concernsDefault(message.payload) { return true }
                default: break
                }
            }
            return false
        } catch { return true }
    }
}

/// The kernel's response to a request for the route to an address.
package enum RouteReply: Hashable, Sendable {
    /// A route. A route to this machine itself uses the loopback link.
    case route(RouteRecord)
    case unreachable
    /// The kernel rejected the request, with this errno.
    case rejected(Int32)

    /// Returns the bytes of a request for the current route to an address.
    static func request(to address: IPAddress, sequence: UInt32) -> [UInt8] {
        // rtmsg: family, lengths of destination and source, tos, table, protocol, scope, type, flags.
        let body = [address.family.number, UInt8(address.bytes.count * 8)] + [UInt8](repeating: 0, count: 10)
        return NetlinkMessage.request(
            NetlinkMessage.Kind.newRoute, isDump: false, sequence: sequence,
            body + NetlinkAttribute.bytes(1, address.bytes))
    }

    /// Reads a datagram; `nil` if it does not contain the response.
    package init?(_ datagram: [UInt8], sequence: UInt32) throws(NetlinkError) {
        for message in try NetlinkMessage.messages(in: datagram[...]) where message.sequence == sequence {
            switch message.type {
            case NetlinkMessage.Kind.newRoute:
                guard let route = try RouteRecord(message.payload) else { continue }
                // Type 1 leads to another machine, type 2 to this machine; other types are not usable routes.
                self = 1...2 ~= route.type ? .route(route) : .unreachable
                return
            case NetlinkMessage.Kind.error:
                switch try message.errorCode() {
                case 0: continue
                case ENETUNREACH, EHOSTUNREACH, EACCES, EINVAL: self = .unreachable
                case let code: self = .rejected(code)
                }
                return
            default: continue
            }
        }
        return nil
    }
}
