import CMartletLinux
import Glibc

/// The settings of a dialer: all but the destination.
package struct DialSettings: Sendable {
    package var resolver: Identified<any Resolver>
    /// Addresses that replace a look-up, by host and port, like curl's `--resolve`.
    package var overrides: [Endpoint: [SocketAddress]]
    /// Destinations to connect to instead of the requested one, like curl's `--connect-to`. The first match applies.
    package var redirections: [ConnectOverride]
    /// A unix domain socket that replaces the network.
    package var unixSocketPath: String?
    /// The order and timing of the attempts to connect to the addresses of a name.
    package var race: HappyEyeballsOptions
    package var socket: SocketOptions
    package var tls: TLSSettings
    /// Replaces all of the settings above, if set.
    package var connector: Identified<(any StreamConnector)?>
    /// Makes credentials for proxies; `nil` sends none. Ignored by ``isEqual(to:)``.
    package var proxyAuthenticator: (any ProxyAuthenticator)?
    /// The value of `User-Agent` in requests for tunnels; `nil` sends none. Ignored by ``isEqual(to:)``.
    package var proxyUserAgent: String?

    package init(
        resolver: Identified<any Resolver> = .systemResolver, overrides: [Endpoint: [SocketAddress]] = [:],
        redirections: [ConnectOverride] = [], unixSocketPath: String? = nil,
        race: HappyEyeballsOptions = HappyEyeballsOptions(), socket: SocketOptions = SocketOptions(),
        tls: TLSSettings = TLSSettings(), connector: Identified<(any StreamConnector)?> = .networkConnector
    ) {
        (self.resolver, self.overrides, self.redirections) = (resolver, overrides, redirections)
        (self.unixSocketPath, self.race, self.socket) = (unixSocketPath, race, socket)
        (self.tls, self.connector) = (tls, connector)
    }

    /// Whether proxies are ignored, because a unix domain socket or a mock replaces the network.
    package var ignoresProxies: Bool { connector.value != nil || unixSocketPath != nil }

    /// The host and port to connect to: those of the first redirection that applies, else the requested ones.
    package func redirected(host: String, port: Int) -> (host: String, port: Int) {
        let redirection = redirections.first { $0.applies(to: host, port: port) }
        return (redirection?.toHost ?? host, redirection?.toPort ?? port)
    }

    /// The addresses that replace a look-up of a host after redirections; `nil` if the host must be looked up.
    package func overriddenAddresses(host: String, port: Int) -> [SocketAddress]? {
        overrides[Endpoint(host: host, port: port)] ?? overrides[Endpoint(host: "*", port: port)]
    }

    /// Whether connections opened with these settings and with others are interchangeable.
    package func isEqual(to other: DialSettings) -> Bool {
        overrides == other.overrides && redirections == other.redirections && unixSocketPath == other.unixSocketPath
            && race == other.race && socket == other.socket && tls == other.tls && resolver == other.resolver
            && connector == other.connector
    }
}

/// A value that cannot be compared, such as a closure, with an identity that its copies share. Each new value gets a
/// new identity, unless it is an object: then the object is the identity.
package struct Identified<Value: Sendable>: Hashable, Sendable {
    private final class Identity: Sendable {}

    package let value: Value
    private let identity: ObjectIdentifier
    /// Retained so that no other object can get the same ``identity``.
    private let object: Identity?

    /// Wraps an object or a value. For a closure use ``init(closure:)``.
    package init(_ value: Value) {
        let object = type(of: value as any Sendable) is AnyClass ? nil : Identity()
        (self.value, self.object) = (value, object)
        identity = object.map { ObjectIdentifier($0) } ?? ObjectIdentifier(value as AnyObject)
    }

    /// Wraps a closure, for which `type(of:)` in ``init(_:)`` would crash in optimized code.
    package init(closure value: Value) {
        self.value = value
        let object = Identity()
        self.object = object
        identity = ObjectIdentifier(object)
    }

    /// Whether both contain the same object, or are copies of one value.
    package static func == (left: Identified, right: Identified) -> Bool { left.identity == right.identity }

    package func hash(into hasher: inout Hasher) { hasher.combine(identity) }
}

extension Identified<any Resolver> {
    /// The resolver of the system, which is the same for all settings.
    package static let systemResolver = Identified(SystemResolver())
}

extension Identified<(any StreamConnector)?> {
    /// No connector: connections lead to the network.
    package static let networkConnector = Identified(nil)
}

