package import MartletURL
import FoundationEssentials

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

    private init(token: String) { kind = .bearer(token: token) }

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
    public static func bearer(_ token: String) -> Credentials { Credentials(token: token) }

    /// The name; `nil` for a token.
    public var user: String? { if case .password(let user, _, _) = kind { user } else { nil } }

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

/// A name and a password as Basic sends them (RFC 7617).
///
/// They are UTF-8 whatever the challenge says: that is what `charset="UTF-8"` asks for, the one value it can have, and
/// what other clients do where it is missing.
enum BasicAuthorization {
    /// The value of the field.
    ///
    /// - Throws: For a colon in the name, and for control characters (RFC 7617 §2).
    static func value(user: String, password: String) throws(CredentialsError) -> AuthorizationValue {
        guard !user.utf8.contains(UInt8(ascii: ":")) else { throw .colonInUser }
        guard !hasControl(user), !hasControl(password) else { throw .controlCharacter }
        return AuthorizationValue(
            bytes: Array("Basic \(Data("\(user):\(password)".utf8).base64EncodedString())".utf8))
    }

    /// Whether a text has a control character of ASCII's.
    static func hasControl(_ text: String) -> Bool { text.utf8.contains { $0 < 0x20 || $0 == 0x7F } }
}

/// A token as Bearer sends it (RFC 6750 §2.1).
enum BearerAuthorization {
    /// The value of the field.
    ///
    /// - Throws: For a token that could end the field, or is none.
    static func value(token: String) throws(CredentialsError) -> AuthorizationValue {
        let body = token.utf8.reversed().drop { $0 == UInt8(ascii: "=") }
        guard !body.isEmpty, body.allSatisfy(isTokenByte) else { throw .invalidToken }
        return AuthorizationValue(bytes: "Bearer ".utf8 + Array(token.utf8))
    }

    private static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "A")...UInt8(ascii: "Z"):
            true
        default: "-._~+/".utf8.contains(byte)
        }
    }
}

/// The value of an `Authorization` or `Proxy-Authorization` field, as bytes: what of it came from the server goes back
/// as it came.
///
/// It is a secret: neither its description nor its mirror show it.
package struct AuthorizationValue: Hashable, Sendable {
    /// The value. For the request's head, and for nothing else.
    package let bytes: [UInt8]

    /// A value.
    init(bytes: [UInt8]) { self.bytes = bytes }
}

extension AuthorizationValue: CustomStringConvertible, CustomReflectable {
    /// The scheme, and no more.
    package var description: String {
        "\(String(decoding: bytes.prefix { $0 != UInt8(ascii: " ") }, as: UTF8.self)) ***"
    }
    /// The same as ``description``.
    package var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}

/// Where bearer tokens come from (RFC 6750).
///
/// Wrap it in ``SingleFlightTokens``, so that it is asked once however many calls need a token at the same time.
public protocol TokenProvider: Sendable {
    /// The token to use now: from memory, from a file, or from the server that issues them.
    func token() async throws -> String

    /// A token in place of one that a server answered with 401.
    ///
    /// - Parameter token: The one that was refused.
    func refresh(after token: String) async throws -> String
}

/// The credentials that a call may use, and the code of the program that may give others.
package struct CredentialSources: Sendable {
    /// For the origin that the call begins at, or for the proxy.
    package var credentials: Credentials?
    /// Bearer tokens for the origin that the call begins at.
    package var tokens: (any TokenProvider)?
    /// For other origins.
    package var credentialsByOrigin: [HTTPURL.Origin: Credentials] = [:]
    /// For a host by its name, as a netrc file has them. Never used for a proxy, nor over plain HTTP in a call that began over TLS.
    package var credentialsOfHost: (@Sendable (String) -> Credentials?)?
    /// Asked when the others have no credentials, or were refused.
    package var handler: (@Sendable (AuthenticationChallenge) async throws -> Credentials?)?
    /// The number of refusals in one call after which its 401 or 407 is returned; at least 1.
    package var attemptLimit = 3
    /// Whether a request with a body that only Digest can answer is first sent without the body.
    package var probesForDigest = false

    /// Sources with credentials for the origin that the call begins at.
    package init(credentials: Credentials? = nil) { self.credentials = credentials }
}
