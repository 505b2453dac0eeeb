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
