import MartletWire

/// A challenge of a server or a proxy: one scheme with its parameters (RFC 9110 §11.3).
public struct HTTPChallenge: Hashable, Sendable {
    /// The scheme as written, such as `Digest`. Schemes are compared without regard to case: ``isScheme(_:)``.
    public let scheme: String
    /// The token that replaces parameters, as in `Negotiate YWJj`; `nil` for a challenge with parameters.
    public internal(set) var token68: String?
    /// The parameters in the order received, with distinct names.
    public internal(set) var parameters: [AuthenticationParameter] = []

    /// The realm: the name of the protection space at the origin (RFC 9110 §11.5); `nil` if it is missing.
    public var realm: String? { self["realm"] }

    /// The value of a parameter, with its name in any case; `nil` if it is missing.
    public subscript(name: String) -> String? { parameter(name)?.value }

    /// Whether the challenge has this scheme, in any case.
    public func isScheme(_ name: String) -> Bool { scheme.lowercased() == name.lowercased() }

    func parameter(_ name: String) -> AuthenticationParameter? {
        let name = name.lowercased()
        return parameters.first { $0.name == name }
    }
}

extension HTTPChallenge: CustomStringConvertible {
    /// The scheme and the realm. Other parameters are omitted, because they may be bound to the user.
    public var description: String { realm.map { "\(scheme) realm=\($0.debugDescription)" } ?? scheme }
}

/// A name and a value in a challenge, or in the server's information after authentication (RFC 9110 §11.2).
public struct AuthenticationParameter: Hashable, Sendable {
    /// The name in lower case.
    public let name: String
    /// The bytes of the value without quotes and escapes, which Digest hashes.
    package let rawValue: [UInt8]

    /// The value without quotes and escapes, as UTF-8 if it is valid, else as Latin-1.
    public var value: String { ByteText.string(rawValue[...]) }
}

extension AuthenticationParameter: CustomStringConvertible, CustomReflectable {
    /// The name without the value.
    public var description: String { name }
    /// The mirror, with only the name: nonces and tokens do not belong in logs.
    public var customMirror: Mirror { Mirror(self, children: ["name": name]) }
}

/// An error in an authentication field. It does not contain the text of the field, which is confidential.
public struct ChallengeError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of error.
    public enum Code: String, Hashable, Sendable {
        /// A token is missing: the text is neither a scheme nor a parameter's name.
        case notAToken
        /// A parameter comes before any scheme.
        case parameterWithoutScheme
        /// A quoted string is not closed.
        case unterminatedString
        /// A value contains a control byte.
        case controlByte
        /// A value is followed by bytes other than a comma.
        case unexpectedTextAfterValue
        /// A parameter is repeated with another value.
        case repeatedParameter
        /// A parameter follows a token68, which replaces all parameters.
        case parameterAfterToken68
        /// The number of challenges, or of parameters of one challenge, exceeds its limit.
        case tooMany
        /// The size of a parameter exceeds its limit.
        case tooLong
    }

    /// The name of the field.
    public let field: String
    /// The index among the fields of this name, from 0.
    public let fieldIndex: Int
    /// The byte offset in the field's value, from 0.
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
            case .unterminatedString: "a quoted string is not closed"
            case .controlByte: "a control byte in a value"
            case .unexpectedTextAfterValue: "expected a comma after the value"
            case .repeatedParameter: "a parameter is repeated with another value"
            case .parameterAfterToken68: "a parameter after a token"
            case .tooMany: "too many challenges or parameters"
            case .tooLong: "a parameter above the size limit"
            }
        return "\(field)\(ordinal), byte \(position): \(text)"
    }
}
