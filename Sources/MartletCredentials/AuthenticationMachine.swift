package import MartletURL
import MartletTransport

/// The state machine that decides on the credentials of one call. Servers and the proxy have separate machines.
///
/// ``prepare(_:)`` decides on the field of each request, and ``received(_:to:)`` on each response. The machine performs
/// no actions: ``AuthenticationFlow`` calls handlers and token providers, and passes on their results.
///
/// The state is stored by origin. Data that one origin sent, or that was given for it, never affects requests to
/// another origin.
package struct AuthenticationMachine: Sendable {
    /// The party that receives the credentials.
    package let party: ChallengeSource
    package let sources: CredentialSources
    private let memory: AuthenticationCache
    private let nonces: ClientNonceSource
    /// Whether other origins also receive the credentials for the first one.
    private let sendsCredentialsCrossOrigin: Bool
    /// The origin of the call's first request; `nil` before that request is prepared, unless the origin was given.
    private var firstOrigin: HTTPURL.Origin?
    /// Whether a later request of the call had another origin.
    private var hasLeft = false
    /// The state at each origin of the call.
    private var states: [HTTPURL.Origin: AuthenticationState] = [:]
    /// The number of times that credentials were rejected.
    package private(set) var failureCount = 0
    /// The number of responses that reported a stale nonce, which is not a rejection.
    private var staleCount = 0
    /// The token in force.
    private var token: String?
    /// The maximum number of responses of one call that report a stale nonce: a server could report that each time.
    package static let staleLimit = 3

    /// Creates a machine for one call.
    /// - Parameters:
    ///   - firstOrigin: The origin of the call's own credentials, even if a middleware sends the first request
    ///     elsewhere; `nil` for the origin of the first request.
    ///   - sendsCredentialsCrossOrigin: Whether redirects to other origins receive the credentials for the first origin
    ///     (``RedirectPolicy/sendsCredentialsCrossOrigin``); `false` by default.
    package init(
        party: ChallengeSource, sources: CredentialSources, memory: AuthenticationCache,
        nonces: ClientNonceSource = .system, firstOrigin: HTTPURL.Origin? = nil,
        sendsCredentialsCrossOrigin: Bool = false
    ) {
        (self.party, self.sources) = (party, sources)
        (self.memory, self.nonces) = (memory, nonces)
        (self.firstOrigin, self.sendsCredentialsCrossOrigin) = (firstOrigin, sendsCredentialsCrossOrigin)
    }

    /// Whether a request that was prepared without a field will most likely be challenged, so that its body should wait
    /// for the challenge (RFC 9110 §10.1.1).
    package func expectsChallenge(_ request: AuthenticatedRequest) -> Bool {
        guard let state = states[request.origin], !request.hasOwnField else { return false }
        return state.sent == nil && state.credentials != nil
    }

    /// Whether a request that was prepared without a field is sent without its body, to receive a Digest challenge.
    package func probes(_ request: AuthenticatedRequest) -> Bool {
        guard case .password(_, _, .digest)? = states[request.origin]?.credentials?.kind else { return false }
        return sources.probesForDigest && expectsChallenge(request)
    }

    /// Returns the identity of the user for a cache, if the prepared field is valid for one request only (Digest);
    /// `nil` for other fields, which identify the user. It contains the whole secret, and must be stored as a hash.
    package func identity(for request: AuthenticatedRequest) -> String? {
        guard case .digest(let sent)? = states[request.origin]?.sent,
            case .password(let user, let password, _) = sent.key.credentials.kind
        else { return nil }
        return "Digest \(user)\u{0}\(password)"
    }

    // MARK: Requests

    /// Returns the field for a request.
    /// - Throws: ``CredentialsError`` if the credentials cannot be written into a field. Do not send the request then.
    package mutating func prepare(_ request: AuthenticatedRequest) throws(CredentialsError) -> RequestAuthentication {
        let origin = request.origin
        if firstOrigin == nil { firstOrigin = origin }
        if origin != firstOrigin, !sendsCredentialsCrossOrigin { hasLeft = true }
        var state = states[origin] ?? state(at: origin)
        if hasLeft, state.source.isPerCall { state = self.state(at: origin) }
        state.sent = nil
        defer { states[origin] = state }
        if request.hasOwnField {
            state.next = nil
            return .none
        }
        switch state.next.take() {
        case .digest(let session, let key, let extent):
            guard let count = memory.withTable({ $0.recordDigest(key, session, extent: extent) }) else { return .none }
            return try write(session, count, key, request, isRemembered: false, &state)
        case .value(let value, let sent):
            state.sent = sent
            return .value(value)
        case nil: break
        }
        if state.source == .tokens, state.credentials == nil {
            guard let token else { return .fetchToken }
            state.sent = .token(token)
            return .value(try .bearer(token: token))
        }
        guard let credentials = state.credentials else { return .none }
        if let value = try credentials.preemptiveValue() {
            state.sent = .plain
            return .value(value)
        }
        return try remembered(credentials, request, &state)
    }

    /// Sets the token that ``RequestAuthentication/fetchToken`` requested.
    package mutating func received(token: String) { self.token = token }

    /// Returns the state at an origin before a challenge.
    private func state(at origin: HTTPURL.Origin) -> AuthenticationState {
        if !hasLeft, origin == firstOrigin || sendsCredentialsCrossOrigin {
            if let credentials = sources.credentials {
                return AuthenticationState(source: .call, credentials: credentials)
            }
            if sources.tokens != nil { return AuthenticationState(source: .tokens) }
        }
        if let credentials = sources.credentialsByOrigin[origin] {
            return AuthenticationState(source: .origin, credentials: credentials)
        }
        // A redirect from https to http must not send the credentials of a host in plain text.
        let isDowngrade = origin.scheme == .http && firstOrigin?.scheme == .https
        if party == .origin, !isDowngrade, let credentials = sources.credentialsOfHost?(origin.host) {
            return AuthenticationState(source: .netrc, credentials: credentials)
        }
        return AuthenticationState(source: .nothing)
    }

    /// Returns the field that can be sent preemptively because of the challenges of earlier calls.
    private func remembered(
        _ credentials: Credentials, _ request: AuthenticatedRequest, _ state: inout AuthenticationState
    ) throws(CredentialsError) -> RequestAuthentication {
        guard case .password(let user, let password, let scheme) = credentials.kind else { return .none }
        let key = AuthenticationKey(party: party, origin: request.origin, credentials: credentials)
        switch memory.withTable({ $0.answer(for: key, path: request.target) }) {
        case .digest(let session, let count):
            return try write(session, count, key, request, isRemembered: true, &state)
        case .basic where scheme == .any:
            state.sent = .basic(key)
            return .value(try .basic(user: user, password: password))
        default: return .none
        }
    }

    private func write(
        _ session: DigestSession, _ count: UInt32, _ key: AuthenticationKey, _ request: AuthenticatedRequest,
        isRemembered: Bool, _ state: inout AuthenticationState
    ) throws(CredentialsError) -> RequestAuthentication {
        guard let user = key.credentials.user else { return .none }
        guard !AuthorizationValue.hasControl(user) else { throw .controlCharacter }
        guard
            let authorization = try? DigestAuthorization(
                session: session, user: user, request: request, useCount: count, clientNonce: nonces.next())
        else { return .none }
        state.sent = .digest(
            .init(key: key, session: session, proof: authorization.proof, isRemembered: isRemembered))
        return .value(authorization.value)
    }

    // MARK: Responses

    /// Decides on a response.
    /// - Parameters:
    ///   - response: The fields of the response.
    ///   - request: The request as it was prepared.
    package mutating func received(_ response: AuthenticationResponse, to request: AuthenticatedRequest)
        -> AuthenticationDecision
    {
        guard !request.hasOwnField, var state = states[request.origin] else { return .deliver }
        guard response.status == party.status else { return accepted(response, request, state) }
        let parsed = ChallengeParser.challenges(in: response.challenges, field: party.challengeField)
        state.challenges = parsed.challenges
        defer { states[request.origin] = state }

        let sent = state.sent
        let isRejected = rejects(sent, parsed.challenges)
        let rejectedUser = isRejected ? state.credentials?.user : nil
        if isRejected {
            failureCount += 1
            forget(sent)
        }
        let isLast = failureCount >= max(1, sources.attemptLimit)
        // Later calls would send the rejected token again, so it is replaced even if this request cannot be repeated.
        if isRejected, !isLast, case .token(let token) = sent { return .refresh(after: token) }
        guard request.isRepeatable else { return .deliver }
        if isRejected {
            guard !isLast else {
                state.credentials = nil
                if state.source == .tokens { state.source = .nothing }
                return .deliver
            }
            state.credentials = nil
            state.source = .nothing
        } else if let credentials = state.credentials, let next = choose(credentials, parsed.challenges, request) {
            state.next = next
            return .resend
        }
        guard sources.handler != nil else { return .deliver }
        return .ask(
            AuthenticationChallenge(
                party: party, origin: request.origin, challenges: parsed.challenges, errors: parsed.errors,
                failureCount: failureCount, rejectedUser: rejectedUser))
    }

    /// Decides on the handler's reply to ``AuthenticationDecision/ask(_:)``.
    /// - Throws: ``CredentialsError`` if the credentials cannot be written into a field.
    package mutating func received(credentials: Credentials?, for request: AuthenticatedRequest)
        throws(CredentialsError) -> AuthenticationDecision
    {
        guard let credentials, var state = states[request.origin] else { return .deliver }
        state.source = .handler
        state.credentials = credentials
        defer { states[request.origin] = state }
        if let value = try credentials.preemptiveValue() {
            state.next = .value(value, .plain)
        } else if let next = choose(credentials, state.challenges, request) {
            state.next = next
        } else {
            return .deliver
        }
        return .resend
    }

    /// Decides on the token that ``AuthenticationDecision/refresh(after:)`` requested.
    package mutating func received(token: String, after rejected: String, for request: AuthenticatedRequest)
        -> AuthenticationDecision
    {
        self.token = token
        // The same token would be rejected again.
        return token == rejected || !request.isRepeatable ? .deliver : .resend
    }

    /// Whether the challenges mean that the field was wrong, and not only missing or stale.
    private mutating func rejects(_ sent: AuthenticationState.Sent?, _ challenges: [HTTPChallenge]) -> Bool {
        guard let sent else { return false }
        guard case .digest(let digest) = sent else { return true }
        // A nonce from an earlier call may have expired, even if the server does not report it as stale.
        let isOld =
            digest.isRemembered
            || challenges.lazy.compactMap(DigestChallenge.init).contains {
                $0.isStale && $0.realm == digest.session.challenge.realm && $0.nonce != digest.session.nonce
            }
        guard isOld, staleCount < AuthenticationMachine.staleLimit else { return true }
        staleCount += 1
        return false
    }

    private func forget(_ sent: AuthenticationState.Sent?) {
        switch sent {
        case .digest(let digest): memory.withTable { $0.removeDigest(digest.key, used: digest.session.nonce) }
        case .basic(let key): memory.withTable { $0.removeBasic(key) }
        case .plain, .token, nil: break
        }
    }

    /// Returns the field for the best challenge that these credentials can satisfy: Digest before Basic, and the
    /// strongest algorithm first; `nil` for none. Rejected credentials are never retried with a weaker scheme.
    private func choose(_ credentials: Credentials, _ challenges: [HTTPChallenge], _ request: AuthenticatedRequest)
        -> AuthenticationState.Next?
    {
        guard case .password(let user, let password, let scheme) = credentials.kind, scheme != .basic else {
            return nil
        }
        let key = AuthenticationKey(party: party, origin: request.origin, credentials: credentials)
        if let challenge = DigestChallenge.strongest(of: challenges, hasBodyDigest: request.body.isKnown) {
            let clientNonce = nonces.next()
            let secret = try? DigestAuthorization.key(
                for: challenge, user: user, password: password, clientNonce: clientNonce)
            guard let secret else { return nil }
            let extent = party == .proxy ? .whole : ProtectionSpace(domain: challenge.domain, at: request.origin)
            return .digest(DigestSession(challenge: challenge, clientNonce: clientNonce, key: secret), key, extent)
        }
        guard scheme == .any, challenges.contains(where: { $0.isScheme("Basic") }),
            let value = try? AuthorizationValue.basic(user: user, password: password)
        else { return nil }
        return .value(value, .basic(key))
    }

    /// Stores the next nonce and checks the server's proof in a response that is not a challenge.
    private func accepted(
        _ response: AuthenticationResponse, _ request: AuthenticatedRequest, _ state: AuthenticationState
    ) -> AuthenticationDecision {
        switch state.sent {
        case .basic(let key):
            let extent = party == .proxy ? .whole : ProtectionSpace(around: request.target)
            memory.withTable { $0.recordBasic(key, extent: extent) }
        case .digest(let sent):
            let information = ChallengeParser.parameters(in: response.information, field: party.informationField)
                .parameters
            let claimed = information.first { $0.name == "rspauth" }?.rawValue
            if sent.proof.isRefuted(by: claimed) {
                memory.withTable { $0.removeDigest(sent.key, used: sent.session.nonce) }
                return .reject(.serverAuthenticationFailed(request.origin, party))
            }
            if let next = information.first(where: { $0.name == "nextnonce" })?.rawValue, !next.isEmpty {
                memory.withTable {
                    $0.renew(sent.key, realm: sent.session.challenge.realm, used: sent.session.nonce, next: next)
                }
            }
        case .plain, .token, nil: break
        }
        return .deliver
    }
}
