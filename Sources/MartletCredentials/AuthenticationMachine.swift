package import MartletURL
import MartletTransport

/// Decides what one call says to servers that ask who is calling, or to a proxy that does: one machine for each of the two.
///
/// Before each request it is asked what to send, ``prepare(_:)``; after each response what to do, ``received(_:to:)``. It
/// runs nothing itself: handlers and tokens are asked by ``AuthenticationFlow``, which tells it what they said.
///
/// What it knows is kept by origin. Nothing that one origin said, and nothing that was given for it, plays a part in what
/// another is sent.
package struct AuthenticationMachine: Sendable {
    /// Who asks.
    package let party: AuthenticationParty
    package let sources: CredentialSources
    let memory: AuthenticationMemory
    let nonces: ClientNonceSource
    /// Whether other origins are shown what is meant for the first.
    let trustsOtherOrigins: Bool

    /// The origin the call began at; `nil` until the first request is prepared, where it was not given.
    private var firstOrigin: HTTPURL.Origin?
    /// Whether a request of the call went elsewhere since.
    private var hasLeft = false
    /// What is known of each origin the call came to.
    var standings: [HTTPURL.Origin: AuthenticationStanding] = [:]
    /// How many times credentials were refused.
    package internal(set) var failureCount = 0
    /// How many times a nonce turned out too old, which is no refusal.
    var staleCount = 0
    /// The token in force.
    var token: String?

    /// The most answers in one call that call a nonce too old: a server that says so of each has no end.
    package static let staleLimit = 3

    /// A machine for one call.
    /// - Parameters:
    ///   - firstOrigin: What the call's own credentials are meant for, wherever a middleware sends the first request; `nil`
    ///     for the origin of that.
    ///   - trustsOtherOrigins: Whether what is meant for the origin that the call begins at is meant for all that redirects
    ///     lead to, as ``RedirectPolicy/trustsOtherOrigins`` says; default no.
    package init(
        party: AuthenticationParty, sources: CredentialSources, memory: AuthenticationMemory,
        nonces: ClientNonceSource = .system, firstOrigin: HTTPURL.Origin? = nil,
        trustsOtherOrigins: Bool = false
    ) {
        self.party = party
        self.sources = sources
        self.memory = memory
        self.nonces = nonces
        self.firstOrigin = firstOrigin
        self.trustsOtherOrigins = trustsOtherOrigins
    }

    /// Whether a request that was just prepared without a field will most likely be asked for one: its body had better wait
    /// for that (RFC 9110 §10.1.1).
    package func expectsChallenge(_ request: AuthenticatedRequest) -> Bool {
        guard let standing = standings[request.origin], !request.hasOwnField, standing.sent == nil else {
            return false
        }
        return standing.credentials != nil
    }

    /// Whether a request that was just prepared without a field is sent without its body, to be asked for Digest.
    package func probes(_ request: AuthenticatedRequest) -> Bool {
        guard sources.probesForDigest, expectsChallenge(request),
            case .password(_, _, .digest)? = standings[request.origin]?.credentials?.kind
        else { return false }
        return true
    }

    /// By what a cache knows who calls where the field that was just prepared is good for one request alone, as that of Digest:
    /// all of the secret, of which whoever stores it makes a hash. `nil` for other fields, which say it themselves.
    package func identity(for request: AuthenticatedRequest) -> String? {
        guard case .digest(let sent)? = standings[request.origin]?.sent,
            case .password(let user, let password, _) = sent.key.credentials.kind
        else { return nil }
        return "Digest \(user)\u{0}\(password)"
    }

    // MARK: About to send

    /// What a request is sent with.
    ///
    /// - Throws: For credentials that cannot be written into a field; nothing must be sent then.
    package mutating func prepare(_ request: AuthenticatedRequest) throws(CredentialsError)
        -> AuthenticationPreparation
    {
        let origin = request.origin
        if firstOrigin == nil { firstOrigin = origin }
        if origin != firstOrigin, !trustsOtherOrigins { hasLeft = true }
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
            return try digest(session, key, request, extent: extent, &standing)
        case .basic(let value, let key):
            standing.sent = .basic(key)
            return .value(value)
        case .unasked(let value):
            standing.sent = .plain
            return .value(value)
        case nil: break
        }
        if standing.source == .tokens, standing.credentials == nil {
            guard let token else { return .fetchToken }
            standing.sent = .token(token)
            return .value(try BearerAuthorization.value(token: token))
        }
        guard let credentials = standing.credentials else { return .none }
        if let value = try credentials.unaskedValue() {
            standing.sent = .plain
            return .value(value)
        }
        return try remembered(credentials, request, &standing)
    }

    /// The token that ``AuthenticationPreparation/fetchToken`` asked for.
    package mutating func received(token: String) { self.token = token }

    /// What is there for an origin before it has asked.
    private func standing(at origin: HTTPURL.Origin) -> AuthenticationStanding {
        if !hasLeft, origin == firstOrigin || trustsOtherOrigins {
            if let credentials = sources.credentials {
                return AuthenticationStanding(source: .call, credentials: credentials)
            }
            if sources.tokens != nil { return AuthenticationStanding(source: .tokens) }
        }
        if let credentials = sources.credentialsByOrigin[origin] {
            return AuthenticationStanding(source: .origin, credentials: credentials)
        }
        // What hosts are trusted with over TLS is not sent in the clear because a redirect says so.
        let isDowngrade = origin.scheme == .http && firstOrigin?.scheme == .https
        if party == .origin, !isDowngrade, let credentials = sources.credentialsOfHost?(origin.host) {
            return AuthenticationStanding(source: .netrc, credentials: credentials)
        }
        return AuthenticationStanding(source: .nothing)
    }

    /// What the session knows from earlier calls.
    private func remembered(
        _ credentials: Credentials, _ request: AuthenticatedRequest, _ standing: inout AuthenticationStanding
    ) throws(CredentialsError) -> AuthenticationPreparation {
        guard case .password(let user, let password, let scheme) = credentials.kind else { return .none }
        let key = AuthenticationKey(party: party, origin: request.origin, credentials: credentials)
        switch memory.withTable({ $0.answer(for: key, path: request.target) }) {
        case .digest(let session, let count):
            return try write(session, count, key, user: user, request, isRemembered: true, &standing)
        case .basic where scheme == .any:
            standing.sent = .basic(key)
            return .value(try BasicAuthorization.value(user: user, password: password))
        default: return .none
        }
    }

    /// Answers a challenge that was just received, and remembers it.
    private func digest(
        _ session: DigestSession, _ key: AuthenticationKey, _ request: AuthenticatedRequest,
        extent: ProtectionSpace, _ standing: inout AuthenticationStanding
    ) throws(CredentialsError) -> AuthenticationPreparation {
        guard let user = key.credentials.user else { return .none }
        guard let count = memory.withTable({ $0.noteDigest(key, session, extent: extent) }) else {
            return .none
        }
        return try write(session, count, key, user: user, request, isRemembered: false, &standing)
    }

    private func write(
        _ session: DigestSession, _ count: UInt32, _ key: AuthenticationKey, user: String,
        _ request: AuthenticatedRequest, isRemembered: Bool, _ standing: inout AuthenticationStanding
    ) throws(CredentialsError) -> AuthenticationPreparation {
        guard !BasicAuthorization.hasControl(user) else { throw .controlCharacter }
        let subject = DigestRequest(method: request.method, target: request.target, body: request.body)
        do throws(MessageDigestError) {
            guard
                let authorization = try DigestAuthorization(
                    session: session, user: user, request: subject, useCount: count,
                    clientNonce: nonces.next())
            else { return .none }
            standing.sent = .digest(
                AuthenticationStanding.SentDigest(
                    key: key, realm: session.challenge.realm, nonce: session.nonce,
                    proof: authorization.proof, isRemembered: isRemembered))
            return .value(authorization.value)
        } catch {
            return .none
        }
    }
}

