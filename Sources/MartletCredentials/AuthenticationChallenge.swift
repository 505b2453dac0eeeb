public import MartletURL
package import MartletWire

/// The challenges of a response, with the earlier attempts of the call, for a handler.
public struct AuthenticationChallenge: Sendable {
    /// The party that requests credentials: a server or a proxy.
    public let party: ChallengeSource
    /// The origin of the server or the proxy.
    public let origin: HTTPURL.Origin
    /// The well-formed challenges, in the order received.
    public let challenges: [HTTPChallenge]
    /// The errors of malformed challenges, which ``challenges`` omits.
    public let errors: [ChallengeError]
    /// The number of times that credentials were rejected in this call.
    public let failureCount: Int
    /// The user name that was rejected last; `nil` if no name was.
    public let rejectedUser: String?

    /// The first realm in the challenges; `nil` if no challenge has one.
    public var realm: String? { challenges.lazy.compactMap(\.realm).first }

    /// Whether a challenge offers the scheme.
    public func offers(_ scheme: String) -> Bool { challenges.contains { $0.isScheme(scheme) } }
}

/// The party that requests credentials. Servers and proxies never share credentials.
public enum ChallengeSource: String, Hashable, Sendable {
    /// The server of the request: 401, `WWW-Authenticate`, `Authorization`.
    case origin
    /// The proxy of the request: 407, `Proxy-Authenticate`, `Proxy-Authorization`.
    case proxy

    /// The status of a challenge (RFC 9110 §15.5.2, §15.5.8).
    package var status: Int { self == .origin ? 401 : 407 }
    /// The field of a challenge.
    package var challengeField: String { self == .origin ? "WWW-Authenticate" : "Proxy-Authenticate" }
    /// The field with the server's information after authentication.
    package var informationField: String { self == .origin ? "Authentication-Info" : "Proxy-Authentication-Info" }
}

/// The decision on a response.
package enum AuthenticationDecision: Sendable {
    /// Return the response to the caller.
    case deliver
    /// Send the request again, with the field that the machine prepares.
    case resend
    /// Call the handler, and pass its credentials to the machine.
    case ask(AuthenticationChallenge)
    /// Fetch a token to replace this one, and pass it to the machine.
    case refresh(after: String)
    /// End the call with an error: the server failed to authenticate itself.
    case reject(AuthenticationError)
}

/// The authentication field of a request.
package enum RequestAuthentication: Sendable {
    /// Martlet adds no field.
    case none
    /// The field with this value.
    case value(AuthorizationValue)
    /// Fetch a token, pass it to the machine, and prepare again.
    case fetchToken
}

/// An error of a server that did not authenticate itself.
public enum AuthenticationError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The server's proof (`rspauth`) is wrong: the server does not know the password (RFC 7616 §3.5).
    case serverAuthenticationFailed(HTTPURL.Origin, ChallengeSource)

    /// The error and the party, as text.
    public var description: String {
        switch self {
        case .serverAuthenticationFailed(let origin, let party):
            "\(party == .proxy ? "the proxy" : "the server") at \(origin) did not prove that it knows the password"
        }
    }
}

/// The properties of a request that authentication needs.
package struct AuthenticatedRequest: Sendable {
    /// The origin of the server, or of the proxy if the party is a proxy.
    package var origin: HTTPURL.Origin
    /// The method; `CONNECT` for a tunnel.
    package var method: String
    /// The target of the request line as the party receives it, which Digest hashes. For a server, it is always the
    /// path and the query, even if the request is sent to a proxy.
    package var target: String
    /// The body of the request.
    package var body: AuthenticatedBody
    /// Whether the request can be sent again.
    package var isRepeatable: Bool
    /// Whether the caller has set the field: it is sent unchanged, and a rejection is returned to the caller.
    package var hasOwnField: Bool

    /// Creates the properties of a request.
    package init(
        origin: HTTPURL.Origin, method: String, target: String, body: AuthenticatedBody = .bytes([]),
        isRepeatable: Bool = true, hasOwnField: Bool = false
    ) {
        (self.origin, self.method, self.target, self.body) = (origin, method, target, body)
        (self.isRepeatable, self.hasOwnField) = (isRepeatable, hasOwnField)
    }
}

/// The body of a request, as far as Digest can hash it.
package enum AuthenticatedBody: Sendable {
    /// The bytes; empty for a request without a body.
    case bytes([UInt8])
    /// A body that is read only while it is sent.
    case unknown

    /// Whether its hash can be computed before the request is sent.
    var isKnown: Bool { if case .bytes = self { true } else { false } }
}

/// The fields of a response that authentication needs.
package struct AuthenticationResponse: Sendable {
    /// The status of the response.
    package var status: Int
    /// The values of `WWW-Authenticate`, or of the proxy's field.
    package var challenges: [ArraySlice<UInt8>]
    /// The values of `Authentication-Info`, or of the proxy's field.
    package var information: [ArraySlice<UInt8>]

    /// Creates a response from the values of its fields.
    package init(status: Int, challenges: [ArraySlice<UInt8>] = [], information: [ArraySlice<UInt8>] = []) {
        (self.status, self.challenges, self.information) = (status, challenges, information)
    }

    /// Creates a response from the fields of a head that concern a party.
    package init(status: Int, fields: FieldBlock, party: ChallengeSource) {
        self.init(
            status: status, challenges: status == party.status ? fields.rawValues(of: party.challengeField) : [],
            information: fields.rawValues(of: party.informationField))
    }
}

/// The part of an origin that a challenge is for, by path prefixes (RFC 7616 §3.3, RFC 7617 §2.2).
struct ProtectionSpace: Hashable, Sendable {
    /// The path prefixes of the space; `nil` for the whole origin.
    let prefixes: [String]?
    /// The maximum number of prefixes of a `domain`.
    private static let prefixLimit = 32
    /// The space of a whole origin, or of all origins that a proxy is used for.
    static let whole = ProtectionSpace(prefixes: nil)

    /// Whether the space contains a path with its query.
    func contains(_ path: String) -> Bool {
        guard let prefixes else { return true }
        return prefixes.contains { path.utf8.starts(with: $0.utf8) }
    }
}

extension ProtectionSpace {
    /// Creates the space of the `domain` of a Digest challenge. URLs of other origins are ignored: a server cannot make
    /// the client send credentials to another origin.
    init(domain: [String], at origin: HTTPURL.Origin) {
        guard !domain.isEmpty else {
            self = .whole
            return
        }
        prefixes = domain.prefix(ProtectionSpace.prefixLimit).compactMap { reference in
            if reference.utf8.first == UInt8(ascii: "/"), !reference.hasPrefix("//") { return reference }
            guard let url = try? HTTPURL(reference), url.origin == origin else { return nil }
            return url.requestTarget
        }
    }

    /// Creates the space of a request for which Basic was accepted: its path up to the last slash, and all paths below.
    init(around path: String) {
        let slash = path.utf8.prefix { $0 != UInt8(ascii: "?") }.lastIndex(of: UInt8(ascii: "/"))
        prefixes = [slash.map { String(path[...$0]) } ?? path]
    }
}
