package import MartletURL
import FoundationEssentials

/// Credentials for a server or a proxy. Neither ``description`` nor a mirror contains the secret.
public struct Credentials: Hashable, Sendable {
    /// The schemes for a name and a password.
    public enum PasswordScheme: String, Hashable, Sendable, CaseIterable {
        /// Basic (RFC 7617), sent preemptively: anyone who reads the connection can read the password.
        case basic
        /// Digest (RFC 7616), sent after a challenge: the password itself is never sent.
        case digest
        /// Digest if the server offers it, otherwise Basic; nothing is sent before a challenge.
        case any
    }

    enum Kind: Hashable, Sendable {
        case password(user: String, password: String, scheme: PasswordScheme)
        case bearer(token: String)
    }

    let kind: Kind

    /// Creates credentials from a name and a password.
    /// - Parameters:
    ///   - user: The name, without control characters, and for Basic without a colon.
    ///   - password: The password, for Basic without control characters.
    ///   - scheme: The allowed scheme.
    public init(user: String, password: String, scheme: PasswordScheme) {
        kind = .password(user: user, password: password, scheme: scheme)
    }

    private init(token: String) { kind = .bearer(token: token) }

    /// Creates credentials for Basic, sent preemptively, as with curl's `-u`.
    public static func basic(user: String, password: String) -> Credentials {
        Credentials(user: user, password: password, scheme: .basic)
    }

    /// Creates credentials for Digest only.
    public static func digest(user: String, password: String) -> Credentials {
        Credentials(user: user, password: password, scheme: .digest)
    }

    /// Creates credentials for the safest scheme that the server offers, as with curl's `--anyauth`.
    public static func any(user: String, password: String) -> Credentials {
        Credentials(user: user, password: password, scheme: .any)
    }

    /// Creates credentials from a bearer token (RFC 6750), sent preemptively.
    public static func bearer(_ token: String) -> Credentials { Credentials(token: token) }

    /// The user name; `nil` for a token.
    public var user: String? { if case .password(let user, _, _) = kind { user } else { nil } }

    /// Returns the value that is sent preemptively; `nil` if a challenge must come first.
    /// - Throws: ``CredentialsError`` if the credentials cannot be written into a field.
    func preemptiveValue() throws(CredentialsError) -> AuthorizationValue? {
        switch kind {
        case .password(let user, let password, .basic): try .basic(user: user, password: password)
        case .bearer(let token): try .bearer(token: token)
        case .password: nil
        }
    }
}

extension Credentials: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The scheme and the name, with `***` for the secret.
    public var description: String {
        switch kind {
        case .password(let user, _, let scheme): "\(scheme.rawValue) \(user):***"
        case .bearer: "bearer ***"
        }
    }
    /// The same text as ``description``.
    public var debugDescription: String { description }
    /// The mirror, with the same text as ``description``.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}

/// The error of credentials that cannot be written into a field. It does not contain them.
public enum CredentialsError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A name for Basic contains a colon, which would end the name (RFC 7617 §2).
    case colonInUser
    /// A name or a password contains a control character (RFC 7617 §2).
    case controlCharacter
    /// A token contains characters that are not allowed in tokens (RFC 6750 §2.1).
    case invalidToken

    /// The error, as text.
    public var description: String {
        switch self {
        case .colonInUser: "a user name for Basic authentication must not contain a colon"
        case .controlCharacter: "user names and passwords must not contain control characters"
        case .invalidToken: "a bearer token may contain only letters, digits and -._~+/, and = at its end"
        }
    }
}

/// The value of an `Authorization` or `Proxy-Authorization` field, as bytes, because some bytes from the server are
/// returned unchanged. Neither its description nor its mirror contains the secret.
package struct AuthorizationValue: Hashable, Sendable {
    /// The value, to be used only in the request's head.
    package let bytes: [UInt8]
}

extension AuthorizationValue {
    /// Returns the value for Basic (RFC 7617), in UTF-8 for any challenge: `charset` has no other value, and other
    /// clients use UTF-8 by default.
    /// - Throws: ``CredentialsError`` for a colon in the name, and for control characters (RFC 7617 §2).
    static func basic(user: String, password: String) throws(CredentialsError) -> AuthorizationValue {
        guard !user.utf8.contains(UInt8(ascii: ":")) else { throw .colonInUser }
        guard !hasControl(user), !hasControl(password) else { throw .controlCharacter }
        return AuthorizationValue(bytes: Array("Basic \(Data("\(user):\(password)".utf8).base64EncodedString())".utf8))
    }

    /// Whether a text has an ASCII control character.
    static func hasControl(_ text: String) -> Bool { text.utf8.contains { $0 < 0x20 || $0 == 0x7F } }

    /// Returns the value for a bearer token (RFC 6750 §2.1).
    /// - Throws: ``CredentialsError`` for an invalid token, such as one that could end the field.
    static func bearer(token: String) throws(CredentialsError) -> AuthorizationValue {
        let body = token.utf8.reversed().drop { $0 == UInt8(ascii: "=") }
        guard !body.isEmpty, body.allSatisfy(ChallengeParser.isToken68) else { throw .invalidToken }
        return AuthorizationValue(bytes: "Bearer ".utf8 + Array(token.utf8))
    }
}

extension AuthorizationValue: CustomStringConvertible, CustomReflectable {
    /// The scheme without the secret.
    package var description: String {
        "\(String(decoding: bytes.prefix { $0 != UInt8(ascii: " ") }, as: UTF8.self)) ***"
    }
    /// The mirror, with the same text as ``description``.
    package var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}

/// A source of bearer tokens (RFC 6750). Wrap it in ``SingleFlightTokens``, so that concurrent calls share one request.
public protocol TokenProvider: Sendable {
    /// Returns the current token, for example from memory, from a file, or from the server that issues tokens.
    func token() async throws -> String

    /// Returns a token to replace one that a server rejected with 401.
    func refresh(after token: String) async throws -> String
}

/// The sources of credentials for a call.
package struct CredentialSources: Sendable {
    /// The credentials for the first origin of the call, or for the proxy.
    package var credentials: Credentials?
    /// The provider of bearer tokens for the first origin of the call.
    package var tokens: (any TokenProvider)?
    /// The credentials by origin; also for the first origin if ``credentials`` and ``tokens`` are `nil`.
    package var credentialsByOrigin: [HTTPURL.Origin: Credentials] = [:]
    /// The credentials by host name, as in a netrc file. Not for proxies, nor for plain HTTP after a redirect from TLS.
    package var credentialsOfHost: (@Sendable (String) -> Credentials?)?
    /// The handler that is called if the other sources have no credentials, or if theirs were rejected.
    package var handler: (@Sendable (AuthenticationChallenge) async throws -> Credentials?)?
    /// The number of rejections in one call after which the 401 or 407 is returned; at least 1.
    package var attemptLimit = 3
    /// Whether a request with a body is first sent without the body, if the credentials are for Digest only.
    package var probesForDigest = false

    /// Creates sources with credentials for the first origin of the call.
    package init(credentials: Credentials? = nil) { self.credentials = credentials }
}
