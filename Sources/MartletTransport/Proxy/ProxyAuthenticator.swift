import COpenSSL

/// Makes the values of `Proxy-Authorization` (RFC 9110 §11.7).
///
/// Its state belongs to proxies alone: no server's challenge may reach it, and none of its values a server.
package protocol ProxyAuthenticator: Sendable {
    /// The value that is sent preemptively.
    /// - Returns: The field's value; `nil` to send none.
    func preemptiveValue(for request: ProxyAuthenticationRequest) -> String?

    /// The value that answers a 407; called once per request.
    /// - Parameters:
    ///   - challenges: The values of its `Proxy-Authenticate` fields, unchanged.
    ///   - refused: The value of the rejected request; `nil` if it had none.
    /// - Returns: The field's value for a retry; `nil` if a retry would be rejected again.
    func value(
        answering challenges: [String], refused: String?, for request: ProxyAuthenticationRequest
    ) -> String?
}

/// A request that needs credentials for a proxy.
package struct ProxyAuthenticationRequest: Sendable {
    /// The proxy, with its credentials.
    package var proxy: ProxyServer
    /// The method in the request line.
    package var method: String
    /// The target in the request line: `host:port` of a CONNECT, else an absolute URL.
    package var target: String

    /// Creates a request.
    package init(proxy: ProxyServer, method: String, target: String) {
        self.proxy = proxy
        self.method = method
        self.target = target
    }
}

/// Authenticates by `Basic` (RFC 7617), in UTF-8, without state.
package struct BasicProxyAuthenticator: ProxyAuthenticator {
    package func preemptiveValue(for request: ProxyAuthenticationRequest) -> String? {
        guard let credentials = request.proxy.credentials, credentials.sendsPreemptively,
            !credentials.requiresDigest
        else { return nil }
        return BasicProxyAuthenticator.value(of: credentials)
    }

    package func value(
        answering challenges: [String], refused: String?, for request: ProxyAuthenticationRequest
    ) -> String? {
        guard let credentials = request.proxy.credentials, !credentials.requiresDigest,
            challenges.contains(where: { BasicProxyAuthenticator.names("basic", in: $0) })
        else { return nil }
        let value = BasicProxyAuthenticator.value(of: credentials)
        // A rejected value is not sent again.
        return value == refused ? nil : value
    }

    /// The field's value for credentials; `nil` for a user name with a colon, which would be read as another's.
    package static func value(of credentials: ProxyCredentials) -> String? {
        guard !credentials.user.utf8.contains(UInt8(ascii: ":")) else { return nil }
        return "Basic " + Base64.encoded(Array("\(credentials.user):\(credentials.password)".utf8))
    }

    /// Whether a scheme, in lower case, is among those of a challenge field, without parsing the parameters (RFC 9110
    /// §11.6.1). One pass, whatever the field contains: commas inside of quotes separate nothing.
    private static func names(_ scheme: String, in field: String) -> Bool {
        let wanted = Array(scheme.utf8)
        var isAtStart = true
        var isQuoted = false
        var isEscaped = false
        var token: [UInt8] = []
        for byte in field.utf8 {
            if isQuoted {
                isQuoted = isEscaped || byte != UInt8(ascii: "\"")
                isEscaped = !isEscaped && byte == UInt8(ascii: "\\")
                continue
            }
            switch byte {
            case UInt8(ascii: ","):
                if isAtStart, token == wanted { return true }
                isAtStart = true
                token = []
            case UInt8(ascii: " "), 0x09:
                // A scheme is the first word of an element; the name of a parameter is followed by `=`.
                if isAtStart, !token.isEmpty {
                    if token == wanted { return true }
                    isAtStart = false
                }
            case UInt8(ascii: "\""):
                isQuoted = true
                isAtStart = false
            default:
                // One more byte than the scheme has is enough to tell them apart.
                guard isAtStart, token.count <= wanted.count else { continue }
                token.append((UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte)
            }
        }
        return isAtStart && token == wanted
    }
}

/// Base64 with padding (RFC 4648 §4).
enum Base64 {
    /// The text for bytes.
    static func encoded(_ bytes: [UInt8]) -> String {
        OpenSSLLibrary.load()
        // The text, and a zero that OpenSSL appends.
        var output = [UInt8](repeating: 0, count: (bytes.count + 2) / 3 * 4 + 1)
        let count = unsafe EVP_EncodeBlock(&output, bytes, Int32(clamping: bytes.count))
        return String(decoding: output[..<Int(max(0, count))], as: UTF8.self)
    }
}
