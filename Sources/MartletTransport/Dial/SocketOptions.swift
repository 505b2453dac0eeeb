import CLinux
import Glibc

/// What is set on every TCP socket before it connects.
public struct SocketOptions: Hashable, Sendable, Codable {
    /// Whether small writes go out at once (`TCP_NODELAY`); `true` by default, as in every HTTP client.
    public var sendsSmallWritesAtOnce = true

    /// After how much silence the system probes whether the peer is still there (`SO_KEEPALIVE`, `TCP_KEEPIDLE`).
    ///
    /// Whole seconds, 1–32,767: others become the nearest of these; `nil` for no probes; 60 s by default (Go 15 s, curl 60 s).
    public var keepAliveInterval: Duration? = .seconds(60)

    /// The local address to connect from, as an IPv4 or IPv6 literal; `nil`, the default, lets the system choose.
    public var localAddress: String?

    /// The network interface to use, such as `eth0` (`SO_BINDTODEVICE`); `nil`, the default, for any.
    public var interfaceName: String?

    /// How the network is asked to treat the packets; `nil`, the default, for as any others.
    public var serviceClass: ServiceClass?

    /// The default options.
    public init() {}

    /// Applies the options to a socket that is not yet connected.
    func apply(to socket: borrowing Descriptor, family: SocketAddress.Family) throws(SystemError) {
        guard family != .unix else { return }
        if sendsSmallWritesAtOnce { try socket.setOption(Int32(IPPROTO_TCP), TCP_NODELAY, 1) }
        if let keepAliveInterval {
            // Linux takes no more (MAX_TCP_KEEPIDLE), and refuses the socket otherwise.
            let seconds = Int32(min(max(1, keepAliveInterval.wholeSeconds), 32_767))
            try socket.setOption(SOL_SOCKET, SO_KEEPALIVE, 1)
            try socket.setOption(Int32(IPPROTO_TCP), TCP_KEEPIDLE, seconds)
            try socket.setOption(Int32(IPPROTO_TCP), TCP_KEEPINTVL, seconds)
        }
        if let serviceClass {
            // The two bits below are for congestion notification, which is the system's.
            switch family {
            case .ipv4: try socket.setOption(Int32(IPPROTO_IP), IP_TOS, serviceClass.codePoint << 2)
            case .ipv6: try socket.setOption(Int32(IPPROTO_IPV6), IPV6_TCLASS, serviceClass.codePoint << 2)
            case .unix: break
            }
        }
        if let interfaceName {
            var name = Array(interfaceName.utf8)
            guard
                unsafe setsockopt(socket.number, SOL_SOCKET, SO_BINDTODEVICE, &name, socklen_t(name.count))
                    == 0
            else {
                throw SystemError(operation: "setsockopt(SO_BINDTODEVICE, \(interfaceName))", code: errno)
            }
        }
        if let localAddress {
            guard let address = SocketAddress(literal: localAddress, port: 0) else {
                throw SystemError(operation: "bind(\(localAddress))", code: EINVAL)
            }
            guard address.family == family else {
                throw SystemError(operation: "bind(\(localAddress))", code: EAFNOSUPPORT)
            }
            try socket.bind(to: address)
        }
    }
}
