/// Where and how a test origin listens.
public struct OriginOptions: Sendable {
    /// Where an origin can be reached.
    public enum Binding: Sendable, Hashable {
        /// `127.0.0.1`; port 0 lets the kernel choose a free one.
        case ipv4(port: Int)
        /// `[::1]`; port 0 lets the kernel choose a free one.
        case ipv6(port: Int)
        /// A unix domain socket at a path of at most 107 bytes, where no file may be; it is removed at the
        /// end. A leading `@` names one in Linux's abstract space.
        case unix(path: String)
        /// An address literal of this machine, as far as it shall be reached from elsewhere.
        case address(String, port: Int)

        /// `127.0.0.1` with a port that the kernel chooses.
        public static let loopback = Binding.ipv4(port: 0)
    }

    /// Where it listens; by default on `127.0.0.1` with a port that the kernel chooses.
    public var binding = Binding.loopback
    /// How it speaks TLS; `nil`, the default: not at all.
    public var tls: OriginTLS?
    /// What it puts up with.
    public var limits = OriginLimits()

    /// Options; by default a plain origin on `127.0.0.1`.
    public init(binding: Binding = .loopback, tls: OriginTLS? = nil) {
        self.binding = binding
        self.tls = tls
    }

    /// A plain origin on `127.0.0.1`.
    public static let plain = OriginOptions()

    /// An origin over TLS on `127.0.0.1`.
    public static func tls(_ settings: OriginTLS = .trusted) -> OriginOptions {
        OriginOptions(tls: settings)
    }

    /// A plain origin on a unix domain socket.
    public static func unix(path: String) -> OriginOptions {
        OriginOptions(binding: .unix(path: path))
    }
}
