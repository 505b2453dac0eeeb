/// With what calls answer servers that ask who is calling; or, set for the proxy, with what they answer it.
///
/// What a call has of its own, the first of these that there is: an `Authorization` field that the caller set, which is
/// sent as it is and never replaced; ``credentials``; ``tokens``; ``credentialsByOrigin``; ``netrc``. When that was
/// refused, or there is none of it, ``handler`` is asked.
///
/// Credentials go to the origin they were given for and to no other. ``credentials`` and ``tokens`` are for the origin a
/// call begins at: once a redirect has led away from it they are not used any more, not even where the chain comes back;
/// unless ``RedirectPolicy/trustsOtherOrigins`` says that they are meant for all of the chain.
public struct AuthenticationSettings: Sendable {
    /// Gives credentials for a challenge; `nil` to leave the answer as it is.
    ///
    /// It is asked again when they are refused, until ``attemptLimit`` is reached; and in each call, so it should remember
    /// what its user said. It may make calls of its own. What it throws is what the call throws.
    public typealias Handler = @Sendable (AuthenticationChallenge) async throws -> Credentials?

    /// For the origin that a call begins at; for all of a session's calls, then, if set for the session.
    public var credentials: Credentials?
    /// Bearer tokens for the origin that a call begins at, fetched when needed and refreshed after a 401.
    public var tokens: SingleFlightTokens?
    /// For origins, each its own.
    public var credentialsByOrigin: [HTTPURL.Origin: Credentials]
    /// Names and passwords by host, as in `~/.netrc`. They are not sent over plain HTTP in a call that began over TLS, and
    /// never to a proxy.
    public var netrc: NetrcFile?
    /// How those of ``netrc`` may be used; Basic by default, as curl.
    public var netrcScheme: Credentials.PasswordScheme
    /// Asked when the others have no answer, or not the right one.
    public var handler: Handler?
    /// How many times credentials may be refused in one call before its 401 or 407 is the answer; 3 by default, at least 1.
    public var attemptLimit: Int
    /// Whether a request with a body that can be answered by Digest alone is first sent without the body, as curl does: the
    /// server's challenge comes before the body is sent. A server that asks for nothing gets an empty request first.
    package var probesForDigest = false

    /// Settings; without any, a 401 is an answer as any other.
    public init(
        credentials: Credentials? = nil, tokens: SingleFlightTokens? = nil,
        credentialsByOrigin: [HTTPURL.Origin: Credentials] = [:], netrc: NetrcFile? = nil,
        netrcScheme: Credentials.PasswordScheme = .basic, attemptLimit: Int = 3, handler: Handler? = nil
    ) {
        self.credentials = credentials
        self.tokens = tokens
        self.credentialsByOrigin = credentialsByOrigin
        self.netrc = netrc
        self.netrcScheme = netrcScheme
        self.attemptLimit = attemptLimit
        self.handler = handler
    }

    /// Whether there is nothing to answer with.
    package var isEmpty: Bool {
        credentials == nil && tokens == nil && credentialsByOrigin.isEmpty && netrc == nil && handler == nil
    }
}

extension AuthenticationSettings: CustomStringConvertible, CustomReflectable {
    /// Which kinds of credentials there are, without any.
    public var description: String {
        var parts: [String] = []
        if let credentials { parts.append("\(credentials)") }
        if tokens != nil { parts.append("tokens") }
        if !credentialsByOrigin.isEmpty {
            parts.append("credentials for \(credentialsByOrigin.count) origins")
        }
        if netrc != nil { parts.append("netrc") }
        if handler != nil { parts.append("a handler") }
        return parts.isEmpty ? "no credentials" : parts.joined(separator: ", ")
    }
    /// The same as ``description``.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}
