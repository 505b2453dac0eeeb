/// What makes the values of `Proxy-Authorization` (RFC 9110 §11.7).
///
/// What it remembers belongs to proxies alone: no server's challenge may reach it, and none of its values a server.
package protocol ProxyAuthenticator: Sendable {
    /// What a request says before it is asked for credentials.
    /// - Returns: The field's value; `nil` to send none.
    func unaskedValue(for request: ProxyAuthenticationRequest) -> String?

    /// What answers a 407; called once for a request.
    /// - Parameters:
    ///   - challenges: The values of its `Proxy-Authenticate` fields, as they came.
    ///   - refused: The value that the refused request had; `nil` where it had none.
    /// - Returns: The field's value for another try; `nil` where another would be refused again.
    func value(
        answering challenges: [String], refused: String?, for request: ProxyAuthenticationRequest
    ) -> String?
}

/// A request that a proxy is to be convinced of.
package struct ProxyAuthenticationRequest: Sendable {
    /// The proxy, with its credentials.
    package var proxy: ProxyServer
    /// The method in the request line.
    package var method: String
    /// The target in the request line: `host:port` of a CONNECT, else an absolute URL.
    package var target: String

    /// A request.
    package init(proxy: ProxyServer, method: String, target: String) {
        self.proxy = proxy
        self.method = method
        self.target = target
    }
}

/// Answers proxies by `Basic` (RFC 7617), in UTF-8, and remembers nothing.
package struct BasicProxyAuthenticator: ProxyAuthenticator {
    /// The authenticator.
    package init() {}

    package func unaskedValue(for request: ProxyAuthenticationRequest) -> String? {
        guard let credentials = request.proxy.credentials, credentials.isShownUnasked,
            !credentials.isForDigestAlone
        else { return nil }
        return BasicProxyAuthenticator.value(of: credentials)
    }

    package func value(
        answering challenges: [String], refused: String?, for request: ProxyAuthenticationRequest
    ) -> String? {
        guard let credentials = request.proxy.credentials, !credentials.isForDigestAlone,
            challenges.contains(where: { ChallengeSchemes.contains("basic", in: $0) })
        else { return nil }
        let value = BasicProxyAuthenticator.value(of: credentials)
        // What was refused once is not offered again.
        return value == refused ? nil : value
    }

    /// The field's value for credentials; `nil` for a user name with a colon, which would be read as another's.
    package static func value(of credentials: ProxyCredentials) -> String? {
        guard !credentials.user.utf8.contains(UInt8(ascii: ":")) else { return nil }
        return "Basic " + base64(Array("\(credentials.user):\(credentials.password)".utf8))
    }

    /// Bytes as Base64 with padding (RFC 4648 §4).
    static func base64(_ bytes: [UInt8]) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        var output: [UInt8] = []
        output.reserveCapacity((bytes.count + 2) / 3 * 4)
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            var bits: UInt32 = 0
            for offset in 0..<3 {
                bits = bits << 8 | (offset < group.count ? UInt32(group[start + offset]) : 0)
            }
            for digit in 0..<4 {
                let value = Int(bits >> UInt32(18 - 6 * digit) & 63)
                output.append(digit <= group.count ? alphabet[value] : UInt8(ascii: "="))
            }
        }
        return String(decoding: output, as: UTF8.self)
    }
}

/// A user name and a password for a proxy, which are told to that proxy and to nobody else.
///
/// Neither is part of any description, mirror or log line.
public struct ProxyCredentials: Hashable, Sendable {
    /// The user name.
    public var user: String

    /// The password; may be empty.
    public var password: String

    /// Whether an HTTP proxy is told them before it asks, by `Basic` (RFC 7617); `true` by default, as curl has it.
    ///
    /// It spares a round trip. A proxy that wants `Digest` then sees the password all the same, which it would not
    /// where this is `false`. SOCKS proxies are always asked first.
    public var isShownUnasked: Bool

    /// Whether an HTTP proxy is told them by `Digest` (RFC 7616) alone, when it asks, so that it never sees the password;
    /// `false` by default. A proxy that wants `Basic` then goes without, and refuses.
    ///
    /// SOCKS proxies know one way, in which the password is sent as it is; this changes nothing about them.
    public var isForDigestAlone: Bool

    /// Credentials.
    public init(user: String, password: String, isShownUnasked: Bool = true, isForDigestAlone: Bool = false) {
        self.user = user
        self.password = password
        self.isShownUnasked = isShownUnasked
        self.isForDigestAlone = isForDigestAlone
    }
}

extension ProxyCredentials: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Says that they are credentials, and no more.
    public var description: String { "credentials for a proxy" }

    /// The same as ``description``.
    public var debugDescription: String { description }

    /// Shows nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// The schemes that a challenge field names, found without a look at their parameters (RFC 9110 §11.6.1).
///
/// One pass, whatever the field holds: commas inside of quotes separate nothing.
enum ChallengeSchemes {
    /// Whether a scheme, in lower case, is among those of a field.
    static func contains(_ scheme: String, in field: String) -> Bool {
        let wanted = Array(scheme.utf8)
        var isAtStart = true
        var isQuoted = false
        var isEscaped = false
        var token: [UInt8] = []
        for byte in field.utf8 {
            if isQuoted {
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    isQuoted = false
                }
                continue
            }
            switch byte {
            case UInt8(ascii: ","):
                if isAtStart, token == wanted { return true }
                isAtStart = true
                token = []
            case UInt8(ascii: " "), 0x09:
                // A scheme is the first word of an element; a parameter's name is followed by its sign.
                if isAtStart, !token.isEmpty {
                    if token == wanted { return true }
                    isAtStart = false
                }
            case UInt8(ascii: "\""):
                isQuoted = true
                isAtStart = false
            default:
                guard isAtStart else { continue }
                // Longer than any scheme worth finding: what it is does not matter any more.
                if token.count <= wanted.count { token.append(lowercased(byte)) }
            }
        }
        return isAtStart && token == wanted
    }

    private static func lowercased(_ byte: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
    }
}
