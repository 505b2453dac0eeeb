public import MartletCore

/// A client of OAuth 2.0 (RFC 6749) that obtains bearer tokens with its own credentials, or with a refresh token.
///
/// ```swift
/// let client = try OAuthClient(
///     tokenURL: "https://id.example.com/token", clientID: "app", clientSecret: secret, scope: "posts.read")
/// let api = try session.host("https://api.example.com") { $0.authentication = client.authentication }
/// ```
///
/// A token is requested when a call needs one: before the first call, shortly before the token expires, and after a
/// 401, which is followed by one repetition of the call. Concurrent calls share a request. A cancelled call stops
/// waiting; the request continues for the others.
///
/// After a failed request, calls fail with its error and without another request for 1 s, which doubles with each
/// consecutive failure up to 60 s; the server's `Retry-After` can prolong it up to one hour. A rejected refresh token
/// (`invalid_grant`) is not sent again. Calls throw an ``OAuthError``; if a token request fails otherwise, an
/// ``HTTPError`` with the code `.authenticationFailed`.
///
/// Token requests have the session's cookies, and none of its credentials. They are neither redirected nor retried, and
/// their responses may have at most 256 KiB. Copies of a client share its tokens.
public struct OAuthClient: Sendable {
    /// The method by which a client with a secret authenticates itself (RFC 6749 §2.3.1).
    public enum SecretMethod: String, Hashable, Sendable, CaseIterable {
        /// Basic authentication, `client_secret_basic`: all servers support it.
        case basic
        /// Fields of the form, `client_secret_post`.
        case post
    }

    /// The tokens, which calls and other clients share. ``SingleFlightTokens/token()`` returns the current one.
    public let tokens: SingleFlightTokens
    private let source: OAuthTokenSource

    /// Creates a client that obtains tokens with its own credentials (client credentials grant, RFC 6749 §4.4).
    /// - Parameters:
    ///   - tokenURL: The URL of the token endpoint: https, or http on a loopback address; without user info.
    ///   - clientSecret: The secret; `nil` for a client that only names itself.
    ///   - scope: The requested scope, names separated by spaces; `nil` for the server's default.
    ///   - secretMethod: The method by which the secret is sent; Basic by default.
    ///   - parameters: Further fields of the form, such as `audience` or `resource`.
    ///   - leeway: The time before its expiry from which a token is replaced, at most half of its lifetime; 30 s by
    ///     default.
    ///   - timeout: The maximum duration of a token request; 30 s by default.
    ///   - session: The session of the token requests; its settings for TLS, proxies and middleware apply.
    /// - Throws: An ``HTTPError`` with the code `.invalidURL`.
    public init(
        tokenURL: some HTTPTarget, clientID: String, clientSecret: String? = nil, scope: String? = nil,
        secretMethod: SecretMethod = .basic, parameters: [QueryItem] = [], leeway: Duration = .seconds(30),
        timeout: Duration = .seconds(30), session: HTTPSession = .shared
    ) throws(HTTPError) {
        let endpoint = try OAuthTokenEndpoint(
            tokenURL.httpTarget, clientID, clientSecret, scope, secretMethod, parameters, timeout, session)
        self.init(OAuthTokenSource(endpoint, grant: .clientCredentials, leeway: leeway))
    }

    /// Creates a client that obtains tokens with a refresh token (RFC 6749 §6), which the user's sign-in has returned.
    /// The other parameters are those of the initializer without a refresh token.
    /// - Parameters:
    ///   - refreshToken: The stored refresh token. With `nil`, calls throw an ``OAuthError`` with the code
    ///     `.invalidGrant` until ``setRefreshToken(_:)``.
    ///   - storeRefreshToken: Stores a refresh token that the server has replaced, after which the previous one may be
    ///     invalid. It is awaited before the access token is used. Its errors are thrown by the calls; the new refresh
    ///     token is then used nevertheless. It may make calls, but not with these tokens.
    /// - Throws: An ``HTTPError`` with the code `.invalidURL`.
    public init(
        tokenURL: some HTTPTarget, clientID: String, clientSecret: String? = nil, refreshToken: String?,
        scope: String? = nil, secretMethod: SecretMethod = .basic, parameters: [QueryItem] = [],
        leeway: Duration = .seconds(30), timeout: Duration = .seconds(30), session: HTTPSession = .shared,
        storeRefreshToken: @escaping @Sendable (String) async throws -> Void
    ) throws(HTTPError) {
        let endpoint = try OAuthTokenEndpoint(
            tokenURL.httpTarget, clientID, clientSecret, scope, secretMethod, parameters, timeout, session)
        self.init(
            OAuthTokenSource(
                endpoint, grant: .refreshToken(refreshToken, store: storeRefreshToken), leeway: leeway))
    }

