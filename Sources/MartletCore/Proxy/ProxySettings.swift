import MartletURL
public import HTTPTypes
public import MartletTransport

/// Whether calls go through a proxy, and through which.
///
/// ```swift
/// configuration.proxy = .environment                                   // the default
/// configuration.proxy = try .http("http://proxy.example:3128").bypassing("localhost, 10.0.0.0/8")
/// configuration.proxy = try .socks5("127.0.0.1", port: 9050, names: .resolvedRemotely)
/// configuration.proxy = .selector { request in request.authority == "intranet" ? nil : proxy }
/// ```
///
/// An HTTP proxy is handed requests for `http` URLs, and asked for a tunnel to the server for `https` URLs; TLS inside of
/// the tunnel is with the server, by the session's TLS settings. A SOCKS proxy is asked for a tunnel always.
public struct ProxySettings: Sendable {
    package enum Rule: Sendable {
        case none
        case environment
        case server(ProxyServer)
        case selector(@Sendable (HTTPRequest) -> ProxyServer?)
    }

    package let rule: Rule
    package private(set) var bypass = ProxyBypass.none
    /// Whether `bypass` stands in for `no_proxy`, rather than beside it.
    package private(set) var replacesExceptions = false
    /// Credentials in place of those that a proxy has.
    private var credentials: ProxyCredentials?
    /// What becomes of the credentials that a proxy has, or is given here.
    private var change: (@Sendable (inout ProxyCredentials) -> Void)?
    /// What TLS with an HTTPS proxy demands, in place of what its own settings say.
    private var tls: TLSSettings?
    package private(set) var tunnelsEverything = false

    private init(_ rule: Rule) { self.rule = rule }

    /// No proxy, whatever the environment says.
    public static let none = ProxySettings(.none)

    /// The proxies that the environment names: `http_proxy` (lower case alone), `https_proxy`, `all_proxy`, `no_proxy`.
    ///
    /// It is read once for a session, when that is made; views share what was read.
    public static let environment = ProxySettings(.environment)

    /// One proxy for everything.
    public static func server(_ server: ProxyServer) -> ProxySettings { ProxySettings(.server(server)) }

    /// The proxy at an address with any of the schemes; see ``ProxyServer/init(_:tls:)``.
    /// - Throws: What is wrong with the address, and at which character.
    public static func url(_ address: String) throws(HTTPURL.ParseError) -> ProxySettings {
        .server(try ProxyServer(address))
    }

    /// An HTTP proxy: `http://[user[:password]@]host[:port]`, where scheme, and port (1080), may be missing.
    /// - Parameter credentials: What the proxy is told of who asks, in place of what the address says.
    /// - Throws: What is wrong with the address, and at which character.
    public static func http(
        _ address: String, credentials: ProxyCredentials? = nil
    ) throws(HTTPURL.ParseError) -> ProxySettings {
        let server = try ProxyURLParser.server(address, required: .http)
        return .server(credentials.map { server.withCredentials($0) } ?? server)
    }

    /// An HTTP proxy that is spoken to over TLS: `https://[user[:password]@]host[:port]`, where scheme, and port (443), may
    /// be missing.
    /// - Parameters:
    ///   - credentials: What the proxy is told of who asks, in place of what the address says.
    ///   - tls: What TLS with the proxy demands. Its certificate must be made out to the proxy.
    /// - Throws: What is wrong with the address, and at which character.
    public static func https(
        _ address: String, credentials: ProxyCredentials? = nil, tls: TLSSettings = TLSSettings()
    ) throws(HTTPURL.ParseError) -> ProxySettings {
        let server = try ProxyURLParser.server(address, required: .https, tls: tls)
        return .server(credentials.map { server.withCredentials($0) } ?? server)
    }

