import Glibc

/// One proxy: what it speaks, where it is, and what it is told.
///
/// Connections through two proxies that differ in anything at all are never exchanged. A copy costs one reference.
public struct ProxyServer: Hashable, Sendable {
    /// What is spoken with the proxy.
    public enum Kind: Hashable, Sendable {
        /// HTTP (RFC 9110 §7.6, §9.3.6).
        case http
        /// HTTP over TLS: the proxy proves its name first.
        case https
        /// SOCKS version 5 (RFC 1928).
        case socks5(ProxyNameResolution)

        /// The scheme of the proxy's URL.
        var scheme: String {
            switch self {
            case .http: "http"
            case .https: "https"
            case .socks5(.resolvedLocally): "socks5"
            case .socks5(.resolvedRemotely): "socks5h"
            }
        }

        /// All kinds.
        static let all = [Kind.http, .https, .socks5(.resolvedLocally), .socks5(.resolvedRemotely)]
    }

    private final class Storage: Sendable {
        let kind: Kind
        let host: String
        let port: Int
        let credentials: ProxyCredentials?
        let tls: TLSSettings
        let tunnelsEverything: Bool
        let name: String

        init(
            kind: Kind, host: String, port: Int, credentials: ProxyCredentials?, tls: TLSSettings,
            tunnelsEverything: Bool
        ) {
            self.kind = kind
            self.host = host
            self.port = port
            self.credentials = credentials
            self.tls = tls
            self.tunnelsEverything = tunnelsEverything
            let isAddress = host.utf8.contains(UInt8(ascii: ":"))
            name = "\(kind.scheme)://\(isAddress ? "[\(host)]" : host):\(port)"
        }
    }

    private let storage: Storage

    /// A proxy.
    /// - Parameters:
    ///   - host: A name in ASCII and lower case, or an address without brackets.
    ///   - port: 1–65535.
    ///   - tls: What TLS with the proxy demands; of no account unless the kind is ``Kind/https``.
    ///   - tunnelsEverything: See ``tunnelsEverything``.
    package init(
        kind: Kind, host: String, port: Int, credentials: ProxyCredentials? = nil,
        tls: TLSSettings = TLSSettings(), tunnelsEverything: Bool = false
    ) {
        storage = Storage(
            kind: kind, host: host, port: port, credentials: credentials, tls: tls,
            tunnelsEverything: tunnelsEverything)
    }

    /// What is spoken with the proxy.
    public var kind: Kind { storage.kind }

    /// Its name in ASCII, or its address without brackets.
    public var host: String { storage.host }

    /// Its port, 1–65535.
    public var port: Int { storage.port }

    /// What it is told of who asks; `nil` for nothing.
    public var credentials: ProxyCredentials? { storage.credentials }

    /// What TLS with an HTTPS proxy demands and offers. Apart from the settings for servers: neither trusted roots nor
    /// identities of the one are used for the other.
    public var tls: TLSSettings { storage.tls }

    /// Whether an HTTP proxy is asked for a tunnel for `http` URLs as well, as curl's `--proxytunnel`; `false` by
    /// default: it is handed those requests themselves.
    public var tunnelsEverything: Bool { storage.tunnelsEverything }

    /// The same proxy, told these credentials.
    public func withCredentials(_ credentials: ProxyCredentials?) -> ProxyServer {
        ProxyServer(
            kind: kind, host: host, port: port, credentials: credentials, tls: tls,
            tunnelsEverything: tunnelsEverything)
    }

    /// The same proxy, with other settings for TLS with it.
    package func withTLS(_ tls: TLSSettings) -> ProxyServer {
        ProxyServer(
            kind: kind, host: host, port: port, credentials: credentials, tls: tls,
            tunnelsEverything: tunnelsEverything)
    }

    /// The same proxy, asked for a tunnel whatever the URL's scheme, or no longer.
    public func tunnellingEverything(_ isOn: Bool = true) -> ProxyServer {
        ProxyServer(
            kind: kind, host: host, port: port, credentials: credentials, tls: tls, tunnelsEverything: isOn)
    }

    /// Whether requests of a scheme are handed to the proxy itself, which then acts for the client (RFC 9112 §3.2.2),
    /// rather than sent through a tunnel to the server.
    package func forwards(isSecure: Bool) -> Bool {
        if isSecure || tunnelsEverything { return false }
        switch kind {
        case .http, .https: return true
        case .socks5: return false
        }
    }

    /// Where requests lead that are handed to the proxy: to it, whatever server they are for. They are of the scheme
    /// `http`, and so not secure, though TLS may be spoken with the proxy; a tunnel to the proxy's own place is another.
    package var forwardingDestination: Destination { Destination(isSecure: false, host: host, port: port) }

    /// Where the proxy is, as far as the network is concerned.
    package var destination: Destination { Destination(isSecure: kind == .https, host: host, port: port) }

    /// Whether they are the same in all respects.
    public static func == (left: ProxyServer, right: ProxyServer) -> Bool {
        let (one, other) = (left.storage, right.storage)
        return one === other
            || one.kind == other.kind && one.host == other.host && one.port == other.port
                && one.credentials == other.credentials && one.tls == other.tls
                && one.tunnelsEverything == other.tunnelsEverything
    }

    /// Feeds what mostly tells proxies apart.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(storage.name)
        hasher.combine(storage.credentials?.user)
    }
}

extension ProxyServer: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Scheme, host and port, such as `http://proxy.example:3128`. Never user or password.
    public var description: String { storage.name }

    /// The same as ``description``.
    public var debugDescription: String { storage.name }

    /// Shows ``description`` alone.
    public var customMirror: Mirror { Mirror(self, children: ["name": storage.name]) }
}

/// Who looks up the name of a server that is reached through a SOCKS proxy.
public enum ProxyNameResolution: String, Hashable, Sendable, Codable {
    /// This machine does, and tells the proxy an address: `socks5://`, curl's `--socks5`.
    case resolvedLocally
    /// The proxy does, and no name leaves this machine otherwise: `socks5h://`, curl's `--socks5-hostname`.
    case resolvedRemotely
}

/// The variables of the process.
package enum ProcessEnvironment {
    /// The value of a variable; `nil` when it is not set, or empty.
    ///
    /// The C library forbids reading while another thread sets one, so this is for the beginnings of things.
    package static func value(of name: String) -> String? {
        guard let value = unsafe getenv(name), unsafe value.pointee != 0 else { return nil }
        return unsafe String(cString: value)
    }
}
