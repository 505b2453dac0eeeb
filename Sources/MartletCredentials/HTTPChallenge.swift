import MartletWire

/// A challenge of a server or a proxy: one scheme with its parameters (RFC 9110 §11.3).
public struct HTTPChallenge: Hashable, Sendable {
    /// The scheme as written, such as `Digest`. Schemes are compared without regard to case: ``isScheme(_:)``.
    public let scheme: String
    /// The token in place of parameters, as in `Negotiate YWJj`; `nil` for a challenge with parameters.
    public internal(set) var token68: String?
    /// The parameters in the order they came, with distinct names.
    public internal(set) var parameters: [AuthenticationParameter] = []

    /// The protection space at its origin that the challenge is for (RFC 9110 §11.5); `nil` if it names none.
    public var realm: String? { self["realm"] }

    /// The value of a parameter, its name in any case; `nil` if there is none.
    public subscript(name: String) -> String? { parameter(name)?.value }

    /// Whether the challenge has this scheme, in any case.
    public func isScheme(_ name: String) -> Bool { scheme.lowercased() == name.lowercased() }

    /// A parameter by its name.
    func parameter(_ name: String) -> AuthenticationParameter? {
        let name = name.lowercased()
        return parameters.first { $0.name == name }
    }
}

extension HTTPChallenge: CustomStringConvertible {
    /// The scheme and the realm. Other parameters may be bound to the user, and are omitted.
    public var description: String { realm.map { "\(scheme) realm=\($0.debugDescription)" } ?? scheme }
}

/// A name and a value in a challenge, or in the server's information after it (RFC 9110 §11.2).
public struct AuthenticationParameter: Hashable, Sendable {
    /// The name in lower case.
    public let name: String
    /// The bytes of the value without quotes and escapes, which Digest hashes.
    package let rawValue: [UInt8]

    /// The value without quotes and escapes, as UTF-8 if it is valid, else as Latin-1.
    public var value: String { ByteText.string(rawValue[...]) }
}

extension AuthenticationParameter: CustomStringConvertible, CustomReflectable {
    /// The name alone.
    public var description: String { name }
    /// The name alone: nonces and tokens do not belong in logs.
    public var customMirror: Mirror { Mirror(self, children: ["name": name]) }
}

/// An error in a field about authentication, without the field's text, which is confidential between one server and one user.
public struct ChallengeError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of error.
    public enum Code: String, Hashable, Sendable {
        /// Neither a scheme nor a parameter's name.
        case notAToken
        /// A parameter before any scheme.
        case parameterWithoutScheme
        /// A quoted string that does not end.
        case unterminatedString
        /// A control byte in a value.
        case controlByte
        /// Bytes other than a comma after a value.
        case unexpectedTextAfterValue
        /// A second parameter of one name with another value.
        case repeatedParameter
        /// A parameter after a token68, which replaces all parameters.
        case parameterAfterToken68
        /// More challenges, or more parameters of one, than are read.
        case tooMany
        /// A parameter that is longer than the limit.
        case tooLong
    }

    /// The field's name.
    public let field: String
    /// The index among the fields of this name, from 0.
    public let fieldIndex: Int
    /// The byte in the field's value, from 0.
    public let position: Int
    /// The kind of error.
    public let code: Code

    /// The error and its position, without the field's text.
    public var description: String {
        let ordinal = fieldIndex == 0 ? "" : " (the one at index \(fieldIndex))"
        let text =
            switch code {
            case .notAToken: "expected a scheme or a parameter's name"
            case .parameterWithoutScheme: "a parameter before any scheme"
            case .unterminatedString: "a quoted string that does not end"
            case .controlByte: "a control byte in a value"
            case .unexpectedTextAfterValue: "expected a comma after the value"
            case .repeatedParameter: "a parameter for the second time, with another value"
            case .parameterAfterToken68: "a parameter after a token"
            case .tooMany: "more challenges or parameters than are read"
            case .tooLong: "a parameter longer than what is read"
            }
        return "\(field)\(ordinal), byte \(position): \(text)"
    }
}
