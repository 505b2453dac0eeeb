/// What a request's repetitions are known by (`Idempotency-Key`, draft-ietf-httpapi-idempotency-key-header).
public struct IdempotencyKey: Hashable, Sendable {
    private enum Kind: Hashable, Sendable {
        case random
        case value(String)
    }

    private let kind: Kind

    /// A key of 128 random bits, drawn for each call.
    public static let random = IdempotencyKey(kind: .random)

    /// A key of one's own.
    public static func value(_ text: String) -> IdempotencyKey {
        IdempotencyKey(kind: .value(text))
    }

    /// The key; `nil` for one that is drawn for each call.
    var text: String? {
        if case .value(let text) = kind { text } else { nil }
    }

    /// The fields with the key, unless they have one.
    func added(to fields: HTTPFields) -> HTTPFields {
        guard !fields.contains(.idempotencyKey) else { return fields }
        var fields = fields
        switch kind {
        case .value(let text): fields[.idempotencyKey] = text
        case .random:
            var generator = SystemRandomNumberGenerator()
            let parts = (0..<2).map { _ in
                let digits = String(generator.next(), radix: 16)
                return String(repeating: "0", count: 16 - digits.count) + digits
            }
            fields[.idempotencyKey] = parts.joined()
        }
        return fields
    }
}