/// The host and port of an address override.
public struct Endpoint: Hashable, Sendable, Codable {
    /// An ASCII host name in lower case, an address literal without brackets, or `*` for any host.
    public var host: String
    /// The port, 1–65535.
    public var port: Int

    /// Creates an endpoint.
    public init(host: String, port: Int) { (self.host, self.port) = (host, port) }
}

/// A redirection of connections to another host or port. The names in the request and in TLS do not change.
public struct ConnectOverride: Hashable, Sendable, Codable {
    /// The requested host to which the redirection applies; `nil` for any.
    public var fromHost: String?
    /// The requested port to which the redirection applies; `nil` for any.
    public var fromPort: Int?
    /// The host to connect to; `nil` for the requested one.
    public var toHost: String?
    /// The port to connect to; `nil` for the requested one.
    public var toPort: Int?

    /// Creates a redirection.
    public init(fromHost: String? = nil, fromPort: Int? = nil, toHost: String? = nil, toPort: Int? = nil) {
        (self.fromHost, self.fromPort, self.toHost, self.toPort) = (fromHost, fromPort, toHost, toPort)
    }

    /// Whether the redirection applies to a host, given in lower case, and a port.
    package func applies(to host: String, port: Int) -> Bool {
        (fromHost == nil || fromHost == host) && (fromPort == nil || fromPort == port)
    }
}

/// The selection and timing of the addresses of a host (RFC 8305, Happy Eyeballs version 2).
public struct HappyEyeballsOptions: Hashable, Codable, Sendable {
    /// The families of the addresses that are used.
    public enum Families: String, Hashable, Codable, Sendable {
        /// IPv6 and IPv4.
        case any
        /// IPv4 only (curl's `-4`).
        case ipv4Only
        /// IPv6 only (curl's `-6`).
        case ipv6Only
    }

    /// The family that is tried first.
    public enum FirstFamily: String, Hashable, Codable, Sendable {
        /// IPv6, as RFC 8305 recommends.
        case ipv6
        /// IPv4, for networks with unreliable IPv6.
        case ipv4
        /// The family of the first address that the resolver returned (RFC 6724 order).
        case asResolved
    }

    /// The families of the addresses that are used; both by default.
    public var families: Families
    /// The family that is tried first; IPv6 by default.
    public var firstFamily: FirstFamily
    /// The number of addresses of the first family that are tried before the first of the other; at least 1, the
    /// default (RFC 8305 §4, "First Address Family Count").
    public var firstFamilyCount: Int
    /// The time after which the next attempt starts in parallel with a running one, from 10 ms to one hour; 250 ms by
    /// default (RFC 8305 §5). If an attempt fails, the next one starts immediately.
    public var attemptDelay: Duration
    /// The maximum number of addresses of a host that are tried; at least 1; 32 by default. It stops a name with
    /// thousands of addresses from turning one request into a port scan.
    public var addressLimit: Int

    /// Creates options with the documented defaults.
    public init(
        families: Families = .any, firstFamily: FirstFamily = .ipv6, firstFamilyCount: Int = 1,
        attemptDelay: Duration = .milliseconds(250), addressLimit: Int = 32
    ) {
        (self.families, self.firstFamily, self.firstFamilyCount) = (families, firstFamily, firstFamilyCount)
        (self.attemptDelay, self.addressLimit) = (attemptDelay, addressLimit)
    }

    /// Decodes options. Missing ones have their default.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.init()
        families = try container.value(.families, or: families)
        firstFamily = try container.value(.firstFamily, or: firstFamily)
        firstFamilyCount = try container.value(.firstFamilyCount, or: firstFamilyCount)
        attemptDelay = try container.value(.attemptDelay, or: attemptDelay)
        addressLimit = try container.value(.addressLimit, or: addressLimit)
    }

    /// The delay in nanoseconds, within its range of 10 ms to an hour.
    var attemptDelayInNanoseconds: UInt64 {
        UInt64(min(max(attemptDelay, .milliseconds(10)), .seconds(3600)).wholeNanoseconds)
    }
}

/// The options of every TCP socket, set before it connects.
public struct SocketOptions: Hashable, Sendable, Codable {
    /// Whether small writes are sent immediately (`TCP_NODELAY`); `true` by default, as in other HTTP clients.
    public var tcpNoDelay = true
    /// The time without traffic after which the system probes the peer, and the time between probes (`SO_KEEPALIVE`,
    /// `TCP_KEEPIDLE`, `TCP_KEEPINTVL`). 60 s by default (Go 15 s, curl 60 s); `nil` for no probes. It is rounded down
    /// to seconds, and clamped to 1–32,767 s.
    public var keepAliveInterval: Duration? = .seconds(60)
    /// The local address to connect from, as an IPv4 or IPv6 literal; `nil`, the default, lets the system choose.
    public var localAddress: String?
    /// The network interface to use, such as `eth0` (`SO_BINDTODEVICE`); `nil`, the default, for any.
    public var interfaceName: String?
    /// The class of the traffic, from the configuration of the session.
    package var serviceClass: ServiceClass?

