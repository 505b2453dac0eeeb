import MartletCredentials
import MartletURL
public import MartletCore

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

    /// The sources of credentials for the machine.
    package var sources: CredentialSources {
        var sources = CredentialSources(credentials: credentials)
        sources.tokens = tokens
        sources.credentialsByOrigin = credentialsByOrigin
        if let netrc {
            let scheme = netrcScheme
            sources.credentialsOfHost = { host in
                netrc.entry(forHost: host).map {
                    Credentials(user: $0.login ?? "", password: $0.password ?? "", scheme: scheme)
                }
            }
        }
        sources.handler = handler
        sources.attemptLimit = attemptLimit
        sources.probesForDigest = probesForDigest
        return sources
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

/// A token for all calls: whoever needs one while it is being fetched waits for the same fetch.
///
/// A hundred calls whose token runs out at the same moment refresh it once. A call that is cancelled stops waiting and
/// disturbs nobody: the fetch goes on for the others, and for those to come. A failure is told to all who waited for it,
/// and whoever comes after it asks anew.
public actor SingleFlightTokens: TokenProvider {
    private let provider: any TokenProvider
    /// The token in force; `nil` before the first one, and after ``invalidate()``.
    private var present: String?
    /// The fetch that runs.
    private var flight: Flight?
    private var lastFlight: UInt64 = 0

    private struct Flight {
        let number: UInt64
        let outcome: Outcome<String>
    }

    /// Tokens of a provider, none of them fetched yet.
    public init(_ provider: any TokenProvider) { self.provider = provider }

    /// The token in force; while there is none, or another is being fetched, the one that comes.
    ///
    /// - Throws: What the provider throws; `CancellationError` when the waiting task is cancelled.
    public func token() async throws -> String {
        if let flight { return try await flight.outcome.value }
        if let present { return present }
        return try await fetch { try await $0.token() }
    }

    /// A token in place of one that was refused.
    ///
    /// When the one in force is another already, the refused one was old: then that is the answer, and nothing is fetched.
    ///
    /// - Throws: What the provider throws; `CancellationError` when the waiting task is cancelled.
    public func refresh(after token: String) async throws -> String {
        while let flight {
            let fetched = try await flight.outcome.value
            // A first fetch that runs may bring the very token that was refused.
            if fetched != token { return fetched }
            // Landing clears the flight before anybody hears of its outcome; this is for one that was forgotten.
            if self.flight?.number == flight.number { break }
        }
        if let present, present != token { return present }
        return try await fetch { try await $0.refresh(after: token) }
    }

    /// Forgets the token in force, as one does whose user signed out. A fetch that runs still serves those who wait for it.
    public func invalidate() {
        present = nil
        flight = nil
    }

    private func fetch(_ ask: @escaping @Sendable (any TokenProvider) async throws -> String) async throws
        -> String
    {
        let provider = provider
        let outcome = Outcome<String>()
        lastFlight += 1
        let number = lastFlight
        flight = Flight(number: number, outcome: outcome)
        // Not a child of the caller's task: it must go on when the caller is cancelled.
        Task {
            let result: Result<String, any Error>
            do {
                result = .success(try await ask(provider))
            } catch {
                result = .failure(error)
            }
            self.land(number, result, outcome)
        }
        return try await outcome.value
    }

    private func land(_ number: UInt64, _ result: Result<String, any Error>, _ outcome: Outcome<String>) {
        // One that was forgotten while it ran is told to those who waited, and not kept.
        if flight?.number == number {
            flight = nil
            if case .success(let token) = result { present = token }
        }
        outcome.settle(result)
    }
}

extension SingleFlightTokens: CustomStringConvertible, CustomReflectable {
    /// Nothing of any token.
    public nonisolated var description: String { "SingleFlightTokens" }
    /// Shows nothing.
    public nonisolated var customMirror: Mirror { Mirror(self, children: []) }
}
