import Glibc

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
