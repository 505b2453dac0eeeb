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