extension AuthenticationMachine {
    // MARK: A response came

    /// What to do about a response.
    ///
    /// - Parameters:
    ///   - answer: What the response says.
    ///   - request: The request, as it was when it was prepared.
    package mutating func received(
        _ answer: AuthenticationAnswer, to request: AuthenticatedRequest
    ) -> AuthenticationDecision {
        guard !request.hasOwnField, var standing = standings[request.origin] else { return .deliver }
        guard answer.status == party.status else { return accepted(answer, request, standing) }
        let parsed = ChallengeParser.challenges(in: answer.challenges, field: party.challengeField)
        standing.challenges = parsed.challenges
        defer { standings[request.origin] = standing }

        let sent = standing.sent
        let isRefused = isRefusal(sent, parsed.challenges)
        var refusedUser: String?
        if isRefused {
            failureCount += 1
            refusedUser = standing.credentials?.user
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
        } else if let credentials = standing.credentials,
            let next = choose(credentials, parsed.challenges, request)
        {
            standing.next = next
            return .resend
        }
        guard sources.handler != nil else { return .deliver }
        return .ask(
            AuthenticationChallenge(
                party: party, origin: request.origin, challenges: parsed.challenges, faults: parsed.faults,
                failureCount: failureCount, refusedUser: refusedUser))
    }

