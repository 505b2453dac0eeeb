import MartletURL

/// How a call stands with one origin: what it may use there, what it sent last, and what it sends next.
struct AuthenticationStanding: Sendable {
    /// Where credentials came from.
    enum Source: Hashable, Sendable {
        /// There are none.
        case nothing
        /// The settings, for the origin the call begins at.
        case call
        /// The settings' tokens, for the same.
        case tokens
        /// The settings, for this very origin.
        case origin
        /// A netrc, for this host.
        case netrc
        /// The handler, for this origin.
        case handler

        /// Whether they are for the origin the call begins at, and lost once it was left.
        var isOfTheCall: Bool { self == .call || self == .tokens }
    }

    /// A Digest response that was sent.
    struct SentDigest: Sendable {
        let key: AuthenticationKey
        let realm: [UInt8]
        let nonce: [UInt8]
        let proof: DigestProof
        /// Whether it was sent unasked, with a nonce from an earlier call.
        let isRemembered: Bool
    }

    /// What the last request had.
    enum Sent: Sendable {
        /// Basic or Bearer, as the credentials have it.
        case plain
        /// Basic, for credentials that may be used in any way.
        case basic(AuthenticationKey)
        /// A token of the provider's.
        case token(String)
        case digest(SentDigest)
    }

    /// What the next request gets.
    enum Next: Sendable {
        /// A response to a challenge that was just received.
        case digest(DigestSession, AuthenticationKey, ProtectionSpace)
        /// Basic, for credentials that may be used in any way.
        case basic(AuthorizationValue, AuthenticationKey)
        /// A value that no challenge plays a part in.
        case unasked(AuthorizationValue)
    }

    /// Where the credentials came from.
    var source: Source
    /// The credentials; `nil` when there are none, or they were refused.
    var credentials: Credentials?
    /// What the last request had; `nil` for none.
    var sent: Sent?
    /// What the next request gets; `nil` for what the credentials give by themselves.
    var next: Next?
    /// What the server asked last.
    var challenges: [HTTPChallenge] = []

    init(source: Source, credentials: Credentials? = nil) {
        self.source = source
        self.credentials = credentials
    }
}

/// Whose state it is: that of one party at one place for one user. Nobody else's is ever looked at.
struct AuthenticationKey: Hashable, Sendable {
    /// A server, or a proxy.
    let party: AuthenticationParty
    /// Where it is.
    let origin: HTTPURL.Origin
    /// Who calls.
    let credentials: Credentials
}
