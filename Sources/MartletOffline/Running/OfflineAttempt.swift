import MartletCache
import MartletClient
import SystemPackage

/// One try to send a request: credentials, sending, and credentials once more where the server wants others.
struct OfflineAttempt: Sendable {
    let session: HTTPSession
    let request: FrozenRequest
    let body: HTTPBody
    /// The fields that are not stored, as long as the process lasts that submitted the request.
    let secretFields: HTTPFields?
    let credentials: CredentialKeeper?
    let options: RequestOptions
    let rule: ReplayRule
    /// The fields that the queue's options call secret.
    let declaredSecrets: Set<HTTPField.Name>

    /// Sends it.
    /// - Returns: What follows; `nil` where it was cancelled.
    func run() async -> ReplayVerdict? {
        let first: ReplayVerdict
        var generation: UInt64 = 0
        do {
            let (request, used) = try await authorized()
            generation = used
            guard let verdict = await send(request) else { return nil }
            first = verdict
        } catch {
            return failed(error)
        }
        guard case .unauthorized(let answer) = first else { return first }
        guard let credentials else { return unauthorized(answer) }
        do {
            try await credentials.renew(after: generation)
            let (request, _) = try await authorized()
            guard let second = await send(request) else { return nil }
            if case .unauthorized(let answer) = second { return unauthorized(answer) }
            return second
        } catch {
            return failed(error)
        }
    }

    private func failed(_ error: any Error) -> ReplayVerdict? {
        if error is CancellationError, Task.isCancelled { return nil }
        return .later(.credentialsFailed, atLeast: nil, message: "\(error)")
    }

    private func unauthorized(_ answer: HTTPExchange) -> ReplayVerdict {
        .later(
            .unauthorized, atLeast: nil,
            message: "the server answered with status \(answer.statusCode): it wants other credentials")
    }

    private func authorized() async throws -> (HTTPRequest, UInt64) {
        let bare = HTTPRequest(
            method: HTTPRequest.Method(rawValue: request.method) ?? .post, url: request.url,
            headerFields: request.fields)
        var made = (request: bare, generation: UInt64(0))
        if let credentials {
            made = try await credentials.authorize(bare)
        } else if let secretFields {
            for field in secretFields { made.request.headerFields.append(field) }
        }
        // The same at each try, whoever changed what.
        made.request.headerFields[.idempotencyKey] = request.idempotencyKey
        return made
    }

    private func send(_ request: HTTPRequest) async -> ReplayVerdict? {
        var options = options
        options.retry = .never
        options.validator = .anything
        options.idempotencyKey = nil
        // What is not written down does not go to another origin either.
        var redirects = options.redirects ?? session.configuration.redirects
        // What is told goes on to where it belongs: a GET in its place tells nobody.
        if options.redirects == nil { redirects.statusesThatKeepMethod.insert(301) }
        redirects.secretFields.formUnion(declaredSecrets)
        redirects.secretFields.formUnion(self.request.secretFields.compactMap { HTTPField.Name($0) })
        options.redirects = redirects
        // What is stored is no answer of the server's to this request.
        if request.method == .get || request.method == .head { options.cacheMode = .reload }
        do {
            let answer = try await session.send(request, body: body, options: options)
            return rule.verdict(on: answer, now: WallTime.now.seconds)
        } catch is CancellationError where Task.isCancelled {
            return nil
        } catch {
            return rule.verdict(on: error, now: WallTime.now.seconds)
        }
    }
}
