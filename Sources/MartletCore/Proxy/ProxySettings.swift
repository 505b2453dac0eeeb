/// The settings for the proxies of calls.
///
/// ```swift
/// configuration.proxy = .environment                                   // the default
/// configuration.proxy = try .http("http://proxy.example:3128").bypassing("10.0.0.0/8")
/// configuration.proxy = try .socks5("127.0.0.1", port: 9050, names: .resolvedRemotely)
/// configuration.proxy = .selector { $0.authority == "intranet" ? nil : proxy }
/// ```
///
/// An HTTP proxy forwards requests for `http` URLs, and opens a tunnel to the server for `https` URLs. Inside the
/// tunnel, TLS is negotiated with the server, by the session's TLS settings. A SOCKS proxy always opens a tunnel.
public struct ProxySettings: Sendable {
    package enum Rule: Sendable {
        case none
        case environment
        case server(ProxyServer)
        case selector(@Sendable (HTTPRequest) -> ProxyServer?)
    }

    package let rule: Rule
    package private(set) var bypass = ProxyBypass.none
    /// Whether `bypass` replaces `no_proxy`, rather than adding to it.
    package private(set) var replacesExceptions = false
    /// The credentials that replace those of a proxy.
    private var credentials: ProxyCredentials?
    /// A function that changes the credentials of the proxy, or those that replace them.
    private var change: (@Sendable (inout ProxyCredentials) -> Void)?
    /// The TLS settings that replace those of an HTTPS proxy.
    private var tls: TLSSettings?
    package private(set) var alwaysTunnels = false

    /// Settings without a proxy, regardless of the environment.
    public static let none = ProxySettings(rule: .none)
    /// The proxies of the environment: `http_proxy` (only in lower case), `https_proxy`, `all_proxy`, `no_proxy`.
    ///
    /// The environment is read once, when a session is created; views share the result.
    public static let environment = ProxySettings(rule: .environment)

    /// Returns settings with one proxy for all URLs.
    public static func server(_ server: ProxyServer) -> ProxySettings { ProxySettings(rule: .server(server)) }

    /// Returns settings with the proxy at an address with any supported scheme; see ``ProxyServer/init(_:tls:)``.
    /// - Throws: The first error in the address, with its position.
    public static func url(_ address: String) throws(HTTPURL.ParseError) -> ProxySettings {
        .server(try ProxyServer(address))
    }

    /// Returns settings with an HTTP proxy: `[http://][user[:password]@]host[:port]`. The default port is 1080.
    /// - Parameter credentials: The credentials for the proxy, instead of those in the URL.
    /// - Throws: The first error in the address, with its position.
    public static func http(_ address: String, credentials: ProxyCredentials? = nil) throws(HTTPURL.ParseError)
        -> ProxySettings
    { .server(try ProxyURLParser.server(address, required: .http, credentials: credentials)) }

    /// Returns settings with an HTTPS proxy: `[https://][user[:password]@]host[:port]`. The default port is 443.
    /// - Parameters:
    ///   - credentials: The credentials for the proxy, instead of those in the URL.
    ///   - tls: The TLS settings for the proxy, which must have a certificate for its own name.
    /// - Throws: The first error in the address, with its position.
    public static func https(_ address: String, credentials: ProxyCredentials? = nil, tls: TLSSettings = TLSSettings())
        throws(HTTPURL.ParseError) -> ProxySettings
    { .server(try ProxyURLParser.server(address, required: .https, credentials: credentials, tls: tls)) }

    /// Returns settings with a SOCKS5 proxy (RFC 1928).
    /// - Parameters:
    ///   - host: The name or address of the proxy, with or without a port: `127.0.0.1:9050`. IPv6 without a port needs
    ///     no brackets.
    ///   - port: The port of the proxy if `host` has none; 1080 by default.
    ///   - credentials: User and password for the proxy (RFC 1929), if it requests them.
    ///   - names: The side that resolves the servers' names; the proxy by default.
    /// - Throws: The first error in `host`, with its position; `.invalidPort` if the port is out of range.
    public static func socks5(
        _ host: String, port defaultPort: Int = 1080, credentials: ProxyCredentials? = nil,
        names: ProxyNameResolution = .resolvedRemotely
    ) throws(HTTPURL.ParseError) -> ProxySettings {
        let (parsed, port): (URLHost, Int)
        do throws(RawURLParseError) {
            let bytes = Array(host.utf8)[...]
            if !host.hasPrefix("["), bytes.count(where: { $0 == UInt8(ascii: ":") }) > 1 {
                (parsed, port) = (try URLHost(ipv6: bytes), defaultPort)
            } else {
                let authority = try URLAuthority(bytes)
                guard authority.userInfo == nil else {
                    throw RawURLParseError(
                        .forbiddenCharacter, at: 0, "pass the user and the password in `credentials`")
                }
                (parsed, port) = (authority.host, authority.port ?? defaultPort)
            }
            guard (1...65_535).contains(port) else {
                throw RawURLParseError(.invalidPort, at: 0, "port \(port) is out of range 1–65535")
            }
        } catch { throw error.located(in: host) }
        return .server(ProxyServer(kind: .socks5(names), host: parsed.text, port: port, credentials: credentials))
    }

    /// Returns settings with a closure that returns the proxy for each call and each redirect; `nil` for none.
    ///
    /// The closure is called on the task of the call and must return quickly.
    public static func selector(_ select: @escaping @Sendable (HTTPRequest) -> ProxyServer?) -> ProxySettings {
        ProxySettings(rule: .selector(select))
    }

