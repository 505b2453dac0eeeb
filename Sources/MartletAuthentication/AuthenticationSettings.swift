import MartletCredentials
import MartletURL
public import MartletCore

/// The credentials that calls use to answer challenges of servers, or of a proxy if set for it.
///
/// A call uses the first of these that exists: an `Authorization` field of the caller, which is sent unchanged;
/// ``credentials``; ``tokens``; ``credentialsByOrigin``; ``netrc``. If that was rejected, or there is none, ``handler`` is
/// called.
///
/// Credentials are sent to the origin they were given for, and to no other. ``credentials`` and ``tokens`` are for the origin
/// a call begins at: after a redirect to another origin they are no longer used, not even if the chain returns, unless
/// ``RedirectPolicy/sendsCredentialsCrossOrigin`` is set.
public struct AuthenticationSettings: Sendable {
    /// Supplies credentials for a challenge; `nil` to return the response. It is called again after a rejection, up to
    /// ``attemptLimit``, and in each call, so it should store the user's input. It may make calls of its own. The call
    /// throws its errors.
    public typealias Handler = @Sendable (AuthenticationChallenge) async throws -> Credentials?

    /// Credentials for the origin that a call begins at; in a session's settings, for all of its calls.
    public var credentials: Credentials?
    /// Bearer tokens for the origin that a call begins at, fetched when needed and refreshed after a 401.
    public var tokens: SingleFlightTokens?
    /// Credentials for single origins.
    public var credentialsByOrigin: [HTTPURL.Origin: Credentials]
    /// Names and passwords by host, as in `~/.netrc`. They are not sent over plain HTTP in a call that began over TLS, and
    /// never to a proxy.
    public var netrc: NetrcFile?
    /// The scheme for ``netrc``; Basic by default, as in curl.
    public var netrcScheme: Credentials.PasswordScheme
    /// Called if the other sources have no credentials, or were rejected.
    public var handler: Handler?
    /// The number of rejections in one call after which its 401 or 407 is returned; 3 by default, at least 1.
    public var attemptLimit: Int
    /// Whether a request with a body that only Digest can answer is first sent without the body, as curl does: the challenge
    /// comes before the body is sent. A server that sends no challenge gets an empty request first.
    package var probesForDigest = false

    /// Creates settings; without credentials, a 401 is returned like any other response.
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

    /// A bearer token (RFC 6750) for the origin that a call begins at, and the closure that replaces it after a 401.
    ///
    /// ```swift
    /// $0.authentication = .bearer(token) { try await session.post("https://id.example.com/token").text }
    /// ```
    ///
    /// The request is then repeated once, if its body can be sent again. Concurrent calls share one run of the closure. It may make
    /// calls on the same session, or on any host with other credentials. Calls that it makes are sent without the token, for
    /// which they would wait forever.
    /// - Parameters:
    ///   - token: The first token, sent with each request until it is rejected.
    ///   - refresh: Returns a token that is valid now. Calls throw its errors. A cancelled call stops waiting for it.
    public static func bearer(_ token: String, refresh: @escaping @Sendable () async throws -> String)
        -> AuthenticationSettings
    { AuthenticationSettings(tokens: SingleFlightTokens(ClosureTokens(fetch: refresh), token: token)) }

    /// Bearer tokens that a closure supplies: it is called before the first request is sent, and again after a 401. In between the
    /// token is stored. Otherwise as ``bearer(_:refresh:)``, for a program that has a token already.
    public static func bearer(_ token: @escaping @Sendable () async throws -> String) -> AuthenticationSettings {
        .bearer(tokens: ClosureTokens(fetch: token))
    }

    /// Bearer tokens of a provider, which is asked before the first request is sent, and again after a 401.
    /// - Parameter tokens: A ``SingleFlightTokens`` is used itself, so that several hosts can share its token, and
    ///   ``SingleFlightTokens/invalidate()`` signs out. Another provider gets one of its own.
    public static func bearer(tokens: some TokenProvider) -> AuthenticationSettings {
        AuthenticationSettings(tokens: tokens as? SingleFlightTokens ?? SingleFlightTokens(tokens))
    }

    private struct ClosureTokens: TokenProvider {
        let fetch: @Sendable () async throws -> String

        func token() async throws -> String { try await fetch() }
        func refresh(after token: String) async throws -> String { try await fetch() }
    }

    /// Whether there are no credentials.
    package var isEmpty: Bool {
        credentials == nil && tokens == nil && credentialsByOrigin.isEmpty && netrc == nil && handler == nil
    }

