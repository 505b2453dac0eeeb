package import MartletURL
import FoundationEssentials

/// Credentials for a server or a proxy. Neither ``description`` nor a mirror contains the secret.
public struct Credentials: Hashable, Sendable {
    /// The schemes for a name and a password.
    public enum PasswordScheme: String, Hashable, Sendable, CaseIterable {
        /// Basic (RFC 7617), sent preemptively: everyone who reads the connection reads the password.
        case basic
        /// Digest (RFC 7616), after a challenge: the password itself is never sent.
        case digest
        /// Digest if the server offers it, otherwise Basic; nothing is sent before a challenge.
        case any
    }

    enum Kind: Hashable, Sendable {
        case password(user: String, password: String, scheme: PasswordScheme)
        case bearer(token: String)
    }

    let kind: Kind

    /// Creates credentials of a name and a password.
    /// - Parameters:
    ///   - user: The name, without control characters, and for Basic without a colon.
    ///   - password: The password, for Basic without control characters.
    ///   - scheme: The allowed scheme.
    public init(user: String, password: String, scheme: PasswordScheme) {
        kind = .password(user: user, password: password, scheme: scheme)
    }

    private init(token: String) { kind = .bearer(token: token) }

    /// A name and a password for Basic, sent preemptively, as curl's `-u` does.
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

    /// A token for Bearer (RFC 6750), sent preemptively.
    public static func bearer(_ token: String) -> Credentials { Credentials(token: token) }

    /// The name; `nil` for a token.
    public var user: String? { if case .password(let user, _, _) = kind { user } else { nil } }

    /// The value that is sent preemptively; `nil` if a challenge must come first.
    /// - Throws: If the credentials cannot be written into a field.
    func preemptiveValue() throws(CredentialsError) -> AuthorizationValue? {
        switch kind {
        case .password(let user, let password, .basic): try .basic(user: user, password: password)
        case .bearer(let token): try .bearer(token: token)
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

/// Credentials that cannot be written into a field. The error does not contain them.
public enum CredentialsError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A colon in a name for Basic, where it ends the name (RFC 7617 §2).
    case colonInUser
    /// A control character in a name or a password (RFC 7617 §2).
    case controlCharacter
    /// A token with characters that are not allowed in tokens (RFC 6750 §2.1).
    case invalidToken

    /// The error in words.
    public var description: String {
        switch self {
        case .colonInUser: "a user's name for Basic authentication has no colon"
        case .controlCharacter: "names and passwords have no control characters"
        case .invalidToken: "a bearer token is of letters, digits and -._~+/, with = at its end alone"
        }
    }
}

/// The value of an `Authorization` or `Proxy-Authorization` field, as bytes: bytes of the server are returned unchanged.
/// Neither its description nor its mirror contains the secret.
package struct AuthorizationValue: Hashable, Sendable {
    /// The value, for the request's head alone.
    package let bytes: [UInt8]
}

extension AuthorizationValue {
    /// A name and a password for Basic (RFC 7617), in UTF-8 whatever the challenge says: `charset` has no other value, and other
    /// clients use it by default.
    /// - Throws: For a colon in the name, and for control characters (RFC 7617 §2).
    static func basic(user: String, password: String) throws(CredentialsError) -> AuthorizationValue {
        guard !user.utf8.contains(UInt8(ascii: ":")) else { throw .colonInUser }
        guard !hasControl(user), !hasControl(password) else { throw .controlCharacter }
        return AuthorizationValue(bytes: Array("Basic \(Data("\(user):\(password)".utf8).base64EncodedString())".utf8))
    }

    /// Whether a text has a control character of ASCII.
    static func hasControl(_ text: String) -> Bool { text.utf8.contains { $0 < 0x20 || $0 == 0x7F } }

    /// A token for Bearer (RFC 6750 §2.1).
    /// - Throws: For an invalid token, such as one that could end the field.
    static func bearer(token: String) throws(CredentialsError) -> AuthorizationValue {
        let body = token.utf8.reversed().drop { $0 == UInt8(ascii: "=") }
        guard !body.isEmpty, body.allSatisfy(ChallengeParser.isToken68) else { throw .invalidToken }
        return AuthorizationValue(bytes: "Bearer ".utf8 + Array(token.utf8))
    }
}

extension AuthorizationValue: CustomStringConvertible, CustomReflectable {
    /// The scheme alone.
    package var description: String {
        "\(String(decoding: bytes.prefix { $0 != UInt8(ascii: " ") }, as: UTF8.self)) ***"
    }
    /// The same as ``description``.
    package var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}

/// A source of bearer tokens (RFC 6750). Wrap it in ``SingleFlightTokens``, so that concurrent calls share one request.
public protocol TokenProvider: Sendable {
    /// The current token: from memory, from a file, or from the server that issues them.
    func token() async throws -> String

    /// A token in place of one that a server rejected with 401.
    func refresh(after token: String) async throws -> String
}

/// The credentials that a call may use, and the code of the program that may supply others.
package struct CredentialSources: Sendable {
    /// Credentials for the origin that the call begins at, or for the proxy.
    package var credentials: Credentials?
    /// Bearer tokens for the origin that the call begins at.
    package var tokens: (any TokenProvider)?
    /// Credentials for other origins.
    package var credentialsByOrigin: [HTTPURL.Origin: Credentials] = [:]
    /// Credentials by host name, as in a netrc file. Never used for a proxy, nor over plain HTTP in a call that began over TLS.
    package var credentialsOfHost: (@Sendable (String) -> Credentials?)?
    /// Called if the others have no credentials, or were rejected.
    package var handler: (@Sendable (AuthenticationChallenge) async throws -> Credentials?)?
    /// The number of rejections in one call after which its 401 or 407 is returned; at least 1.
    package var attemptLimit = 3
    /// Whether a request with a body that only Digest can answer is first sent without the body.
    package var probesForDigest = false

    /// Creates sources with credentials for the origin that the call begins at.
    package init(credentials: Credentials? = nil) { self.credentials = credentials }
}
