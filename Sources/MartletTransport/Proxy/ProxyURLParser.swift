public import MartletURL

/// A parser for proxy addresses: `[scheme://][user[:password]@]host[:port][/…]`.
///
/// The parser is stricter than curl: control characters and unknown schemes are errors. A path and a query are ignored.
/// The schemes are `http` (the default), `https`, `socks5` and `socks5h`. The default port is 443 for `https` and 1080
/// for all others, as in curl.
package struct ProxyURLParser {
    private let bytes: [UInt8]

    /// Rejects an empty or too long input, and bytes that are not allowed anywhere in an address.
    private init(_ input: String) throws(RawURLParseError) {
        guard input.utf8.count <= HTTPURL.lengthLimit else {
            throw RawURLParseError(
                .tooLong, at: HTTPURL.lengthLimit, "a proxy's address is longer than \(HTTPURL.lengthLimit) bytes")
        }
        bytes = Array(input.utf8)
        guard !bytes.isEmpty else { throw RawURLParseError(.empty, at: 0, "the proxy's address is empty") }
        for (offset, byte) in bytes.enumerated() where byte <= 0x20 || byte == 0x7F || byte == 0x5C {
            throw RawURLParseError(
                .forbiddenCharacter, at: offset,
                "spaces, control characters and backslashes are not allowed in a proxy's address")
        }
    }

    /// Parses an address.
    /// - Parameters:
    ///   - required: The required scheme, also used as the default.
    ///   - credentials: Credentials that replace those in the address.
    package static func server(
        _ input: String, required: ProxyServer.Kind? = nil, credentials: ProxyCredentials? = nil,
        tls: TLSSettings = TLSSettings()
    ) throws(HTTPURL.ParseError) -> ProxyServer {
        do throws(RawURLParseError) {
            let server = try ProxyURLParser(input).server(required: required, tls: tls)
            return credentials.map { server.withCredentials($0) } ?? server
        } catch { throw error.located(in: input) }
    }

    private func server(required: ProxyServer.Kind?, tls: TLSSettings) throws(RawURLParseError) -> ProxyServer {
        var kind = required ?? .http
        var position = 0
        // “://” ends a scheme only if no other delimiter comes before it.
        if let end = bytes.firstIndex(where: { ":@/?#[".utf8.contains($0) }), bytes[end...].starts(with: "://".utf8) {
            let scheme = String(decoding: bytes[..<end], as: UTF8.self).lowercased()
            guard let named = ProxyServer.Kind.all.first(where: { $0.scheme == scheme }) else {
                let shown = scheme.utf8.count <= 20 ? ", but this one is “\(scheme)”" : ""
                throw RawURLParseError(
                    .unsupportedScheme, at: 0, "a proxy's scheme must be http, https, socks5 or socks5h\(shown)")
            }
            kind = named
            if let required, required != kind {
                throw RawURLParseError(
                    .unsupportedScheme, at: 0, "this proxy's scheme must be \(required.scheme), but it is “\(scheme)”")
            }
            position = end + 3
        }
        let end = bytes[position...].firstIndex { "/?#".utf8.contains($0) } ?? bytes.endIndex
        // Path and query are ignored, unless they contain an “@”: then they were meant as a part of the credentials.
        if bytes[end...].contains(UInt8(ascii: "@")) {
            throw RawURLParseError(
                .forbiddenCharacter, at: end, "in a proxy's user or password, write # as %23, / as %2F and ? as %3F")
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
}

extension ProxyServer {
    /// Creates a proxy from its address: `[scheme://][user[:password]@]host[:port]`, as in curl's `--proxy`.
    ///
    /// The schemes are `http` (the default), `https`, `socks5` (names are resolved locally) and `socks5h` (names are
    /// resolved by the proxy). The default port is 443 for `https`, else 1080. User and password are percent-decoded.
    ///
    /// - Parameter tls: The TLS settings for an HTTPS proxy.
    /// - Throws: The first error in the address, with its position.
    public init(_ address: String, tls: TLSSettings = TLSSettings()) throws(HTTPURL.ParseError) {
        self = try ProxyURLParser.server(address, tls: tls)
    }
}
