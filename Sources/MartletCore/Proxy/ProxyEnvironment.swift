import MartletURL
import MartletTransport

/// The proxies that the process's environment names, as they were when the session was made.
///
/// `http_proxy` counts in lower case alone: in a CGI program `HTTP_PROXY` is what a client sent as its `Proxy` field, and
/// would let that client choose the proxy (CVE-2016-5385). `https_proxy`, `all_proxy` and `no_proxy` count in both cases,
/// the lower first. A variable that is empty is none.
struct ProxyEnvironment: Sendable {
    /// A variable and what it names.
    struct Variable: Sendable {
        let name: String
        let server: Result<ProxyServer, HTTPURL.ParseError>
    }

    /// For `http` URLs; `nil` where there is none.
    let http: Variable?
    /// For `https` URLs; likewise.
    let https: Variable?
    /// The servers reached without.
    let bypass: ProxyBypass

    /// Reads the variables.
    /// - Parameter value: Gives the value of a variable; `nil` when it is not set, or empty.
    init(reading value: (String) -> String? = { ProcessEnvironment.value(of: $0) }) {
        func first(_ names: String...) -> Variable? {
            for name in names {
                guard let text = value(name), !text.isEmpty else { continue }
                do throws(HTTPURL.ParseError) {
                    return Variable(name: name, server: .success(try ProxyServer(text)))
                } catch {
                    return Variable(name: name, server: .failure(error))
                }
            }
            return nil
        }
        http = first("http_proxy", "all_proxy", "ALL_PROXY")
        https = first("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
        bypass = ProxyBypass(value("no_proxy") ?? value("NO_PROXY") ?? "")
    }

    /// Whether it names no proxy at all.
    var isEmpty: Bool { http == nil && https == nil }

    /// The proxy for a URL.
    /// - Parameter heedsExceptions: Whether `no_proxy` counts.
    /// - Throws: `.proxyFailed` where the variable that applies cannot be read.
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
                origin: url.origin.description, underlying: error)
        }
    }
}

/// Reads what users and environments write for a proxy: `[scheme://][user[:password]@]host[:port][/…]`.
///
/// Strict where curl guesses: control characters and unknown schemes are errors. A path and a query are passed over. The
/// schemes are
/// `http` (also where none is written), `https`, `socks5` and `socks5h`. Without a port it is 443 for `https` and 1080
/// for all others, as in curl.
struct ProxyURLParser {
    private let bytes: [UInt8]

    /// Takes the input and refuses what may stand nowhere in it.
    private init(_ input: String) throws(URLFault) {
        guard input.utf8.count <= HTTPURL.lengthLimit else {
            throw URLFault(
                .tooLong, at: HTTPURL.lengthLimit,
                "a proxy's address is longer than \(HTTPURL.lengthLimit) bytes")
        }
        bytes = Array(input.utf8)
        guard !bytes.isEmpty else { throw URLFault(.empty, at: 0, "the proxy's address is empty") }
        for (offset, byte) in bytes.enumerated() where byte <= 0x20 || byte == 0x7F || byte == 0x5C {
            throw URLFault(
                .forbiddenCharacter, at: offset,
                "spaces, control characters and backslashes are not allowed in a proxy's address")
        }
    }

    /// The proxy that is written.
    /// - Parameters:
    ///   - required: The scheme it must have where one is written, and has where none is.
    ///   - tls: What TLS with an HTTPS proxy demands.
    static func server(
        _ input: String, required: ProxyServer.Kind? = nil, tls: TLSSettings = TLSSettings()
    ) throws(HTTPURL.ParseError) -> ProxyServer {
        do throws(URLFault) {
            return try ProxyURLParser(input).server(required: required, tls: tls)
        } catch {
            throw error.located(in: input)
        }
    }

    private func server(required: ProxyServer.Kind?, tls: TLSSettings) throws(URLFault) -> ProxyServer {
        var kind = required ?? .http
        var position = 0
        if let end = schemeEnd {
            kind = try ProxyURLParser.kind(bytes[..<end])
            if let required, required != kind {
                throw URLFault(.unsupportedScheme, at: 0, "this is the scheme of another kind of proxy")
            }
            position = end + 3
        }
        let end = bytes[position...].firstIndex { "/?#".utf8.contains($0) } ?? bytes.endIndex
        // What follows says nothing of a proxy; unless it was meant for a name or a password, of which it would be a part.
        if bytes[end...].contains(UInt8(ascii: "@")) {
            throw URLFault(
                .forbiddenCharacter, at: end,
                "in a proxy's user or password, write %23, %2F and %3F for what ends them")
        }
        let authority = try URLAuthority(bytes[position..<end])
        let credentials = authority.userInfo.map { info in
            ProxyCredentials(
                user: PercentEncoding.decoded(info.user),
                password: info.password.map { PercentEncoding.decoded($0) } ?? "")
        }
        return ProxyServer(
            kind: kind, host: authority.host.text, port: authority.port ?? (kind == .https ? 443 : 1080),
            credentials: credentials, tls: tls)
    }

    /// Where the scheme ends, if one is written: at the first `://`, unless that stands behind an `@`.
    private var schemeEnd: Int? {
        guard let colon = bytes.firstIndex(where: { ":@/?#[".utf8.contains($0) }),
            bytes[colon...].starts(with: "://".utf8)
        else { return nil }
        return colon
    }

    private static func kind(_ scheme: ArraySlice<UInt8>) throws(URLFault) -> ProxyServer.Kind {
        let name = String(decoding: scheme, as: UTF8.self).lowercased()
        switch name {
        case "http": return .http
        case "https": return .https
        case "socks5": return .socks5(.resolvedLocally)
        case "socks5h": return .socks5(.resolvedRemotely)
        default:
            throw URLFault(
                .unsupportedScheme, at: 0,
                "a proxy's scheme is http, https, socks5 or socks5h; this one is none of them")
        }
    }
}

extension ProxyServer {
    /// A proxy by its address: `[scheme://][user[:password]@]host[:port]`, as curl's `--proxy` takes it.
    ///
    /// The schemes are `http` (also where none is written), `https`, `socks5` (names looked up here) and `socks5h` (names
    /// looked up by the proxy). Without a port it is 443 for `https`, else 1080. User and password are percent-decoded.
    ///
    /// - Parameter tls: What TLS with an HTTPS proxy demands.
    /// - Throws: What is wrong, and at which character.
    public init(_ address: String, tls: TLSSettings = TLSSettings()) throws(HTTPURL.ParseError) {
        self = try ProxyURLParser.server(address, tls: tls)
    }
}
