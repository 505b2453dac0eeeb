public import MartletCore

/// The credentials with which calls authenticate to servers, and how they are obtained.
///
/// A call uses the first of these that exists: an `Authorization` field of the caller, which is sent unchanged;
/// ``credentials``; ``tokens``; ``credentialsByOrigin``; ``netrc``. If the server rejected these, or if none exists,
/// ``handler`` is called.
///
/// Credentials are sent only to the origin that they were given for. ``credentials`` and ``tokens`` are for the first
/// origin of a call. After a redirect to another origin they are no longer used, even if a later redirect returns to
/// the first origin, unless ``RedirectPolicy/sendsCredentialsCrossOrigin`` is set.
public struct AuthenticationSettings: Sendable {
    /// A closure that returns credentials for a challenge; with `nil` the call returns the response. The closure is
    /// called again after a rejection, up to ``attemptLimit``, and in each call, so it should store the user's input.
    /// It may make calls. Its errors are thrown by the call.
    public typealias Handler = @Sendable (AuthenticationChallenge) async throws -> Credentials?

    /// The credentials for the first origin of a call; in a session's settings, for all of its calls.
    public var credentials: Credentials?
    /// The bearer tokens for the first origin of a call, fetched when needed and refreshed after a 401.
    public var tokens: SingleFlightTokens?
    /// The credentials by origin; also for the first origin, if neither ``credentials`` nor ``tokens`` applies.
    public var credentialsByOrigin: [HTTPURL.Origin: Credentials]
    /// The user names and passwords by host, as in `~/.netrc`. A proxy never receives them, nor does plain HTTP in a
    /// call that started with TLS.
    public var netrc: NetrcFile?
    /// The scheme for ``netrc``; Basic by default, as in curl.
    public var netrcScheme: Credentials.PasswordScheme
    /// The handler that is called if the other sources have no credentials, or these were rejected.
    public var handler: Handler?
    /// The number of rejections in one call after which the 401 is returned; 3 by default, at least 1.
    public var attemptLimit: Int
    /// Whether a request that needs Digest is first sent without its body, as in curl, so that the challenge comes
    /// before the body is sent. A server that sends no challenge receives an empty request first.
    package var probesForDigest = false

    /// Creates settings; without credentials, a 401 is returned like any other response.
    public init(
        credentials: Credentials? = nil, tokens: SingleFlightTokens? = nil,
        credentialsByOrigin: [HTTPURL.Origin: Credentials] = [:], netrc: NetrcFile? = nil,
        netrcScheme: Credentials.PasswordScheme = .basic, attemptLimit: Int = 3, handler: Handler? = nil
    ) {
        (self.credentials, self.tokens, self.credentialsByOrigin) = (credentials, tokens, credentialsByOrigin)
        (self.netrc, self.netrcScheme) = (netrc, netrcScheme)
        (self.attemptLimit, self.handler) = (attemptLimit, handler)
    }

    /// Returns settings with a bearer token for the first origin of a call. A closure replaces the token after a 401.
    ///
    /// ```swift
    /// $0.authentication = .bearer(token) { try await identity.post("token").text }
    /// ```
    ///
    /// The request is then repeated, if its body can be sent again, until ``attemptLimit`` tokens were rejected.
    /// Concurrent calls share one run of the closure. The closure may make calls, also on the same session. These calls
    /// are sent without the token, because they would wait for it forever.
    /// - Parameters:
    ///   - token: The first token, sent with each request until it is rejected.
    ///   - refresh: Returns a token that is currently valid. If it throws an ``HTTPError``, the calls fail with
    ///     `.authenticationFailed`; other errors are thrown unchanged. A cancelled call stops waiting for the closure.
    public static func bearer(_ token: String, refresh: @escaping @Sendable () async throws -> String)
        -> AuthenticationSettings
    { AuthenticationSettings(tokens: SingleFlightTokens(ClosureTokens(fetch: refresh), token: token)) }

    /// Returns settings with bearer tokens from a closure, which is called before the first request and after a 401.
    /// Otherwise like ``bearer(_:refresh:)``, which is for a program that already has a token.
    public static func bearer(_ token: @escaping @Sendable () async throws -> String) -> AuthenticationSettings {
        .bearer(tokens: ClosureTokens(fetch: token))
    }

    /// Returns settings with bearer tokens from a provider, which is called before the first request and after a 401.
    /// - Parameter tokens: The provider. Other providers than ``SingleFlightTokens`` are wrapped in a new one. Several
    ///   hosts can share a ``SingleFlightTokens``; its ``SingleFlightTokens/invalidate()`` signs out.
    public static func bearer(tokens: some TokenProvider) -> AuthenticationSettings {
        AuthenticationSettings(tokens: tokens as? SingleFlightTokens ?? SingleFlightTokens(tokens))
    }

    private struct ClosureTokens: TokenProvider {
        let fetch: @Sendable () async throws -> String

        func token() async throws -> String { try await fetch() }
        func refresh(after token: String) async throws -> String { try await fetch() }
    }

    /// Whether the settings have no credentials.
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
    /// The mirror, with the same content as ``description``.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}

/// The key of the setting ``SessionConfiguration/authentication``.
enum AuthenticationSettingKey: StageKey {
    static var defaultValue: AuthenticationSettings { AuthenticationSettings() }
    static var position: StagePosition { .authentication }

    static func isActive(_ settings: AuthenticationSettings) -> Bool { !settings.isEmpty }

