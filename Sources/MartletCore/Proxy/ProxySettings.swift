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
    public static func http(
        _ address: String, credentials: ProxyCredentials? = nil
    ) throws(HTTPURL.ParseError) -> ProxySettings {
        .server(try ProxyURLParser.server(address, required: .http, credentials: credentials))
    }

    /// An HTTP proxy over TLS: `https://[user[:password]@]host[:port]`, where scheme, and port (443), may be missing.
    /// - Parameters:
    ///   - credentials: The credentials for the proxy in place of those in the address.
    ///   - tls: The TLS settings for the proxy, whose certificate must be its own.
    /// - Throws: The error in the address, with its character.
    public static func https(
        _ address: String, credentials: ProxyCredentials? = nil, tls: TLSSettings = TLSSettings()
    ) throws(HTTPURL.ParseError) -> ProxySettings {
        .server(try ProxyURLParser.server(address, required: .https, credentials: credentials, tls: tls))
    }

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
        } catch {
            throw error.located(in: host)
        }
        return .server(
            ProxyServer(kind: .socks5(names), host: parsed.text, port: port, credentials: credentials))
    }

    /// The proxy that a closure returns for each call and each redirect; `nil` for none.
    ///
    /// It is called on the task of the call and must return quickly.
    public static func selector(_ select: @escaping @Sendable (HTTPRequest) -> ProxyServer?) -> ProxySettings
    {
        ProxySettings(rule: .selector(select))
    }

    /// The same settings with one of them changed.
    private func setting<Value>(
        _ setting: WritableKeyPath<ProxySettings, Value>, _ value: Value
    ) -> ProxySettings {
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
    package func changingCredentials(
        _ change: @escaping @Sendable (inout ProxyCredentials) -> Void
    ) -> ProxySettings { setting(\.change, change) }

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
                message: "the variable \(variable.name) names no proxy that can be used: \(error)",
                url: url, underlying: error)
        }
    }
}

/// The servers that are reached without a proxy: the list of `no_proxy`, read as curl reads it.
///
/// Entries are separated by commas and white space:
/// - `example.com`, `.example.com` and `*.example.com`: the name itself and every name below it, on whole labels.
/// - `192.0.2.1`, `2001:db8::1`: that address, if the URL has an address.
/// - `10.0.0.0/8`, `fe80::/10`: all addresses that begin with that number of those bits.
/// - `*`: every server.
///
/// A colon and a port may follow any of them but `*` (an IPv6 address is in brackets then): only that port matches. Case
/// and a trailing dot make no difference. Names are never resolved for this. An invalid entry matches nothing.
public struct ProxyBypass: Hashable, Sendable {
    private struct Entry: Hashable, Sendable {
        enum Pattern: Hashable, Sendable {
            case everything
            /// In lower case, without dots at its ends.
            case name(String)
            /// Addresses of the same length that begin with that number of these bits.
            case network([UInt8], bitCount: Int)
        }

        var pattern: Pattern
        var port: Int?

        var text: String {
            let place =
                switch pattern {
                case .everything: "*"
                case .name(let name): name
                case .network(let bytes, let bitCount) where bytes.count == 4:
                    bytes.map { String($0) }.joined(separator: ".") + "/\(bitCount)"
                case .network(let bytes, let bitCount): "[\(IPv6Groups.text(of: bytes))]/\(bitCount)"
                }
            return port.map { "\(place):\($0)" } ?? place
        }
    }

    /// The servers as a list.
    package var text: String { entries.map(\.text).joined(separator: ",") }

    private let entries: [Entry]

    /// Reads a list.
    public init(_ list: String) {
        entries = list.utf8.split { $0 == UInt8(ascii: ",") || $0 == 0x20 || (0x09...0x0D).contains($0) }
            .compactMap { ProxyBypass.entry(String(decoding: $0, as: UTF8.self)) }
    }

    /// No server.
    public static let none = ProxyBypass("")

    /// Whether no server matches.
    public var isEmpty: Bool { entries.isEmpty }

    /// Whether a server matches.
    /// - Parameters:
    ///   - host: A name, or an address with or without brackets.
    ///   - port: Its port.
    public func contains(host: String, port: Int) -> Bool {
        guard !entries.isEmpty else { return false }
        let name = ProxyBypass.trimmed(ProxyBypass.withoutBrackets(host.lowercased()[...]))
        let address = SocketAddress(literal: String(name), port: 0)?.addressBytes
        return entries.contains { entry in
            if let only = entry.port, only != port { return false }
            switch entry.pattern {
            case .everything: return true
            case .name(let suffix):
                // A dot within an address does not separate labels.
                return address == nil && ProxyBypass.isName(name, within: suffix)
            case .network(let network, let bitCount):
                return address.map { ProxyBypass.isAddress($0, within: network, bitCount: bitCount) } ?? false
            }
        }
    }

    private static func isName(_ name: Substring, within suffix: String) -> Bool {
        let (name, suffix) = (name.utf8, suffix.utf8)
        guard name.count > suffix.count else { return name.elementsEqual(suffix) }
        return name.suffix(suffix.count).elementsEqual(suffix)
            && name.dropLast(suffix.count).last == UInt8(ascii: ".")
    }

    private static func isAddress(_ address: [UInt8], within network: [UInt8], bitCount: Int) -> Bool {
        guard address.count == network.count else { return false }
        let whole = bitCount / 8
        guard address.prefix(whole) == network.prefix(whole) else { return false }
        let rest = bitCount % 8
        return rest == 0 || (address[whole] ^ network[whole]) >> UInt8(8 - rest) == 0
    }

    // MARK: Reading

    private static func entry(_ text: String) -> Entry? {
        if text == "*" { return Entry(pattern: .everything) }
        var rest = text.lowercased()[...]
        var port: Int?
        // An IPv6 address without brackets has more than one colon, and no port.
        let isBare = rest.first != "[" && rest.utf8.count(where: { $0 == UInt8(ascii: ":") }) > 1
        if !isBare, let colon = rest.lastIndex(of: ":"), !rest[colon...].contains("]") {
            guard let number = number(rest[rest.index(after: colon)...]), (1...65_535).contains(number) else {
                return nil
            }
            port = number
            rest = rest[..<colon]
        }
        var bitCount: Int?
        if let slash = rest.firstIndex(of: "/") {
            guard let number = number(rest[rest.index(after: slash)...]) else { return nil }
            bitCount = number
            rest = rest[..<slash]
        }
        rest = withoutBrackets(rest)
        if let address = SocketAddress(literal: String(rest), port: 0)?.addressBytes {
            let bitCount = bitCount ?? address.count * 8
            guard bitCount <= address.count * 8 else { return nil }
            return Entry(pattern: .network(address, bitCount: bitCount), port: port)
        }
        guard bitCount == nil else { return nil }
        if rest.hasPrefix("*.") { rest = rest.dropFirst() }
        if rest.first == "." { rest = rest.dropFirst() }
        let name = trimmed(rest)
        return name.isEmpty ? nil : Entry(pattern: .name(String(name)), port: port)
    }

    /// A short number of plain digits.
    private static func number(_ text: Substring) -> Int? {
        let isPlain = text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        return isPlain && (1...5).contains(text.utf8.count) ? Int(text) : nil
    }

    private static func withoutBrackets(_ text: Substring) -> Substring {
        text.hasPrefix("[") && text.hasSuffix("]") ? text.dropFirst().dropLast() : text
    }

    /// Without the dot of the root.
    private static func trimmed(_ name: Substring) -> Substring {
        name.hasSuffix(".") ? name.dropLast() : name
    }
}
