import MartletTransport

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
            guard failureCount < max(1, settings.attemptLimit) else {
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
        guard settings.handler != nil else { return .deliver }
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
        case .digest(let digest):
            memory.withTable { $0.forgetDigest(digest.key, used: digest.nonce) }
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
        if let challenge = DigestChallenge.strongest(
            of: challenges, hasBodyDigest: request.body.isKnown)
        {
            let clientNonce = nonces.next()
            guard
                let secret = try? DigestAuthorization.key(
                    for: challenge, user: user, password: password, clientNonce: clientNonce)
            else { return nil }
            let extent =
                party == .proxy
                ? .whole : ProtectionSpace(domain: challenge.domain, at: request.origin)
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
