/// A proxy: its protocol, address and credentials.
///
/// Requests share a connection only if all properties of their proxies are equal. A copy costs one reference count.
public struct ProxyServer: Hashable, Sendable {
    /// The protocol of a proxy.
    public enum Kind: Hashable, Sendable {
        /// Plain HTTP: forwarded requests and CONNECT tunnels (RFC 9110 §7.6, §9.3.6).
        case http
        /// HTTP over TLS: the certificate of the proxy is verified before any request is sent.
        case https
        /// SOCKS version 5 (RFC 1928).
        case socks5(ProxyNameResolution)

        var scheme: String {
            switch self {
            case .http: "http"
            case .https: "https"
            case .socks5(.resolvedLocally): "socks5"
            case .socks5(.resolvedRemotely): "socks5h"
            }
        }

        static let all = [Kind.http, .https, .socks5(.resolvedLocally), .socks5(.resolvedRemotely)]
    }

    private struct Parts: Hashable {
        var kind: Kind
        var host: String
        var port: Int
        var credentials: ProxyCredentials?
        var tls: TLSSettings
        var alwaysTunnels: Bool
    }

    private final class Storage: Sendable {
        let parts: Parts
        let name: String

        init(_ parts: Parts) {
            self.parts = parts
            let isAddress = parts.host.utf8.contains(UInt8(ascii: ":"))
            name = "\(parts.kind.scheme)://\(isAddress ? "[\(parts.host)]" : parts.host):\(parts.port)"
        }
    }

    private let storage: Storage

    /// Creates a proxy.
    /// - Parameters:
    ///   - host: A name in ASCII and lower case, or an address without brackets.
    ///   - port: 1–65535.
    ///   - tls: The settings for TLS with the proxy; ignored unless the kind is ``Kind/https``.
    ///   - alwaysTunnels: See ``alwaysTunnels``.
    package init(
        kind: Kind, host: String, port: Int, credentials: ProxyCredentials? = nil, tls: TLSSettings = TLSSettings(),
        alwaysTunnels: Bool = false
    ) {
        self.init(
            Parts(kind: kind, host: host, port: port, credentials: credentials, tls: tls, alwaysTunnels: alwaysTunnels))
    }

    private init(_ parts: Parts) { storage = Storage(parts) }

    private func with(_ change: (inout Parts) -> Void) -> ProxyServer {
        var parts = storage.parts
        change(&parts)
        return ProxyServer(parts)
    }

    /// The protocol of the proxy.
    public var kind: Kind { storage.parts.kind }

    /// The name of the proxy in ASCII, or its address without brackets.
    public var host: String { storage.parts.host }

    /// The port of the proxy, 1–65535.
    public var port: Int { storage.parts.port }

    /// The credentials for the proxy; `nil` for none.
    public var credentials: ProxyCredentials? { storage.parts.credentials }

    /// The settings for TLS with an HTTPS proxy. They never apply to servers, nor the servers' settings to the proxy.
    public var tls: TLSSettings { storage.parts.tls }

    /// Whether `http` requests also use a tunnel through an HTTP proxy, as with curl's `--proxytunnel`. `false` by
    /// default: those requests are sent to the proxy itself.
    public var alwaysTunnels: Bool { storage.parts.alwaysTunnels }

    /// The same proxy with these credentials.
    public func withCredentials(_ credentials: ProxyCredentials?) -> ProxyServer {
        with { $0.credentials = credentials }
    }

    /// The same proxy with other settings for TLS with it.
    package func withTLS(_ tls: TLSSettings) -> ProxyServer { with { $0.tls = tls } }

    /// The same proxy with ``alwaysTunnels`` set.
    public func alwaysTunneling(_ isOn: Bool = true) -> ProxyServer { with { $0.alwaysTunnels = isOn } }

    /// Whether requests of a scheme are forwarded by the proxy (RFC 9112 §3.2.2) rather than sent through a tunnel.
    package func forwards(isSecure: Bool) -> Bool {
        if isSecure || alwaysTunnels { return false }
        return kind == .http || kind == .https
    }