    /// What the handler said to ``AuthenticationDecision/ask(_:)``.
    ///
    /// - Throws: For credentials that cannot be written into a field.
    package mutating func received(
        credentials: Credentials?, for request: AuthenticatedRequest
    ) throws(CredentialsError) -> AuthenticationDecision {
        guard let credentials, var standing = standings[request.origin] else { return .deliver }
        standing.source = .handler
        standing.credentials = credentials
        defer { standings[request.origin] = standing }
        if let value = try credentials.unaskedValue() {
            standing.next = .unasked(value)
            return .resend
        }
        guard let next = choose(credentials, standing.challenges, request) else { return .deliver }
        standing.next = next
        return .resend
    }

    /// The token that ``AuthenticationDecision/refresh(after:)`` asked for.
    package mutating func received(token: String, after refused: String) -> AuthenticationDecision {
        self.token = token
        // The same again would be refused again.
        return token == refused ? .deliver : .resend
    }

    // MARK: Refused

    /// Whether a challenge says that what was sent is wrong, and not merely missing or too old.
    private mutating func isRefusal(
        _ sent: AuthenticationStanding.Sent?, _ challenges: [HTTPChallenge]
    ) -> Bool {
        guard let sent else { return false }
        guard case .digest(let digest) = sent else { return true }
        // A nonce from an earlier call may have run out, whatever the server calls that.
        let isOld =
            digest.isRemembered
            || challenges.lazy.compactMap(DigestChallenge.init).contains {
                $0.isStale && $0.realm == digest.realm && $0.nonce != digest.nonce
            }
        guard isOld, staleCount < AuthenticationMachine.staleLimit else { return true }
        staleCount += 1
        return false
    }

    private func forget(_ sent: AuthenticationStanding.Sent?) {
        switch sent {
        case .digest(let digest): memory.withTable { $0.forgetDigest(digest.key, used: digest.nonce) }
        case .basic(let key): memory.withTable { $0.forgetBasic(key) }
        case .plain, .token, nil: break
        }
    }

    // MARK: Asked

    /// What answers the challenges with these credentials; `nil` when nothing does.
    ///
    /// Digest comes before Basic, and the strongest algorithm before the others. What was refused is never tried again in a
    /// weaker way.
    private func choose(
        _ credentials: Credentials, _ challenges: [HTTPChallenge], _ request: AuthenticatedRequest
    ) -> AuthenticationStanding.Next? {
        guard case .password(let user, let password, let scheme) = credentials.kind, scheme != .basic else {
            return nil
        }
        let key = AuthenticationKey(party: party, origin: request.origin, credentials: credentials)
        if let challenge = DigestChallenge.strongest(of: challenges, hasBodyDigest: request.body.isKnown) {
            let clientNonce = nonces.next()
            guard
                let secret = try? DigestAuthorization.key(
                    for: challenge, user: user, password: password, clientNonce: clientNonce)
            else { return nil }
            let extent =
                party == .proxy ? .whole : ProtectionSpace(domain: challenge.domain, at: request.origin)
            return .digest(
                DigestSession(challenge: challenge, clientNonce: clientNonce, key: secret), key, extent)
        }
        guard scheme == .any, challenges.contains(where: { $0.isScheme("Basic") }),
            let value = try? BasicAuthorization.value(user: user, password: password)
        else { return nil }
        return .basic(value, key)
    }

    // MARK: Let through

    /// What a response says that is no challenge: the nonce to come, and the server's proof.
    private func accepted(
        _ answer: AuthenticationAnswer, _ request: AuthenticatedRequest, _ standing: AuthenticationStanding
    ) -> AuthenticationDecision {
        switch standing.sent {
        case .basic(let key):
            let extent = party == .proxy ? .whole : ProtectionSpace(around: request.target)
            memory.withTable { $0.noteBasic(key, extent: extent) }
        case .digest(let sent):
            let information = ChallengeParser.parameters(
                in: answer.information, field: party.informationField
            ).parameters
            let claimed = information.first { $0.name == "rspauth" }?.rawValue
            if sent.proof.verdict(on: claimed) == .refuted {
                memory.withTable { $0.forgetDigest(sent.key, used: sent.nonce) }
                return .refuse(.serverNotAuthentic(request.origin, party))
            }
            if let next = information.first(where: { $0.name == "nextnonce" })?.rawValue, !next.isEmpty {
                memory.withTable { $0.renew(sent.key, realm: sent.realm, used: sent.nonce, next: next) }
            }
        case .plain, .token, nil: break
        }
        return .deliver
    }
}
