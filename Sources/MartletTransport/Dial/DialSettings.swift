import CLinux
import Glibc

/// How connections are opened: everything but where to.
package struct DialSettings: Sendable {
    /// Looks names up.
    package var resolver: Identified<any Resolver>
    /// Addresses that are used in place of a look-up, by host and port, as curl's `--resolve`.
    package var overrides: [Endpoint: [SocketAddress]]
    /// Other places to connect to than the one asked for, first match first, as curl's `--connect-to`.
    package var redirections: [ConnectRedirection]
    /// A unix domain socket that takes the place of the network.
    package var unixSocketPath: String?
    /// How the addresses of a name are raced.
    package var race: ConnectRaceSettings
    /// What is set on each socket.
    package var socket: SocketOptions
    /// What TLS demands and offers.
    package var tls: TLSSettings
    /// Takes the place of all of the above, where there is one.
    package var connector: Identified<(any StreamConnector)?>
    /// Convinces proxies. No part of what keeps connections apart: their credentials are.
    package var proxyAuthenticator: any ProxyAuthenticator = BasicProxyAuthenticator()
    /// What `User-Agent` says to proxies that are asked for a tunnel; `nil` sends none. No part of what keeps
    /// connections apart.
    package var proxyUserAgent: String?

    /// Settings.
    package init(
        resolver: Identified<any Resolver> = .systemResolver, overrides: [Endpoint: [SocketAddress]] = [:],
        redirections: [ConnectRedirection] = [], unixSocketPath: String? = nil,
        race: ConnectRaceSettings = ConnectRaceSettings(), socket: SocketOptions = SocketOptions(),
        tls: TLSSettings = TLSSettings(), connector: Identified<(any StreamConnector)?> = .networkConnector
    ) {
        self.resolver = resolver
        self.overrides = overrides
        self.redirections = redirections
        self.unixSocketPath = unixSocketPath
        self.race = race
        self.socket = socket
        self.tls = tls
        self.connector = connector
    }

    /// Whether proxies are passed by: a socket's path, or a mock, is where connections lead.
    package var ignoresProxies: Bool { connector.value != nil || unixSocketPath != nil }

    /// Where a connection to a host and port really leads: the first redirection that applies.
    package func redirected(host: String, port: Int) -> (host: String, port: Int) {
        guard let redirection = redirections.first(where: { $0.applies(to: host, port: port) }) else {
            return (host, port)
        }
        return (redirection.toHost ?? host, redirection.toPort ?? port)
    }

    /// Whether connections opened by these settings and by others may be exchanged.
    package func isEqual(to other: DialSettings) -> Bool {
        overrides == other.overrides && redirections == other.redirections
            && unixSocketPath == other.unixSocketPath
            && race == other.race && socket == other.socket && tls == other.tls
            && resolver.isSame(as: other.resolver) && connector.isSame(as: other.connector)
    }
}

/// A value that cannot be compared, with an identity that its copies share.
///
/// Each assignment of a new value makes a new identity, unless the value is an object: then the object is the identity.
package struct Identified<Value: Sendable>: Sendable {
    private final class Identity: Sendable {}

    /// The value.
    package let value: Value
    private let identity: ObjectIdentifier
    /// Keeps ``identity`` from being given to another object.
    private let object: (any Sendable)?

    /// Gives a value an identity.
    package init(_ value: Value) {
        self.value = value
        if type(of: value as any Sendable) is AnyClass {
            object = nil
            identity = ObjectIdentifier(value as AnyObject)
        } else {
            let object = Identity()
            self.object = object
            identity = ObjectIdentifier(object)
        }
    }

    /// Whether both hold the same object, or copies of one assigned value.
    package func isSame(as other: Identified) -> Bool { identity == other.identity }
}

extension Identified<any Resolver> {
    /// The resolver of the system, which is the same for all settings.
    package static let systemResolver = Identified(SystemResolver())
}

extension Identified<(any StreamConnector)?> {
    /// No connector: connections lead to the network.
    package static let networkConnector = Identified(nil)
}

/// A host and a port, as far as overriding addresses goes.
public struct Endpoint: Hashable, Sendable, Codable {
    /// An ASCII host name in lower case, an address literal without brackets, or `*` for any host.
    public var host: String
    /// 1–65535.
    public var port: Int

    /// A host and a port.
    public init(host: String, port: Int) {
        self.host = host
        self.port = port
    }
}

/// "Connect there instead": the names in the request and in TLS stay what they are.
public struct ConnectRedirection: Hashable, Sendable, Codable {
    /// The host it applies to; `nil` for any.
    public var fromHost: String?
    /// The port it applies to; `nil` for any.
    public var fromPort: Int?
    /// The host to connect to; `nil` for the same.
    public var toHost: String?
    /// The port to connect to; `nil` for the same.
    public var toPort: Int?

    /// A redirection.
    public init(fromHost: String? = nil, fromPort: Int? = nil, toHost: String? = nil, toPort: Int? = nil) {
        self.fromHost = fromHost
        self.fromPort = fromPort
        self.toHost = toHost
        self.toPort = toPort
    }

    /// Whether it applies to a host, in lower case, and a port.
    package func applies(to host: String, port: Int) -> Bool {
        (fromHost == nil || fromHost == host) && (fromPort == nil || fromPort == port)
    }
}

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

/// What kind of traffic packets are marked as, by a code point of Differentiated Services (RFC 2474), for networks that heed
/// it (`IP_TOS`, `IPV6_TCLASS`).
///
/// Many networks ignore or erase the mark. It holds for what is sent from this machine; what a server sends, it marks itself.
public struct ServiceClass: Hashable, Sendable {
    /// The code point, 0–63.
    public let codePoint: Int32

    private init(_ codePoint: Int32) { self.codePoint = codePoint }

    /// As any other traffic: the default of the internet.
    public static let bestEffort = ServiceClass(0)
    /// What nobody waits for, to be sent when there is room: lower effort (LE, RFC 8622).
    public static let background = ServiceClass(1)
    /// What somebody waits for: low-latency data (AF21, RFC 4594 §4.7).
    public static let responsiveData = ServiceClass(18)
    /// Streamed video (AF31, RFC 4594 §4.5).
    public static let video = ServiceClass(26)
    /// Speech (EF, RFC 3246).
    public static let voice = ServiceClass(46)

    /// A code point of one's own; `nil` unless it is 0–63.
    public static func codePoint(_ number: Int) -> ServiceClass? {
        (0...63).contains(number) ? ServiceClass(Int32(number)) : nil
    }
}

extension ServiceClass: Codable {
    /// Reads a code point.
    /// - Throws: `DecodingError.dataCorrupted` unless it is 0–63.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let number = try container.decode(Int.self)
        guard let found = ServiceClass.codePoint(number) else {
            throw DecodingError.dataCorruptedError(
                in: container, debugDescription: "\(number) is no code point: they are 0–63")
        }
        self = found
    }

    /// Writes the code point.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(codePoint)
    }
}
