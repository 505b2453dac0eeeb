/// Why bytes are no JSON (RFC 8259), and where.
public struct JSONError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What is wrong. More may be added: a `switch` needs a default.
    public enum Reason: String, Hashable, Sendable {
        /// The text ends in the middle of a value; or there is none.
        case unexpectedEnd
        /// A byte stands where none such may: no value, comma, colon or bracket that could be there.
        case unexpectedByte
        /// A number breaks the grammar: a leading zero, a missing digit (RFC 8259 §6).
        case invalidNumber
        /// A backslash is followed by what is no escape (RFC 8259 §7).
        case invalidEscape
        /// A control character stands in a string as it is (RFC 8259 §7).
        case controlCharacter
        /// A string is not UTF-8 (RFC 8259 §8.1).
        case invalidUTF8
        /// An escape is half of a surrogate pair, which no text can hold (RFC 8259 §8.2).
        case loneSurrogate
        /// Arrays and objects are nested deeper than the limit.
        case tooDeep
        /// Something stands behind the value.
        case trailingBytes
    }

    /// What is wrong.
    public let reason: Reason
    /// The byte where it is, counted from 0.
    public let offset: Int

    /// An error.
    public init(reason: Reason, offset: Int) {
        self.reason = reason
        self.offset = offset
    }

    /// What is wrong, and where.
    public var description: String {
        let what =
            switch reason {
            case .unexpectedEnd: "it ends in the middle of a value"
            case .unexpectedByte: "nothing that could stand there"
            case .invalidNumber: "no number"
            case .invalidEscape: "no escape"
            case .controlCharacter: "a control character in a string"
            case .invalidUTF8: "no UTF-8"
            case .loneSurrogate: "half of a surrogate pair"
            case .tooDeep: "nested too deep"
            case .trailingBytes: "something behind the value"
            }
        return "no JSON at byte \(offset): \(what)"
    }
}
