/// A netrc that cannot be understood. It does not repeat what the file says.
public struct NetrcError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What is wrong.
    public enum Code: String, Hashable, Sendable {
        /// A word that must be followed by another is the last one.
        case missingValue
        /// A quoted value that does not end on its line.
        case unterminatedQuote
        /// Bytes that are not UTF-8.
        case invalidText
        /// A control character outside quotes.
        case controlCharacter
        /// More than ``NetrcFile/byteLimit`` bytes.
        case tooLarge
    }

    /// The line, from 1.
    public let line: Int
    /// What is wrong there.
    public let code: Code

    /// The line and what is wrong there.
    public var description: String {
        let text =
            switch code {
            case .missingValue: "a value is missing"
            case .unterminatedQuote: "a quoted value does not end on its line"
            case .invalidText: "a value is not UTF-8"
            case .controlCharacter: "a control character outside quotes"
            case .tooLarge: "the file is larger than \(NetrcFile.byteLimit) bytes"
            }
        return "netrc, line \(line): \(text)"
    }
}
