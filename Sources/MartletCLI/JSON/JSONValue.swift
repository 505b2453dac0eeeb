/// A value of JSON (RFC 8259) that keeps the order of its members and the text of its numbers.
enum JSONValue: Sendable {
    case null
    case bool(Bool)
    /// A number as it was written.
    case number(String)
    case string(String)
    case array([JSONValue])
    case object([(String, JSONValue)])
    /// Bytes as a string: each is the character of its number. Only written; a reader gives `string`.
    case latin1([UInt8])

    /// A string, or nothing but null.
    static func optional(_ text: String?) -> JSONValue {
        text.map { .string($0) } ?? .null
    }

    /// A whole number.
    static func number(_ number: some BinaryInteger) -> JSONValue { .number(String(number)) }
}