    init(_ source: OAuthTokenSource) {
        self.source = source
        tokens = SingleFlightTokens { _ in try await source.issue() }
    }

    /// The settings for calls: the bearer token, and one new token and one repetition after a 401.
    public var authentication: AuthenticationSettings { AuthenticationSettings(tokens: tokens, attemptLimit: 2) }

    /// Replaces the refresh token, after the user has signed in again; `nil` signs out. The access token is discarded.
    /// Calls that wait for a token still receive it. Has no effect on a client without refresh tokens, except that the
    /// access token is discarded.
    public func setRefreshToken(_ token: String?) async {
        await source.setRefreshToken(token)
        await tokens.invalidate()
    }
}

extension OAuthClient: CustomStringConvertible, CustomReflectable {
    /// The client and the URL of the token endpoint, without secrets.
    public var description: String { "OAuth client \(source.endpoint.clientID) of \(source.endpoint.url.redacted)" }
    /// The mirror, with the same content as ``description``.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}

/// The token endpoint of a client, and the client's credentials there.
struct OAuthTokenEndpoint: Sendable {
    let url: HTTPURL
    let clientID: String
    let clientSecret: String?
    private let fields: [QueryItem]
    private let session: HTTPSession

    init(
        _ target: HTTPTargetForm, _ clientID: String, _ clientSecret: String?, _ scope: String?,
        _ method: OAuthClient.SecretMethod, _ parameters: [QueryItem], _ timeout: Duration, _ session: HTTPSession
    ) throws(HTTPError) {
        let url = try target.partsOfGET().url
        let isLoopback = url.host == "localhost" || IPAddress(url.host)?.isLoopback == true
        guard url.user == nil, url.scheme == .https || isLoopback else {
            let reason = "it must be https, or http on a loopback address, without user name and password"
            throw HTTPError(
                .invalidURL, phase: .preparing, message: "invalid URL of a token endpoint: \(reason)", url: url)
        }
        var fields = scope.map { [QueryItem(name: "scope", value: $0)] } ?? []
        var credentials: Credentials?
        if let clientSecret, method == .basic {
            // RFC 6749 §2.3.1: both are encoded as in a form first.
            credentials = .basic(user: clientID.formEncoded, password: clientSecret.formEncoded)
        } else {
            fields.append(QueryItem(name: "client_id", value: clientID))
            if let clientSecret { fields.append(QueryItem(name: "client_secret", value: clientSecret)) }
        }
        (self.url, self.clientID, self.clientSecret) = (url, clientID, clientSecret)
        self.fields = fields + parameters
        self.session = session.with {
            $0.authentication = AuthenticationSettings(credentials: credentials)
            $0.headers[.authorization] = nil
            $0.redirects = .doNotFollow
            $0.retry = .never
            $0.timeouts.total = timeout
            $0.bufferedBodyLimit = .kibibytes(256)
            ($0.errors, $0.validator) = (nil, nil)
        }
    }

