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
    public var description: String {
        realm.map { "\(scheme) realm=\($0.debugDescription)" } ?? scheme
    }
}