    /// The sources of credentials for the machine.
    package var sources: CredentialSources {
        var sources = CredentialSources(credentials: credentials)
        sources.tokens = tokens?.isFetchedHere == true ? nil : tokens
        sources.credentialsByOrigin = credentialsByOrigin
        if let netrc {
            sources.credentialsOfHost = { [netrcScheme] host in
                netrc.entry(forHost: host).map {
                    Credentials(user: $0.login ?? "", password: $0.password ?? "", scheme: netrcScheme)
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
    /// The kinds of credentials, without secrets.
    public var description: String {
        let parts: [String?] = [
            credentials.map { "\($0)" }, tokens.map { _ in "tokens" },
            credentialsByOrigin.isEmpty ? nil : "credentials for \(credentialsByOrigin.count) origins",
            netrc.map { _ in "netrc" }, handler.map { _ in "a handler" },
        ]
        let text = parts.compactMap(\.self).joined(separator: ", ")
        return text.isEmpty ? "no credentials" : text
    }
    /// The same as ``description``.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}

/// The setting of ``SessionConfiguration/authentication``.
enum AuthenticationSettingKey: StageKey {
    static var defaultValue: AuthenticationSettings { AuthenticationSettings() }
    static var position: StagePosition { .authentication }

    static func isActive(_ settings: AuthenticationSettings) -> Bool { !settings.isEmpty }

    static func stage(for call: Call, _ progress: CallProgress) -> (any CallStage)? {
        var settings = call[AuthenticationSettingKey.self]
        // The user name and password of a URL come before those of the session, not before those of the call.
        if let credentials = call.urlCredentials, call.options.authentication == nil {
            settings.credentials = credentials
            settings.tokens = nil
        }
        guard !settings.isEmpty || call.observer?.delegate != nil else { return nil }
        return AuthenticationStage(settings.sources, call, progress)
    }
}

extension SessionConfiguration {
    /// The credentials used to answer authentication challenges. Empty by default: a 401 is then returned as a normal response.
    public var authentication: AuthenticationSettings {
        get { self[AuthenticationSettingKey.self] }
        set { self[AuthenticationSettingKey.self] = newValue }
    }
}

extension RequestOptions {
    /// The credentials used to answer authentication challenges in this call; `nil` (the default) for those of the session.
    public var authentication: AuthenticationSettings? {
        get { self[AuthenticationSettingKey.self] }
        set { self[AuthenticationSettingKey.self] = newValue }
    }
}

/// A token that all calls share: those that need one while it is being fetched wait for the same fetch.
///
/// A hundred calls whose token expires at the same moment refresh it once. A cancelled call stops waiting without effect on
/// the others: the fetch continues for them and for later calls. All waiting calls get a failure, and the next call retries.
public actor SingleFlightTokens: TokenProvider {
    private let provider: any TokenProvider
    /// The token in force; `nil` before the first one, and after ``invalidate()``.
    private var present: String?
    /// The running fetch.
    private var flight: Outcome<String>?

    /// The sources whose fetch the running task works for.
    @TaskLocal private static var fetching: [SingleFlightTokens] = []

    /// Whether the running task works for a fetch of this source, and so must not wait for it.
    nonisolated var isFetchedHere: Bool { SingleFlightTokens.fetching.contains { $0 === self } }

    /// Creates a source.
    /// - Parameter token: The token in force; with `nil` (the default) the provider is asked for the first one.
    public init(_ provider: any TokenProvider, token: String? = nil) {
        self.provider = provider
        present = token
    }

    /// The token in force; without one, and during a fetch, the token that is fetched.
    /// - Throws: The errors of the provider; `CancellationError` if the waiting task is cancelled.
    public func token() async throws -> String {
        if let flight { return try await flight.value }
        if let present { return present }
        return try await fetch { try await $0.token() }
    }

    /// A token in place of one that was rejected. If another one is in force already, it is returned without a fetch.
    /// - Throws: The errors of the provider; `CancellationError` if the waiting task is cancelled.
    public func refresh(after token: String) async throws -> String {
        while let flight {
            let fetched = try await flight.value
            // A first fetch may bring the very token that was rejected.
            if fetched != token { return fetched }
            // Landing clears the flight before its outcome is reported; this is for one that was invalidated.
            if self.flight === flight { break }
        }
        if let present, present != token { return present }
        return try await fetch { try await $0.refresh(after: token) }
    }

    /// Discards the token in force, for example after the user signed out. A running fetch still serves its waiting calls.
    public func invalidate() {
        present = nil
        flight = nil
    }

    private func fetch(_ ask: @escaping @Sendable (any TokenProvider) async throws -> String) async throws -> String {
        let provider = provider
        let outcome = Outcome<String>()
        flight = outcome
        // Not a child of the caller's task: it must continue when the caller is cancelled.
        Task {
            let result: Result<String, any Error>
            do {
                let sources = SingleFlightTokens.fetching + [self]
                result = .success(try await SingleFlightTokens.$fetching.withValue(sources) { try await ask(provider) })
            } catch { result = .failure(error) }
            self.land(outcome, result)
        }
        return try await outcome.value
    }

    private func land(_ outcome: Outcome<String>, _ result: Result<String, any Error>) {
        // The token of a fetch that was invalidated while it ran is passed on to its waiting calls, and not stored.
        if flight === outcome {
            flight = nil
            present = (try? result.get()) ?? present
        }
        outcome.settle(result)
    }
}

extension SingleFlightTokens: CustomStringConvertible, CustomReflectable {
    /// The name of the type, without a token.
    public nonisolated var description: String { "SingleFlightTokens" }
    /// Nothing.
    public nonisolated var customMirror: Mirror { Mirror(self, children: []) }
}
