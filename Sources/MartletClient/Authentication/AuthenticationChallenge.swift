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
