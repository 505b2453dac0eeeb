/// What proves to a server, or to a proxy, who is calling.
///
/// The secret is shown neither by ``description`` nor by a mirror.
public struct Credentials: Hashable, Sendable {
    /// The ways in which a name and a password may be used.
    public enum PasswordScheme: String, Hashable, Sendable, CaseIterable {
        /// Basic (RFC 7617), sent along with the first request: whoever reads the connection reads the password.
        case basic
        /// Digest (RFC 7616), once the server has asked for it: the password itself is never sent.
        case digest
        /// Digest where the server offers it, else Basic; nothing is sent before the server has asked.
        case any
    }

    enum Kind: Hashable, Sendable {
        case password(user: String, password: String, scheme: PasswordScheme)
        case bearer(token: String)
    }

    let kind: Kind

    /// A name and a password.
    ///
    /// - Parameters:
    ///   - user: The name, without control characters, and for Basic without a colon.
    ///   - password: The password, for Basic without control characters.
    ///   - scheme: How they may be used.
    public init(user: String, password: String, scheme: PasswordScheme) {
        kind = .password(user: user, password: password, scheme: scheme)
    }

    private init(token: String) {
        kind = .bearer(token: token)
    }

    /// A name and a password for Basic, sent along with the first request, as curl's `-u` does.
    public static func basic(user: String, password: String) -> Credentials {
        Credentials(user: user, password: password, scheme: .basic)
    }

    /// A name and a password for Digest alone.
    public static func digest(user: String, password: String) -> Credentials {
        Credentials(user: user, password: password, scheme: .digest)
    }

    /// A name and a password for the safest scheme that the server offers, as curl's `--anyauth` does.
    public static func any(user: String, password: String) -> Credentials {
        Credentials(user: user, password: password, scheme: .any)
    }

    /// A token for Bearer (RFC 6750), sent along with the first request.
    public static func bearer(_ token: String) -> Credentials {
        Credentials(token: token)
    }

    /// The name; `nil` for a token.
    public var user: String? {
        if case .password(let user, _, _) = kind { user } else { nil }
    }

    /// What is sent without having been asked for; `nil` where the server must ask first.
    ///
    /// - Throws: When they cannot be written into a field.
    func unaskedValue() throws(CredentialsError) -> AuthorizationValue? {
        switch kind {
        case .password(let user, let password, .basic):
            try BasicAuthorization.value(user: user, password: password)
        case .bearer(let token): try BearerAuthorization.value(token: token)
        case .password: nil
        }
    }
}

extension Credentials: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The scheme, and the name; `***` for the secret.
    public var description: String {
        switch kind {
        case .password(let user, _, let scheme): "\(scheme.rawValue) \(user):***"
        case .bearer: "bearer ***"
        }
    }
    /// The same as ``description``.
    public var debugDescription: String { description }
    /// The same as ``description``.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}