    /// A SOCKS5 proxy (RFC 1928).
    /// - Parameters:
    ///   - host: Its name or address, with or without a port: `127.0.0.1:9050`. IPv6 without a port needs no brackets.
    ///   - port: Its port where `host` has none; 1080 by default.
    ///   - credentials: User and password for it (RFC 1929), where it asks.
    ///   - names: Who looks up the servers' names.
    /// - Throws: What is wrong with the host, and at which character; `.invalidPort`.
    public static func socks5(
        _ host: String, port defaultPort: Int = 1080, credentials: ProxyCredentials? = nil,
        names: ProxyNameResolution = .resolvedRemotely
    ) throws(HTTPURL.ParseError) -> ProxySettings {
        let (parsed, port): (URLHost, Int)
        do throws(URLFault) {
            let bytes = Array(host.utf8)[...]
            if !host.hasPrefix("["), bytes.count(where: { $0 == UInt8(ascii: ":") }) > 1 {
                (parsed, port) = (try URLHost(ipv6: bytes), defaultPort)
            } else {
                let authority = try URLAuthority(bytes)
                guard authority.userInfo == nil else {
                    throw URLFault(
                        .forbiddenCharacter, at: 0, "give the user and the password as the credentials")
                }
                (parsed, port) = (authority.host, authority.port ?? defaultPort)
            }
            guard (1...65_535).contains(port) else {
                throw URLFault(.invalidPort, at: 0, "port \(port) is out of range 1–65535")
            }
        } catch {
            throw error.located(in: host)
        }
        return .server(
            ProxyServer(kind: .socks5(names), host: parsed.text, port: port, credentials: credentials))
    }

    /// What a closure says, asked for each call, and each redirect, anew; `nil` for no proxy.
    ///
    /// It is called on the task of the call and should return at once.
    public static func selector(_ select: @escaping @Sendable (HTTPRequest) -> ProxyServer?) -> ProxySettings
    {
        ProxySettings(.selector(select))
    }

    /// The same, but for these servers, which are reached without a proxy; with ``environment`` besides those of `no_proxy`.
    public func bypassing(_ servers: ProxyBypass) -> ProxySettings {
        var copy = self
        copy.bypass = servers
        return copy
    }

    /// The same, but for the servers of a list like `no_proxy`'s; see ``ProxyBypass``.
    public func bypassing(_ list: String) -> ProxySettings { bypassing(ProxyBypass(list)) }

    /// The same, but for these servers alone: those of `no_proxy` do not count besides.
    public func bypassingOnly(_ servers: ProxyBypass) -> ProxySettings {
        var copy = bypassing(servers)
        copy.replacesExceptions = true
        return copy
    }

    /// The same, and whichever proxy it comes to is told these credentials, in place of any it has.
    public func withCredentials(_ credentials: ProxyCredentials) -> ProxySettings {
        var copy = self
        copy.credentials = credentials
        return copy
    }

    /// The same, and whichever proxy it comes to is told its credentials, or those given here, as this changes them.
    package func changingCredentials(
        _ change: @escaping @Sendable (inout ProxyCredentials) -> Void
    ) -> ProxySettings {
        var copy = self
        copy.change = change
        return copy
    }

    /// The same, and where it comes to an HTTPS proxy, TLS with that proxy demands this, in place of what its own settings
    /// say.
    package func withTLS(_ tls: TLSSettings) -> ProxySettings {
        var copy = self
        copy.tls = tls
        return copy
    }

    /// The same, and whichever proxy it comes to is asked for a tunnel for `http` URLs as well, as curl's
    /// `--proxytunnel`.
    public func tunnellingEverything() -> ProxySettings {
        var copy = self
        copy.tunnelsEverything = true
        return copy
    }

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
    /// - Parameter request: Makes the request, which only a selector wants to see.
    /// - Throws: `.proxyFailed` where the environment's word cannot be read.
    func proxy(
        for url: HTTPURL, _ environment: ProxyEnvironment, request: () -> HTTPRequest
    ) throws(HTTPError) -> ProxyServer? {
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
        return tunnelsEverything ? server.tunnellingEverything() : server
    }
}

extension ProxySettings: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// What they say, without user or password.
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
