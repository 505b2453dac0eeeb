/// Credentials that cannot be written into a field. It does not repeat them.
public enum CredentialsError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A colon in a name for Basic, where it ends the name (RFC 7617 §2).
    case colonInUser
    /// A control character in a name or a password (RFC 7617 §2).
    case controlCharacter
    /// A token of characters that no token has (RFC 6750 §2.1).
    case invalidToken

    /// What is wrong.
    public var description: String {
        switch self {
        case .colonInUser: "a user's name for Basic authentication has no colon"
        case .controlCharacter: "names and passwords have no control characters"
        case .invalidToken: "a bearer token is of letters, digits and -._~+/, with = at its end alone"
        }
    }
}
