import MartletURL

/// The state of a call at one origin: the available credentials, and the last and the next field.
struct AuthenticationState: Sendable {
    /// The source of the credentials.
    enum Source: Hashable, Sendable {
        /// No credentials are available.
        case nothing
        /// The settings, for the first origin of the call.
        case call
        /// The token provider of the settings, for the first origin of the call.
        case tokens
        /// The settings, for exactly this origin.
        case origin
        /// A netrc file, for this host.
        case netrc
        /// The handler, for this origin.
        case handler

        /// Whether the credentials are for the first origin of the call, and no longer used after a request to another.
        var isPerCall: Bool { self == .call || self == .tokens }
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
        /// Basic, for credentials that allow any scheme.
        case basic(AuthenticationKey)
        /// A token from the provider.
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
    /// The credentials; `nil` if none are available, or if they were rejected.
    var credentials: Credentials?
    /// The field of the last request; `nil` for none.
    var sent: Sent?
    /// The field of the next request; `nil` for the default field of the credentials.
    var next: Next?
    /// The challenges of the last response.
    var challenges: [HTTPChallenge] = []
}

/// The key of stored challenges: one party at one origin, and one user. No call uses the challenges of another key.
struct AuthenticationKey: Hashable, Sendable {
    /// The kind of party: a server or a proxy.
    let party: ChallengeSource
    /// The origin of the party.
    let origin: HTTPURL.Origin
    /// The credentials of the user.
    let credentials: Credentials
}