    /// Returns a copy with one property changed.
    private func setting<Value>(_ setting: WritableKeyPath<ProxySettings, Value>, _ value: Value) -> ProxySettings {
        var copy = self
        copy[keyPath: setting] = value
        return copy
    }

    /// Returns the same settings, except that these servers are reached without a proxy. ``environment`` adds them to
    /// those of `no_proxy`.
    public func bypassing(_ servers: ProxyBypass) -> ProxySettings { setting(\.bypass, servers) }

    /// Returns the same settings, except that the servers of a list in the form of `no_proxy` are reached without a
    /// proxy; see ``ProxyBypass``.
    public func bypassing(_ list: String) -> ProxySettings { bypassing(ProxyBypass(list)) }

    /// Returns the same settings, except that only these servers are reached without a proxy: `no_proxy` is ignored.
    public func bypassingOnly(_ servers: ProxyBypass) -> ProxySettings {
        bypassing(servers).setting(\.replacesExceptions, true)
    }

    /// Returns the same settings with credentials that replace those of the proxy.
    public func withCredentials(_ credentials: ProxyCredentials) -> ProxySettings {
        setting(\.credentials, credentials)
    }

    /// Returns the same settings with a function that changes the credentials of the proxy.
    package func changingCredentials(_ change: @escaping @Sendable (inout ProxyCredentials) -> Void) -> ProxySettings {
        setting(\.change, change)
    }

    /// Returns the same settings with TLS settings that replace those of an HTTPS proxy.
    package func withTLS(_ tls: TLSSettings) -> ProxySettings { setting(\.tls, tls) }

    /// Returns the same settings with a tunnel through the proxy also for `http` URLs, like curl's `--proxytunnel`.
    public func alwaysTunneling() -> ProxySettings { setting(\.alwaysTunnels, true) }

    /// Whether these settings never select a proxy.
    func isIdle(_ environment: ProxyEnvironment) -> Bool {
        switch rule {
        case .none: true
        case .environment: environment.isEmpty
        case .server, .selector: false
        }
    }

    /// Returns the proxy of a call; `nil` for none.
    /// - Parameter request: Creates the request; called only for a selector.
    /// - Throws: `.proxyFailed` if the applicable environment variable is invalid.
    func proxy(for url: HTTPURL, _ environment: ProxyEnvironment, request: () -> HTTPRequest) throws(HTTPError)
        -> ProxyServer?
    {
        if !bypass.isEmpty, bypass.contains(host: url.host, port: url.port) { return nil }
        let found: ProxyServer? =
            switch rule {
            case .none: nil
            case .environment: try environment.proxy(for: url, appliesNoProxy: !replacesExceptions)
            case .server(let server): server
            case .selector(let select): select(request())
            }
        guard var server = found else { return nil }
        if let tls, server.kind == .https { server = server.withTLS(tls) }
        if let credentials { server = server.withCredentials(credentials) }
        if let change, var changed = server.credentials {
            change(&changed)
            server = server.withCredentials(changed)
        }
        return alwaysTunnels ? server.alwaysTunneling() : server
    }
}

extension ProxySettings: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The rule, without user or password.
    public var description: String {
        switch rule {
        case .none: "no proxy"
        case .environment: "the environment's proxies"
        case .server(let server): "the proxy \(server)"
        case .selector: "a selector of proxies"
        }
    }

    /// The same as ``description``.
    public var debugDescription: String { description }
    /// The mirror, with only ``description``.
    public var customMirror: Mirror { Mirror(self, children: ["rule": description]) }
}

/// The proxies of the process's environment, read when the session is created.
///
/// `http_proxy` is read only in lower case: in a CGI program `HTTP_PROXY` is the client's `Proxy` field, which would
/// let the client choose the proxy (CVE-2016-5385). `https_proxy`, `all_proxy` and `no_proxy` are read in both cases,
/// lower case first. An empty variable is ignored.
struct ProxyEnvironment: Sendable {
    typealias Variable = (name: String, server: Result<ProxyServer, HTTPURL.ParseError>)

    /// The proxy for `http` URLs; `nil` for a direct connection.
    let http: Variable?
    /// The proxy for `https` URLs; `nil` for a direct connection.
    let https: Variable?
    /// The servers that are reached without a proxy.
    let bypass: ProxyBypass

    /// Reads the variables.
    /// - Parameter value: Returns the value of a variable; `nil` if it is not set, or empty.
    init(reading value: (String) -> String? = { ProcessEnvironment.value(of: $0) }) {
        func first(_ names: String...) -> Variable? {
            for name in names {
                guard let text = value(name), !text.isEmpty else { continue }
                return (name, Result { () throws(HTTPURL.ParseError) in try ProxyServer(text) })
            }
            return nil
        }
        http = first("http_proxy", "all_proxy", "ALL_PROXY")
        https = first("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
        bypass = ProxyBypass(value("no_proxy") ?? value("NO_PROXY") ?? "")
    }

    var isEmpty: Bool { http == nil && https == nil }

    /// Returns the proxy for a URL.
    /// - Parameter appliesNoProxy: Whether `no_proxy` applies.
    /// - Throws: `.proxyFailed` if the applicable variable is invalid.
    func proxy(for url: HTTPURL, appliesNoProxy: Bool = true) throws(HTTPError) -> ProxyServer? {
        guard let variable = url.scheme == .https ? https : http,
            !appliesNoProxy || !bypass.contains(host: url.host, port: url.port)
        else { return nil }
        switch variable.server {
        case .success(let server): return server
        case .failure(let error):
            throw HTTPError(
                .proxyFailed, phase: .preparing,
                message: "invalid proxy address in the environment variable \(variable.name): \(error)", url: url,
                underlying: error)
        }
    }
}