    static func stage(for call: Call, _ progress: CallProgress) -> (any CallStage)? {
        var settings = call[AuthenticationSettingKey.self]
        // Credentials of the call take precedence over those of the URL, and these over the session's.
        if let credentials = call.urlCredentials, call.options.authentication == nil {
            settings.credentials = credentials
            settings.tokens = nil
        }
        guard !settings.isEmpty || call.observer?.delegate != nil else { return nil }
        return AuthenticationStage(settings.sources, call, progress)
    }
}

extension SessionConfiguration {
    /// The credentials for authentication challenges. Empty by default: a 401 is then returned like any other response.
    public var authentication: AuthenticationSettings {
        get { self[AuthenticationSettingKey.self] }
        set { self[AuthenticationSettingKey.self] = newValue }
    }
}

extension RequestOptions {
    /// The credentials for authentication challenges in this call; `nil` (the default) for those of the session.
    public var authentication: AuthenticationSettings? {
        get { self[AuthenticationSettingKey.self] }
        set { self[AuthenticationSettingKey.self] = newValue }
    }
}

/// A token with the state of its lifetime.
struct IssuedToken: Sendable {
    let text: String
    /// Whether the token need not be replaced yet; always `true` if its lifetime is unknown.
    var isCurrent: @Sendable () -> Bool = { true }
    /// Whether the token has not expired, so that it is used if no new one can be obtained. Read once not current.
    var isValid: @Sendable () -> Bool = { false }
}

/// A token that all calls share. Calls that need a token while it is being fetched wait for the same fetch.
///
/// If the token of a hundred calls expires at the same moment, it is refreshed once. A cancelled call stops waiting
/// without effect on the others: the fetch continues for them and for later calls. If the fetch fails, all waiting
/// calls receive the error, and the next call retries.
public actor SingleFlightTokens: TokenProvider {
    /// Returns a new token: the first one, or one that replaces a rejected token.
    private let issue: @Sendable (_ rejected: String?) async throws -> IssuedToken
    /// The current token; `nil` before the first one, and after ``invalidate()``.
    private var present: IssuedToken?
    /// The running fetch.
    private var flight: Promise<String>?
    /// The token sources that the current task is fetching a token for.
    @TaskLocal private static var fetching: [SingleFlightTokens] = []

    /// Whether the current task is fetching a token for this source, and so must not wait for the token.
    nonisolated var isFetchedHere: Bool { SingleFlightTokens.fetching.contains { $0 === self } }

    /// Creates a token source.
    /// - Parameter token: The current token; with `nil` (the default) the provider is called for the first one.
    public init(_ provider: any TokenProvider, token: String? = nil) {
        issue = { rejected in
            guard let rejected else { return IssuedToken(text: try await provider.token()) }
            return IssuedToken(text: try await provider.refresh(after: rejected))
        }
        present = token.map { IssuedToken(text: $0) }
    }

    /// Creates a token source from a function that returns new tokens and their expiry.
    init(issuing issue: @escaping @Sendable (_ rejected: String?) async throws -> IssuedToken) { self.issue = issue }

    /// Returns the current token. Without one, or while a token is being fetched, it waits for that fetch.
    /// - Throws: The errors of the provider; `CancellationError` if the waiting task is cancelled.
    public func token() async throws -> String {
        do {
            if let flight { return try await flight.value }
            if let present, present.isCurrent() { return present.text }
            return try await fetch(after: nil)
        } catch {
            // The former token may be valid for the rest of the leeway.
            if !(error is CancellationError), let present, present.isValid() { return present.text }
            throw error
        }
    }

    /// Returns a token to replace a rejected one: the current token if it is another one, otherwise a fetched token.
    /// - Throws: The errors of the provider; `CancellationError` if the waiting task is cancelled.
    public func refresh(after token: String) async throws -> String {
        while let flight {
            let fetched = try await flight.value
            // A first fetch may return the very token that was rejected.
            if fetched != token { return fetched }
            // Prevents an endless loop. `finish` has already cleared a flight when its outcome is reported.
            if self.flight === flight { break }
        }
        if let present, present.text != token, present.isCurrent() { return present.text }
        return try await fetch(after: token)
    }

    /// Discards the current token, for example at sign-out. Calls that wait for a fetch still receive its token.
    public func invalidate() {
        present = nil
        flight = nil
    }

    private func fetch(after rejected: String?) async throws -> String {
        let issue = issue
        let outcome = Promise<String>()
        flight = outcome
        // Unstructured, because it must continue when the caller's task is cancelled.
        Task {
            let result: Result<IssuedToken, any Error>
            do {
                let sources = SingleFlightTokens.fetching + [self]
                result = .success(
                    try await SingleFlightTokens.$fetching.withValue(sources) { try await issue(rejected) })
            } catch { result = .failure(error) }
            self.finish(outcome, result)
        }
        return try await outcome.value
    }

    private func finish(_ outcome: Promise<String>, _ result: Result<IssuedToken, any Error>) {
        // After `invalidate()` the fetched token is only for the calls that wait for it, and is not stored.
        if flight === outcome {
            flight = nil
            present = (try? result.get()) ?? present
        }
        outcome.settle(result.map(\.text))
    }
}

extension SingleFlightTokens: CustomStringConvertible, CustomReflectable {
    /// The name of the type, without the token.
    public nonisolated var description: String { "SingleFlightTokens" }
    /// A mirror without contents.
    public nonisolated var customMirror: Mirror { Mirror(self, children: []) }
}

extension RequestOptions {
    /// Removes the credentials of the call and the session, for a request to another origin than theirs.
    package mutating func withholdCredentials(of session: HTTPSession, _ redirects: RedirectPolicy) {
        var authentication = authentication ?? session.configuration.authentication
        authentication.credentials = nil
        authentication.tokens = nil
        self.authentication = authentication
        omittedFields.formUnion(redirects.defaultsOfOrigin)
    }
}