    /// Sends a token request with further fields.
    func send(_ fields: [QueryItem]) async throws -> HTTPExchange {
        try await session.post(url, body: .form(fields + self.fields), headers: ["Accept": "application/json"])
    }
}

extension String {
    fileprivate var formEncoded: String { FormEncoding.encoded([QueryItem(name: self, value: nil)]) }
}

/// A source of tokens from a token endpoint. One request runs at a time.
actor OAuthTokenSource {
    /// The grant of the tokens.
    enum Grant: Sendable {
        case clientCredentials
        case refreshToken(String?, store: @Sendable (String) async throws -> Void)
    }

    private enum Failure {
        /// No request is sent before the time.
        case temporary(any Error, until: MonotonicTime)
        /// No request is sent before the refresh token is replaced.
        case permanent(any Error)
    }

    nonisolated let endpoint: OAuthTokenEndpoint
    private let leeway: Duration
    private let now: @Sendable () -> MonotonicTime
    private var grant: Grant
    /// The number of refresh tokens that were set, by which a request detects that its own was replaced.
    private var generation = 0
    private var running: Promise<Void>?
    private var failure: Failure?
    private var failureCount = 0

    init(
        _ endpoint: OAuthTokenEndpoint, grant: Grant, leeway: Duration,
        now: @escaping @Sendable () -> MonotonicTime = { .sinceBoot() }
    ) {
        (self.endpoint, self.grant, self.leeway, self.now) = (endpoint, grant, max(.zero, leeway), now)
    }

    func setRefreshToken(_ token: String?) {
        guard case .refreshToken(_, let store) = grant else { return }
        grant = .refreshToken(token, store: store)
        generation += 1
        (failure, failureCount) = (nil, 0)
    }

    /// Returns a new token.
    func issue() async throws -> IssuedToken {
        // Only discarded tokens lead here: two requests with one refresh token could invalidate each other's.
        while let running { try await running.value }
        switch failure {
        case .permanent(let error): throw error
        case .temporary(let error, let time) where now() < time: throw error
        case .temporary, nil: break
        }
        let turn = Promise<Void>()
        running = turn
        defer {
            running = nil
            turn.settle(.success(()))
        }
        let generation = generation
        var retryAfter: Duration?
        do {
            // The lifetime is counted from the request, because the response may take long.
            let start = now()
            let response = try await request(&retryAfter)
            try await store(response.refreshToken, generation)
            if generation == self.generation { (failure, failureCount) = (nil, 0) }
            guard let lifetime = response.lifetime else { return IssuedToken(text: response.accessToken) }
            let (renewal, expiry) = (
                start.advanced(by: lifetime - min(leeway, lifetime / 2)), start.advanced(by: lifetime)
            )
            return IssuedToken(
                text: response.accessToken, isCurrent: { [now] in now() < renewal },
                isValid: { [now] in now() < expiry })
        } catch {
            if generation == self.generation { record(error, retryAfter) }
            throw error
        }
    }

    private func request(_ retryAfter: inout Duration?) async throws -> OAuthTokenResponse {
        let fields: [QueryItem]
        var secrets = [endpoint.clientSecret ?? ""]
        switch grant {
        case .clientCredentials: fields = [QueryItem(name: "grant_type", value: "client_credentials")]
        case .refreshToken(nil, _): throw OAuthError(.invalidGrant, message: "there is no refresh token: sign in again")
        case .refreshToken(let token?, _):
            fields = [
                QueryItem(name: "grant_type", value: "refresh_token"), QueryItem(name: "refresh_token", value: token),
            ]
            secrets.append(token)
        }
        let exchange = try await endpoint.send(fields)
        do { try exchange.validated() } catch { retryAfter = (error as? HTTPError)?.retryAfter }
        return try OAuthTokenResponse(status: exchange.statusCode, body: exchange.body, hiding: secrets)
    }

    /// Adopts the refresh token of a response, unless another one was set during the request.
    private func store(_ token: String?, _ generation: Int) async throws {
        guard let token, generation == self.generation, case .refreshToken(let old, let store) = grant, token != old
        else { return }
        // Adopted before it is stored: the server may already reject the old one.
        grant = .refreshToken(token, store: store)
        try await store(token)
    }

    private func record(_ error: any Error, _ retryAfter: Duration?) {
        if case .refreshToken = grant, (error as? OAuthError)?.code == .invalidGrant {
            failure = .permanent(error)
            return
        }
        let backoff = Duration.seconds(min(60, 1 << min(failureCount, 6)))
        failureCount += 1
        let delay = max(backoff, min(retryAfter ?? .zero, .seconds(3600)))
        failure = .temporary(error, until: now().advanced(by: delay))
    }
}