    /// The destination of forwarded requests: the proxy, for any server. It is not secure, because forwarded requests
    /// have the scheme `http`, even if TLS is used with the proxy.
    package var forwardingDestination: Destination { Destination(isSecure: false, host: host, port: port) }

    /// The address of the proxy on the network.
    package var destination: Destination { Destination(isSecure: kind == .https, host: host, port: port) }

    /// Compares all properties.
    public static func == (left: ProxyServer, right: ProxyServer) -> Bool {
        left.storage === right.storage || left.storage.parts == right.storage.parts
    }

    /// Hashes only the name and the user, because these usually differ.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(storage.name)
        hasher.combine(credentials?.user)
    }
}

extension ProxyServer: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Scheme, host and port, such as `http://proxy.example:3128`. Never user or password.
    public var description: String { storage.name }

    /// The same as ``description``.
    public var debugDescription: String { storage.name }

    /// A mirror of ``description`` only.
    public var customMirror: Mirror { Mirror(self, children: ["name": storage.name]) }
}

/// The side that resolves the name of a server reached through a SOCKS proxy.
public enum ProxyNameResolution: String, Hashable, Sendable, Codable {
    /// This machine resolves it, and sends an address to the proxy: `socks5://`, curl's `--socks5`. Up to four addresses
    /// are tried, one after the other, in the order of ``HappyEyeballsOptions``.
    case resolvedLocally
    /// The proxy resolves it, and the name is sent to the proxy only: `socks5h://`, curl's `--socks5-hostname`.
    case resolvedRemotely
}

/// A user name and a password for a proxy, sent to that proxy only.
///
/// Neither is part of any description, mirror or log line.
public struct ProxyCredentials: Hashable, Sendable {
    /// The user name.
    public var user: String
    /// The password; may be empty.
    public var password: String
    /// Whether an HTTP proxy gets the credentials preemptively, by `Basic` (RFC 7617); `true` by default, as in curl.
    ///
    /// This saves a round trip, but a proxy that requires `Digest` then receives the password, too. A SOCKS proxy
    /// always receives credentials only after it requests them.
    public var sendsPreemptively: Bool
    /// Whether an HTTP proxy receives the credentials only by `Digest` (RFC 7616), after a challenge, and so never the
    /// password itself; `false` by default. A proxy that requires `Basic` then rejects the request.
    ///
    /// It has no effect on SOCKS proxies, whose only method sends the password unencrypted.
    public var requiresDigest: Bool

    /// Creates credentials from a user name and a password.
    public init(user: String, password: String, sendsPreemptively: Bool = true, requiresDigest: Bool = false) {
        (self.user, self.password) = (user, password)
        (self.sendsPreemptively, self.requiresDigest) = (sendsPreemptively, requiresDigest)
    }
}

extension ProxyCredentials: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// A fixed text without user and password.
    public var description: String { "credentials for a proxy" }

    /// The same as ``description``.
    public var debugDescription: String { description }

    /// An empty mirror, so that dumps do not contain the secrets.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// A source of values of `Proxy-Authorization` (RFC 9110 §11.7.2). It is used for proxies only: it never receives a
/// server's challenge, and its values are never sent to a server.
package protocol ProxyAuthenticator: Sendable {
    /// Returns the field value to send preemptively; `nil` to send none.
    func preemptiveValue(for request: ProxyAuthenticationRequest) -> String?

    /// Returns the field value for a retry after a 407; `nil` if a retry is pointless. Called once per request.
    /// - Parameters:
    ///   - challenges: The values of the `Proxy-Authenticate` fields, unchanged.
    ///   - rejected: The field value in the rejected request; `nil` if it had none.
    func value(answering challenges: [String], rejected: String?, for request: ProxyAuthenticationRequest) -> String?
}

package struct ProxyAuthenticationRequest: Sendable {
    /// The proxy, with its credentials.
    package var proxy: ProxyServer
    package var method: String
    /// The target in the request line: `host:port` of a CONNECT, else an absolute URL.
    package var target: String

    package init(proxy: ProxyServer, method: String, target: String) {
        (self.proxy, self.method, self.target) = (proxy, method, target)
    }
}