    private enum CodingKeys: CodingKey { case tcpNoDelay, keepAliveInterval, localAddress, interfaceName }

    /// Creates the default options.
    public init() {}

    /// Decodes options. Missing ones have their default.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.init()
        tcpNoDelay = try container.value(.tcpNoDelay, or: tcpNoDelay)
        // A `null` means no probes.
        keepAliveInterval = try container.optional(.keepAliveInterval, or: keepAliveInterval)
        localAddress = try container.decodeIfPresent(String.self, forKey: .localAddress)
        interfaceName = try container.decodeIfPresent(String.self, forKey: .interfaceName)
    }

    /// Encodes the options.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(tcpNoDelay, forKey: .tcpNoDelay)
        try container.encode(keepAliveInterval, forKey: .keepAliveInterval)
        try container.encodeIfPresent(localAddress, forKey: .localAddress)
        try container.encodeIfPresent(interfaceName, forKey: .interfaceName)
    }

    /// Applies the options to a socket that is not yet connected.
    func apply(to socket: borrowing Descriptor, family: SocketAddress.Family) throws(SystemError) {
        guard family != .unix else { return }
        if tcpNoDelay { try socket.setOption(Int32(IPPROTO_TCP), TCP_NODELAY, 1) }
        if let keepAliveInterval {
            // The maximum of Linux (MAX_TCP_KEEPIDLE).
            let seconds = Int32(min(max(1, keepAliveInterval.wholeSeconds), 32_767))
            try socket.setOption(SOL_SOCKET, SO_KEEPALIVE, 1)
            try socket.setOption(Int32(IPPROTO_TCP), TCP_KEEPIDLE, seconds)
            try socket.setOption(Int32(IPPROTO_TCP), TCP_KEEPINTVL, seconds)
        }
        if let serviceClass {
            // The two lower bits are for congestion notification, which the system controls.
            let (level, name) = family == .ipv4 ? (Int32(IPPROTO_IP), IP_TOS) : (Int32(IPPROTO_IPV6), IPV6_TCLASS)
            try socket.setOption(level, name, serviceClass.codePoint << 2)
        }
        if let interfaceName {
            let name = Array(interfaceName.utf8)
            let size = socklen_t(name.count)
            guard unsafe setsockopt(socket.number, SOL_SOCKET, SO_BINDTODEVICE, name, size) == 0 else {
                throw SystemError(operation: "setsockopt(SO_BINDTODEVICE, \(interfaceName))", code: errno)
            }
        }
        if let localAddress {
            let address = SocketAddress(literal: localAddress, port: 0)
            guard let address, address.family == family else {
                throw SystemError(operation: "bind(\(localAddress))", code: address == nil ? EINVAL : EAFNOSUPPORT)
            }
            try socket.bind(to: address)
        }
    }
}

/// The traffic class with which packets are marked: a code point of Differentiated Services (RFC 2474), for networks
/// that use it (`IP_TOS`, `IPV6_TCLASS`).
///
/// Many networks ignore or erase the mark. It applies to packets from this machine; a server marks its own packets.
public struct ServiceClass: Hashable, Sendable {
    /// The code point, 0–63.
    public let codePoint: Int32

    private init(_ codePoint: Int32) { self.codePoint = codePoint }

    /// Ordinary traffic: the default of the internet.
    public static let bestEffort = ServiceClass(0)
    /// Traffic without urgency, to be sent when there is spare capacity: lower effort (LE, RFC 8622).
    public static let background = ServiceClass(1)
    /// Low-latency data (AF21, RFC 4594 §4.7).
    public static let responsiveData = ServiceClass(18)
    /// Streamed video (AF31, RFC 4594 §4.5).
    public static let video = ServiceClass(26)
    /// Speech (EF, RFC 3246).
    public static let voice = ServiceClass(46)

    /// A custom code point; `nil` unless it is 0–63.
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
                in: container, debugDescription: "\(number) is not a code point from 0 to 63")
        }
        self = found
    }

    /// Writes the code point.
    public func encode(to encoder: any Encoder) throws { try codePoint.encode(to: encoder) }
}
