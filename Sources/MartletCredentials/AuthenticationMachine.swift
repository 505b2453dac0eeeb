package import MartletURL
import MartletTransport

/// Decides on the credentials of one call: one machine for servers, another for the proxy.
///
/// ``prepare(_:)`` decides on the field of each request, ``received(_:to:)`` on each response. It runs nothing itself:
/// ``AuthenticationFlow`` calls handlers and token providers, and passes on their results.
///
/// Its state is stored by origin. Nothing that one origin sent, or that was given for it, affects what another is sent.
package struct AuthenticationMachine: Sendable {
    /// The party that it sends credentials to.
    package let party: ChallengeSource
    package let sources: CredentialSources
    private let memory: AuthenticationCache
    private let nonces: ClientNonceSource
    /// Whether other origins are sent the credentials for the first.
    private let sendsCredentialsCrossOrigin: Bool

    /// The origin the call began at; `nil` until the first request is prepared, unless it was given.
    private var firstOrigin: HTTPURL.Origin?
    /// Whether a request of the call went elsewhere since.
    private var hasLeft = false
    /// The state at each origin of the call.
    private var standings: [HTTPURL.Origin: AuthenticationState] = [:]
    /// The number of times that credentials were rejected.
    package private(set) var failureCount = 0
    /// The number of times that a nonce was too old, which is not a rejection.
    private var staleCount = 0
    /// The token in force.
    private var token: String?

    /// The maximum number of responses of one call that report a nonce as too old, against a server that reports each.
    package static let staleLimit = 3

    /// Creates a machine for one call.
    /// - Parameters:
    ///   - firstOrigin: The origin of the call's own credentials, wherever a middleware sends the first request; `nil` for
    ///     the origin of that.
    ///   - sendsCredentialsCrossOrigin: Whether the credentials for the origin that the call begins at are also for the origins that
    ///     redirects lead to (``RedirectPolicy/sendsCredentialsCrossOrigin``); `false` by default.
    package init(
        party: ChallengeSource, sources: CredentialSources, memory: AuthenticationCache,
        nonces: ClientNonceSource = .system, firstOrigin: HTTPURL.Origin? = nil,
        sendsCredentialsCrossOrigin: Bool = false
    ) {
        self.party = party
        self.sources = sources
        self.memory = memory
        self.nonces = nonces
        self.firstOrigin = firstOrigin
        self.sendsCredentialsCrossOrigin = sendsCredentialsCrossOrigin
    }

    /// Whether a request that was just prepared without a field will most likely be challenged: its body should wait for that
    /// (RFC 9110 §10.1.1).
    package func expectsChallenge(_ request: AuthenticatedRequest) -> Bool {
        guard let standing = standings[request.origin], !request.hasOwnField else { return false }
        return standing.sent == nil && standing.credentials != nil
    }

    /// Whether a request that was just prepared without a field is sent without its body, to get a Digest challenge.
    package func probes(_ request: AuthenticatedRequest) -> Bool {
        guard case .password(_, _, .digest)? = standings[request.origin]?.credentials?.kind else { return false }
        return sources.probesForDigest && expectsChallenge(request)
    }

    /// The identity of the user for a cache if the field that was just prepared is valid for one request alone, as in Digest:
    /// all of the secret, to be stored as a hash. `nil` for other fields, which identify the user themselves.
    package func identity(for request: AuthenticatedRequest) -> String? {
        guard case .digest(let sent)? = standings[request.origin]?.sent,
            case .password(let user, let password, _) = sent.key.credentials.kind
        else { return nil }
        return "Digest \(user)\u{0}\(password)"
    }

    // MARK: Requests

    /// The field that a request is sent with.
    /// - Throws: For credentials that cannot be written into a field; nothing must be sent then.
    package mutating func prepare(_ request: AuthenticatedRequest) throws(CredentialsError) -> RequestAuthentication {
        let origin = request.origin
        if firstOrigin == nil { firstOrigin = origin }
        if origin != firstOrigin, !sendsCredentialsCrossOrigin { hasLeft = true }
        var standing = standings[origin] ?? standing(at: origin)
        if hasLeft, standing.source.isOfTheCall { standing = self.standing(at: origin) }
        standing.sent = nil
        defer { standings[origin] = standing }
        if request.hasOwnField {
            standing.next = nil
            return .none
        }
        switch standing.next.take() {
        case .digest(let session, let key, let extent):
            guard let count = memory.withTable({ $0.noteDigest(key, session, extent: extent) }) else { return .none }
            return try write(session, count, key, request, isRemembered: false, &standing)
        case .value(let value, let sent):
            standing.sent = sent
            return .value(value)
        case nil: break
        }
        if standing.source == .tokens, standing.credentials == nil {
            guard let token else { return .fetchToken }
            standing.sent = .token(token)
            return .value(try .bearer(token: token))
        }
        guard let credentials = standing.credentials else { return .none }
        if let value = try credentials.preemptiveValue() {
            standing.sent = .plain
            return .value(value)
        }
        return try remembered(credentials, request, &standing)
    }

    /// Sets the token that ``RequestAuthentication/fetchToken`` requested.
    package mutating func received(token: String) { self.token = token }

    /// The state at an origin before a challenge.
    private func standing(at origin: HTTPURL.Origin) -> AuthenticationState {
        if !hasLeft, origin == firstOrigin || sendsCredentialsCrossOrigin {
            if let credentials = sources.credentials {
                return AuthenticationState(source: .call, credentials: credentials)
            }
            if sources.tokens != nil { return AuthenticationState(source: .tokens) }
        }
        if let credentials = sources.credentialsByOrigin[origin] {
            return AuthenticationState(source: .origin, credentials: credentials)
        }
        // Credentials for hosts over TLS are not sent in the clear because of a redirect.
        let isDowngrade = origin.scheme == .http && firstOrigin?.scheme == .https
        if party == .origin, !isDowngrade, let credentials = sources.credentialsOfHost?(origin.host) {
            return AuthenticationState(source: .netrc, credentials: credentials)
        }
        return AuthenticationState(source: .nothing)
    }

    /// The field that the session knows from earlier calls.
    private func remembered(
        _ credentials: Credentials, _ request: AuthenticatedRequest, _ standing: inout AuthenticationState
    ) throws(CredentialsError) -> RequestAuthentication {
        guard case .password(let user, let password, let scheme) = credentials.kind else { return .none }
        let key = AuthenticationKey(party: party, origin: request.origin, credentials: credentials)
        switch memory.withTable({ $0.answer(for: key, path: request.target) }) {
        case .digest(let session, let count):
            return try write(session, count, key, request, isRemembered: true, &standing)
        case .basic where scheme == .any:
            standing.sent = .basic(key)
            return .value(try .basic(user: user, password: password))
        default: return .none
        }
    }

    private func write(
        _ session: DigestSession, _ count: UInt32, _ key: AuthenticationKey, _ request: AuthenticatedRequest,
        isRemembered: Bool, _ standing: inout AuthenticationState
    ) throws(CredentialsError) -> RequestAuthentication {
        guard let user = key.credentials.user else { return .none }
        guard !AuthorizationValue.hasControl(user) else { throw .controlCharacter }
        guard
            let authorization = try? DigestAuthorization(
                session: session, user: user, request: request, useCount: count, clientNonce: nonces.next())
        else { return .none }
        standing.sent = .digest(
            .init(key: key, session: session, proof: authorization.proof, isRemembered: isRemembered))
        return .value(authorization.value)
    }

    // MARK: Responses

    /// Decides on a response.
    /// - Parameters:
    ///   - answer: The fields of the response.
    ///   - request: The request, as it was prepared.
    package mutating func received(_ answer: AuthenticationResponse, to request: AuthenticatedRequest)
        -> AuthenticationDecision
    {
        guard !request.hasOwnField, var standing = standings[request.origin] else { return .deliver }
        guard answer.status == party.status else { return accepted(answer, request, standing) }
        let parsed = ChallengeParser.challenges(in: answer.challenges, field: party.challengeField)
        standing.challenges = parsed.challenges
        defer { standings[request.origin] = standing }

        let sent = standing.sent
        let isRefused = isRefusal(sent, parsed.challenges)
        let refusedUser = isRefused ? standing.credentials?.user : nil
        if isRefused {
            failureCount += 1
            forget(sent)
        }
        guard request.isRepeatable else { return .deliver }
        if isRefused {
            guard failureCount < max(1, sources.attemptLimit) else {
                standing.credentials = nil
                if standing.source == .tokens { standing.source = .nothing }
                return .deliver
            }
            if case .token(let token) = sent { return .refresh(after: token) }
            standing.credentials = nil
            standing.source = .nothing
        } else if let credentials = standing.credentials, let next = choose(credentials, parsed.challenges, request) {
            standing.next = next
            return .resend
        }
        guard sources.handler != nil else { return .deliver }
        return .ask(
            AuthenticationChallenge(
                party: party, origin: request.origin, challenges: parsed.challenges, faults: parsed.faults,
                failureCount: failureCount, refusedUser: refusedUser))
    }

    /// Decides with the handler's reply to ``AuthenticationDecision/ask(_:)``.
    /// - Throws: For credentials that cannot be written into a field.
    package mutating func received(credentials: Credentials?, for request: AuthenticatedRequest)
        throws(CredentialsError) -> AuthenticationDecision
    {
        guard let credentials, var standing = standings[request.origin] else { return .deliver }
        standing.source = .handler
        standing.credentials = credentials
        defer { standings[request.origin] = standing }
        if let value = try credentials.preemptiveValue() {
            standing.next = .value(value, .plain)
        } else if let next = choose(credentials, standing.challenges, request) {
            standing.next = next
        } else {
            return .deliver
        }
        return .resend
    }

    /// Decides with the token that ``AuthenticationDecision/refresh(after:)`` requested.
    package mutating func received(token: String, after refused: String) -> AuthenticationDecision {
        self.token = token
        // The same token would be rejected again.
        return token == refused ? .deliver : .resend
    }

    /// Whether a challenge means that the field was wrong, and not merely missing or too old.
    private mutating func isRefusal(_ sent: AuthenticationState.Sent?, _ challenges: [HTTPChallenge]) -> Bool {
        guard let sent else { return false }
        guard case .digest(let digest) = sent else { return true }
        // A nonce from an earlier call may have expired, whatever the server calls that.
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
        case .digest(let digest): memory.withTable { $0.forgetDigest(digest.key, used: digest.session.nonce) }
        case .basic(let key): memory.withTable { $0.forgetBasic(key) }
        case .plain, .token, nil: break
        }
    }

    /// The response to the challenges with these credentials; `nil` if there is none. Digest comes before Basic, and the
    /// strongest algorithm before the others. Rejected credentials are never retried in a weaker scheme.
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

    /// Takes the nonce of later requests and the server's proof from a response that is not a challenge.
    private func accepted(
        _ answer: AuthenticationResponse, _ request: AuthenticatedRequest, _ standing: AuthenticationState
    ) -> AuthenticationDecision {
        switch standing.sent {
        case .basic(let key):
            let extent = party == .proxy ? .whole : ProtectionSpace(around: request.target)
            memory.withTable { $0.noteBasic(key, extent: extent) }
        case .digest(let sent):
            let information = ChallengeParser.parameters(in: answer.information, field: party.informationField)
                .parameters
            let claimed = information.first { $0.name == "rspauth" }?.rawValue
            if sent.proof.verdict(on: claimed) == .refuted {
                memory.withTable { $0.forgetDigest(sent.key, used: sent.session.nonce) }
                return .refuse(.serverAuthenticationFailed(request.origin, party))
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
