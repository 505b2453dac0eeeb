public import MartletURL
package import MartletWire

/// What a handler is asked: who wants to know, in which ways it can be told, and what was tried.
public struct AuthenticationChallenge: Sendable {
    /// Whether a server asks, or a proxy.
    public let party: AuthenticationParty
    /// Where it is.
    public let origin: HTTPURL.Origin
    /// The ways it offers, in its order; empty when it named none that is well-formed.
    public let challenges: [HTTPChallenge]
    /// What was malformed, and has been left out of ``challenges``.
    public let faults: [ChallengeError]
    /// How many times credentials were refused in this call.
    public let failureCount: Int
    /// The name that was refused last; `nil` when none was.
    public let refusedUser: String?

    /// The first realm that is named; `nil` when none is.
    public var realm: String? { challenges.lazy.compactMap(\.realm).first }

    /// Whether a scheme is among those offered.
    public func offers(_ scheme: String) -> Bool { challenges.contains { $0.isScheme(scheme) } }
}

/// Who asks for credentials. The two never share any.
public enum AuthenticationParty: String, Hashable, Sendable {
    /// The server that a request is for: 401, `WWW-Authenticate`, `Authorization`.
    case origin
    /// The proxy in between: 407, `Proxy-Authenticate`, `Proxy-Authorization`.
    case proxy

    /// The status that asks (RFC 9110 §15.5.2, §15.5.8).
    package var status: Int { self == .origin ? 401 : 407 }
    /// The field that asks.
    package var challengeField: String { self == .origin ? "WWW-Authenticate" : "Proxy-Authenticate" }
    /// The field in which the server says what it has to say afterwards.
    package var informationField: String {
        self == .origin ? "Authentication-Info" : "Proxy-Authentication-Info"
    }
}

/// What is to be done about a response.
package enum AuthenticationDecision: Sendable {
    /// Nothing: it is the call's answer.
    case deliver
    /// The request is to be sent again, with the field that the machine prepares then.
    case resend
    /// The handler is to be asked, and the machine told what it said.
    case ask(AuthenticationChallenge)
    /// Another token is to be fetched in place of this one, and the machine told it.
    case refresh(after: String)
    /// The server failed to prove itself: the call ends with this.
    case refuse(AuthenticationError)
}

/// What a request is to be sent with.
package enum AuthenticationPreparation: Sendable {
    /// No field of Martlet's.
    case none
    /// The field's value.
    case value(AuthorizationValue)
    /// A token is to be fetched, the machine told it, and asked again.
    case fetchToken
}

/// What is wrong with a server that was given a proof of who is calling.
public enum AuthenticationError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The server's own proof (`rspauth`) is wrong: it does not know the password that it asked for (RFC 7616 §3.5).
    case serverNotAuthentic(HTTPURL.Origin, AuthenticationParty)

    /// What is wrong, and with whom.
    public var description: String {
        switch self {
        case .serverNotAuthentic(let origin, let party):
            "\(party == .proxy ? "the proxy" : "the server") at \(origin) did not prove that it knows the password"
        }
    }
}

/// What authentication has to know of a request that is about to be sent, or was.
package struct AuthenticatedRequest: Sendable {
    /// Where it goes: the server's origin, or for a proxy's sake the proxy's.
    package var origin: HTTPURL.Origin
    /// The method; `CONNECT` for a tunnel.
    package var method: String
    /// The target exactly as it stands in the request line, which Digest hashes; for a server behind a proxy, as it stands
    /// in the line that the server gets: path and query.
    package var target: String
    /// The body.
    package var body: AuthenticatedBody
    /// Whether the request can be sent again.
    package var isRepeatable: Bool
    /// Whether the caller set the field that answers a challenge: it is sent as it is, and its refusal is the answer.
    package var hasOwnField: Bool

    /// A request.
    package init(
        origin: HTTPURL.Origin, method: String, target: String, body: AuthenticatedBody = .bytes([]),
        isRepeatable: Bool = true, hasOwnField: Bool = false
    ) {
        (self.origin, self.method, self.target, self.body) = (origin, method, target, body)
        (self.isRepeatable, self.hasOwnField) = (isRepeatable, hasOwnField)
    }
}

/// What a response says about authentication.
package struct AuthenticationAnswer: Sendable {
    /// The status.
    package var status: Int
    /// The values of `WWW-Authenticate`, or of the proxy's field.
    package var challenges: [ArraySlice<UInt8>]
    /// The values of `Authentication-Info`, or of the proxy's field.
    package var information: [ArraySlice<UInt8>]

    /// What a response says.
    package init(status: Int, challenges: [ArraySlice<UInt8>] = [], information: [ArraySlice<UInt8>] = []) {
        self.status = status
        self.challenges = challenges
        self.information = information
    }

    /// What a head says to one who asks on a party's behalf.
    package init(status: Int, fields: FieldBlock, party: AuthenticationParty) {
        self.init(
            status: status,
            challenges: status == party.status ? fields.rawValues(of: party.challengeField) : [],
            information: fields.rawValues(of: party.informationField))
    }
}

/// The part of an origin that a challenge is for, by the beginnings of paths (RFC 7616 §3.3, RFC 7617 §2.2).
struct ProtectionSpace: Hashable, Sendable {
    /// What paths in it begin with; `nil` for the whole origin.
    let prefixes: [String]?

    /// The most prefixes that are kept of a `domain`.
    private static let prefixLimit = 32

    /// The whole of an origin, or of what lies behind a proxy.
    static let whole = ProtectionSpace(prefixes: nil)

    private init(prefixes: [String]?) { self.prefixes = prefixes }

    /// What a `domain` of Digest's names at the origin it came from. What it names elsewhere is passed over: credentials
    /// never leave the origin they were given for, whatever a server says.
    init(domain: [String], at origin: HTTPURL.Origin) {
        guard !domain.isEmpty else {
            self = .whole
            return
        }
        var prefixes: [String] = []
        for reference in domain.prefix(ProtectionSpace.prefixLimit) {
            if reference.utf8.first == UInt8(ascii: "/"), !reference.hasPrefix("//") {
                prefixes.append(reference)
            } else if let url = try? HTTPURL(reference), url.origin == origin {
                prefixes.append(url.requestTarget)
            }
        }
        self.prefixes = prefixes
    }

    /// The paths at and below that of a request which Basic let through: everything to its last slash.
    init(around path: String) {
        guard
            let slash = path.utf8.prefix(while: { $0 != UInt8(ascii: "?") }).lastIndex(of: UInt8(ascii: "/"))
        else {
            prefixes = [path]
            return
        }
        prefixes = [String(path[...slash])]
    }

    /// Whether a path, with its query, is in it.
    func contains(_ path: String) -> Bool {
        guard let prefixes else { return true }
        return prefixes.contains { path.utf8.starts(with: $0.utf8) }
    }
}
