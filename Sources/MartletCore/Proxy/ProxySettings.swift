/// The proxies that calls go through.
///
/// ```swift
/// configuration.proxy = .environment                                   // the default
/// configuration.proxy = try .http("http://proxy.example:3128").bypassing("localhost, 10.0.0.0/8")
/// configuration.proxy = try .socks5("127.0.0.1", port: 9050, names: .resolvedRemotely)
/// configuration.proxy = .selector { request in request.authority == "intranet" ? nil : proxy }
/// ```
///
/// An HTTP proxy is handed requests for `http` URLs, and opens a tunnel to the server for `https` URLs; TLS inside of
/// the tunnel is with the server, by the session's TLS settings. A SOCKS proxy always opens a tunnel.
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
    /// Credentials in place of those that a proxy has.
    private var credentials: ProxyCredentials?
    /// Changes the credentials that a proxy has, or is given here.
    private var change: (@Sendable (inout ProxyCredentials) -> Void)?
    /// TLS settings for an HTTPS proxy in place of its own.
    private var tls: TLSSettings?
    package private(set) var alwaysTunnels = false

    /// No proxy, whatever the environment.
    public static let none = ProxySettings(rule: .none)

    /// The proxies that the environment names: `http_proxy` (lower case alone), `https_proxy`, `all_proxy`, `no_proxy`.
    ///
    /// It is read once for a session, when that is made; views share what was read.
    public static let environment = ProxySettings(rule: .environment)

    /// One proxy for everything.
    public static func server(_ server: ProxyServer) -> ProxySettings { ProxySettings(rule: .server(server)) }

    /// The proxy at an address with any of the schemes; see ``ProxyServer/init(_:tls:)``.
    /// - Throws: The error in the address, with its character.
    public static func url(_ address: String) throws(HTTPURL.ParseError) -> ProxySettings {
        .server(try ProxyServer(address))
    }

    /// An HTTP proxy: `http://[user[:password]@]host[:port]`, where scheme, and port (1080), may be missing.
    /// - Parameter credentials: The credentials for the proxy in place of those in the address.
    /// - Throws: The error in the address, with its character.
    public static func http(_ address: String, credentials: ProxyCredentials? = nil) throws(HTTPURL.ParseError)
        -> ProxySettings
    { .server(try ProxyURLParser.server(address, required: .http, credentials: credentials)) }

    /// An HTTP proxy over TLS: `https://[user[:password]@]host[:port]`, where scheme, and port (443), may be missing.
    /// - Parameters:
    ///   - credentials: The credentials for the proxy in place of those in the address.
    ///   - tls: The TLS settings for the proxy, whose certificate must be its own.
    /// - Throws: The error in the address, with its character.
    public static func https(_ address: String, credentials: ProxyCredentials? = nil, tls: TLSSettings = TLSSettings())
        throws(HTTPURL.ParseError) -> ProxySettings
    { .server(try ProxyURLParser.server(address, required: .https, credentials: credentials, tls: tls)) }

    /// A SOCKS5 proxy (RFC 1928).
    /// - Parameters:
    ///   - host: Its name or address, with or without a port: `127.0.0.1:9050`. IPv6 without a port needs no brackets.
    ///   - port: Its port if `host` has none; 1080 by default.
    ///   - credentials: User and password for it (RFC 1929), if it requests them.
    ///   - names: The side that resolves the servers' names.
    /// - Throws: The error in the host, with its character; `.invalidPort`.
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
                        .forbiddenCharacter, at: 0, "give the user and the password as the credentials")
                }
                (parsed, port) = (authority.host, authority.port ?? defaultPort)
            }
            guard (1...65_535).contains(port) else {
                throw RawURLParseError(.invalidPort, at: 0, "port \(port) is out of range 1–65535")
            }
        } catch { throw error.located(in: host) }
        return .server(ProxyServer(kind: .socks5(names), host: parsed.text, port: port, credentials: credentials))
    }

    /// The proxy that a closure returns for each call and each redirect; `nil` for none.
    ///
    /// It is called on the task of the call and must return quickly.
    public static func selector(_ select: @escaping @Sendable (HTTPRequest) -> ProxyServer?) -> ProxySettings {
        ProxySettings(rule: .selector(select))
    }

    /// The same settings with one of them changed.
    private func setting<Value>(_ setting: WritableKeyPath<ProxySettings, Value>, _ value: Value) -> ProxySettings {
        var copy = self
        copy[keyPath: setting] = value
        return copy
    }

    /// The same, except for these servers, which are reached without a proxy; with ``environment`` besides those of `no_proxy`.
    public func bypassing(_ servers: ProxyBypass) -> ProxySettings { setting(\.bypass, servers) }

    /// The same, except for the servers of a list like `no_proxy`'s; see ``ProxyBypass``.
    public func bypassing(_ list: String) -> ProxySettings { bypassing(ProxyBypass(list)) }

    /// The same, except for these servers alone: those of `no_proxy` are ignored.
    public func bypassingOnly(_ servers: ProxyBypass) -> ProxySettings {
        bypassing(servers).setting(\.replacesExceptions, true)
    }

    /// The same, with these credentials for the proxy in place of any it has.
    public func withCredentials(_ credentials: ProxyCredentials) -> ProxySettings {
        setting(\.credentials, credentials)
    }

    /// The same, with a change of the credentials that the proxy has, or is given here.
    package func changingCredentials(_ change: @escaping @Sendable (inout ProxyCredentials) -> Void) -> ProxySettings {
        setting(\.change, change)
    }

    /// The same, with these TLS settings for an HTTPS proxy in place of its own.
    package func withTLS(_ tls: TLSSettings) -> ProxySettings { setting(\.tls, tls) }

    /// The same, with a tunnel through the proxy also for `http` URLs, as curl's `--proxytunnel`.
    public func alwaysTunneling() -> ProxySettings { setting(\.alwaysTunnels, true) }

    // MARK: Deciding

    /// Whether no call ever goes through a proxy.
    func isIdle(_ environment: ProxyEnvironment) -> Bool {
        switch rule {
        case .none: true
        case .environment: environment.isEmpty
        case .server, .selector: false
        }
    }

    /// The proxy of a call; `nil` for none.
    /// - Parameter request: Makes the request, which only a selector needs.
    /// - Throws: `.proxyFailed` if the variable of the environment is invalid.
    func proxy(for url: HTTPURL, _ environment: ProxyEnvironment, request: () -> HTTPRequest) throws(HTTPError)
        -> ProxyServer?
    {
        if !bypass.isEmpty, bypass.contains(host: url.host, port: url.port) { return nil }
        let found: ProxyServer? =
            switch rule {
            case .none: nil
            case .environment: try environment.proxy(for: url, heedsExceptions: !replacesExceptions)
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
    /// Shows ``description`` alone.
    public var customMirror: Mirror { Mirror(self, children: ["rule": description]) }
}

/// The proxies that the process's environment names, as they were when the session was made.
///
/// `http_proxy` is read only in lower case: in a CGI program `HTTP_PROXY` is the client's `Proxy` field, and
/// would let that client choose the proxy (CVE-2016-5385). `https_proxy`, `all_proxy` and `no_proxy` are read in both cases,
/// the lower first. An empty variable is ignored.
struct ProxyEnvironment: Sendable {
    typealias Variable = (name: String, server: Result<ProxyServer, HTTPURL.ParseError>)

    /// For `http` URLs; `nil` if there is none.
    let http: Variable?
    /// For `https` URLs; likewise.
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

    /// The proxy for a URL.
    /// - Parameter heedsExceptions: Whether `no_proxy` applies.
    /// - Throws: `.proxyFailed` if the variable that applies is invalid.
    func proxy(for url: HTTPURL, heedsExceptions: Bool = true) throws(HTTPError) -> ProxyServer? {
        guard let variable = url.scheme == .https ? https : http,
            !heedsExceptions || !bypass.contains(host: url.host, port: url.port)
        else { return nil }
        switch variable.server {
        case .success(let server): return server
        case .failure(let error):
            throw HTTPError(
                .proxyFailed, phase: .preparing,
                message: "the variable \(variable.name) names no proxy that can be used: \(error)", url: url,
                underlying: error)
        }
    }
}
