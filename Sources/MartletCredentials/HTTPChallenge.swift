import MartletWire

/// What a server or a proxy asks for: one scheme, and what it says about it (RFC 9110 §11.3).
public struct HTTPChallenge: Hashable, Sendable {
    /// The scheme as it was written, such as `Digest`. Schemes are compared without regard to case: ``isScheme(_:)``.
    public let scheme: String
    /// What stands in place of parameters, as in `Negotiate YWJj`; `nil` for a challenge with parameters.
    public internal(set) var token68: String?
    /// The parameters in the order they came; none has the name of another.
    public internal(set) var parameters: [AuthenticationParameter]

    /// A challenge.
    init(scheme: String, token68: String? = nil, parameters: [AuthenticationParameter] = []) {
        self.scheme = scheme
        self.token68 = token68
        self.parameters = parameters
    }

    /// The protection space at its origin that the challenge is for (RFC 9110 §11.5); `nil` when it names none.
    public var realm: String? { self["realm"] }

    /// The value of a parameter, whose name is compared without regard to case; `nil` when there is none.
    public subscript(name: String) -> String? { parameter(name)?.value }

    /// Whether this is the scheme of the challenge, in whatever case.
    public func isScheme(_ name: String) -> Bool { scheme.lowercased() == name.lowercased() }

    /// A parameter, by its name.
    func parameter(_ name: String) -> AuthenticationParameter? {
        let name = name.lowercased()
        return parameters.first { $0.name == name }
    }
}

extension HTTPChallenge: CustomStringConvertible {
    /// The scheme and the realm. What else a server says may be bound to its user, and is left out.
    public var description: String { realm.map { "\(scheme) realm=\($0.debugDescription)" } ?? scheme }
}

/// A name and a value in a challenge, or in what a server says of itself after it (RFC 9110 §11.2).
public struct AuthenticationParameter: Hashable, Sendable {
    /// The name in lower case.
    public let name: String
    /// The value without its quotes and escapes, byte by byte: what Digest hashes.
    package let rawValue: [UInt8]

    /// A parameter.
    init(name: String, rawValue: [UInt8]) {
        self.name = name
        self.rawValue = rawValue
    }

    /// The value without its quotes and escapes: as UTF-8 where it is that, else as Latin-1.
    public var value: String { ByteText.string(rawValue[...]) }
}

extension AuthenticationParameter: CustomStringConvertible, CustomReflectable {
    /// The name alone.
    public var description: String { name }
    /// Shows the name alone: nonces and tokens are no text for logs.
    public var customMirror: Mirror { Mirror(self, children: ["name": name]) }
}

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
