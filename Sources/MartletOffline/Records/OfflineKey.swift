import MartletClient

/// The value of `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header §2.1): a string of RFC 8941 §3.3.3.
enum OfflineKey {
    /// The value for a request; `nil` for none. One that the request has stays as it is.
    static func text(_ key: OfflineSubmission.Key, of request: HTTPRequest) -> String? {
        if let own = request.headerFields[.idempotencyKey], !own.isEmpty { return own }
        switch key {
        case .none: return nil
        case .value(let text): return quoted(text)
        case .automatic: return request.method.isIdempotent ? nil : quoted(random())
        }
    }

    /// A text as a quoted string, unless it is one. What cannot stand in one becomes a question mark.
    static func quoted(_ text: String) -> String {
        if text.utf8.count >= 2, text.hasPrefix("\""), text.hasSuffix("\"") { return text }
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": quoted += "\\\(scalar)"
            case " "..."~": quoted.unicodeScalars.append(scalar)
            default: quoted += "?"
            }
        }
        return quoted + "\""
    }

    /// 128 random bits in hexadecimal.
    private static func random() -> String {
        var generator = SystemRandomNumberGenerator()
        return (0..<2).map { _ in
            let digits = String(generator.next(), radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }
}
