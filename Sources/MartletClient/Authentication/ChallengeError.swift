/// Where a field about authentication is not what the RFCs have it be.
///
/// It says nothing of what stood there: such fields hold what is between one server and one user.
public struct ChallengeError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What is wrong.
    public enum Code: String, Hashable, Sendable {
        /// Something other than a scheme or a parameter's name.
        case notAToken
        /// A parameter before any scheme.
        case parameterWithoutScheme
        /// A quoted string that does not end.
        case unterminatedString
        /// A control byte in a value.
        case controlByte
        /// Something behind a value that is no comma.
        case junkBehindValue
        /// A parameter for the second time, with another value.
        case repeatedParameter
        /// A parameter behind a token68, which stands for all of them.
        case parameterBesideToken
        /// More challenges, or more parameters of one, than are read.
        case tooMany
        /// A parameter that is longer than what is read.
        case tooLong
    }

    /// The field's name.
    public let field: String
    /// Which of the fields of this name it is, from 0.
    public let fieldIndex: Int
    /// The byte in the field's value, from 0.
    public let position: Int
    /// What is wrong there.
    public let code: Code

    /// The place and what is wrong there, without what stood there.
    public var description: String {
        let ordinal = fieldIndex == 0 ? "" : " (the one at index \(fieldIndex))"
        return "\(field)\(ordinal), byte \(position): \(text)"
    }

    private var text: String {
        switch code {
        case .notAToken: "expected a scheme or a parameter's name"
        case .parameterWithoutScheme: "a parameter before any scheme"
        case .unterminatedString: "a quoted string that does not end"
        case .controlByte: "a control byte in a value"
        case .junkBehindValue: "expected a comma behind the value"
        case .repeatedParameter: "a parameter for the second time, with another value"
        case .parameterBesideToken: "a parameter behind a token"
        case .tooMany: "more challenges or parameters than are read"
        case .tooLong: "a parameter longer than what is read"
        }
    }
}
