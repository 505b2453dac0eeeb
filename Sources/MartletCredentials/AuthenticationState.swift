import MartletURL

/// The state of a call at one origin: the credentials it may use, and the last and the next field.
struct AuthenticationState: Sendable {
    /// The source of the credentials.
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

        /// Whether they are for the origin the call begins at, and lost once the call has left it.
        var isOfTheCall: Bool { self == .call || self == .tokens }
    }

    /// A Digest response that was sent.
    struct SentDigest: Sendable {
        let key: AuthenticationKey
        let session: DigestSession
        let proof: DigestProof
        /// Whether it was sent preemptively, with a nonce from an earlier call.
        let isRemembered: Bool
    }

    /// The field of the last request.
    enum Sent: Sendable {
        /// Basic or Bearer, from the credentials.
        case plain
        /// Basic, for credentials of any scheme.
        case basic(AuthenticationKey)
        /// A token of the provider's.
        case token(String)
        case digest(SentDigest)
    }

    /// The field of the next request.
    enum Next: Sendable {
        /// A response to a challenge that was just received.
        case digest(DigestSession, AuthenticationKey, ProtectionSpace)
        /// Another value, and its kind.
        case value(AuthorizationValue, Sent)
    }

    /// The source of the credentials.
    var source: Source
    /// The credentials; `nil` if there are none, or they were rejected.
    var credentials: Credentials?
    /// The field of the last request; `nil` for none.
    var sent: Sent?
    /// The field of the next request; `nil` for that of the credentials.
    var next: Next?
    /// The last challenges.
    var challenges: [HTTPChallenge] = []
}

/// The owner of stored state: one party at one origin for one user. No other state is ever used.
struct AuthenticationKey: Hashable, Sendable {
    /// A server, or a proxy.
    let party: ChallengeSource
    /// The origin of the party.
    let origin: HTTPURL.Origin
    /// The credentials of the user.
    let credentials: Credentials
}
