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
        if isQuoted(text) { return text }
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

    private static func isQuoted(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        guard bytes.count >= 2, bytes.first == UInt8(ascii: "\""), bytes.last == UInt8(ascii: "\"") else {
            return false
        }
        var isEscaped = false
        for byte in bytes[1..<(bytes.count - 1)] {
            switch byte {
            case UInt8(ascii: "\\"): isEscaped.toggle()
            case UInt8(ascii: "\""):
                guard isEscaped else { return false }
                isEscaped = false
            case 0x20...0x7e:
                // Only these two are escaped.
                guard !isEscaped else { return false }
            default: return false
            }
        }
        return !isEscaped
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
