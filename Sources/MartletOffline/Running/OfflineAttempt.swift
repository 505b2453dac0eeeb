import MartletContent
import MartletCache
import MartletCaching
import MartletCore
import MartletTransport
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
    /// The longest time that the body of the final response may take.
    let bodyTime: Duration
    /// Becomes true when the queue is closing, and bodies are no longer waited for.
    let isStopping: NewestValue<Bool>

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
            let answer = try await exchange(request, options)
            return rule.verdict(on: answer, now: WallTime.now.seconds)
        } catch is CancellationError where Task.isCancelled {
            return nil
        } catch {
            return rule.verdict(on: error, now: WallTime.now.seconds)
        }
    }

    /// Sends the request, and collects what comes of the response's body before its time is up or the queue stops.
    ///
    /// The head decides what becomes of the request, so that no failure of the body is one of the request.
    private func exchange(_ request: HTTPRequest, _ options: RequestOptions) async throws -> HTTPExchange {
        let limit = (options.bodyLimit ?? session.configuration.bufferedBodyLimit).bytes
        let hasHead = NewestValue(false)
        return try await withThrowingTaskGroup(of: HTTPExchange?.self) { [self] group in
            group.addTask {
                try await session.stream(request, body: body, options: options) { _, body in
                    hasHead.update { true }
                    let (bytes, isWhole) = await OfflineAttempt.collect(body, upTo: limit)
                    return body.exchange(with: bytes, isCollected: isWhole)
                }
            }
            group.addTask {
                if await hasHead.becomesTrue() {
                    try? await Task.sleep(for: min(bodyTime, OfflineAttempt.longestBodyTime))
                }
                return nil
            }
            group.addTask {
                if await hasHead.becomesTrue() { await isStopping.becomesTrue() }
                return nil
            }
            var exchange: HTTPExchange?
            // Whichever ends first ends the others. A cancelled reader returns what it has.
            while let ended = try await group.next() {
                group.cancelAll()
                exchange = exchange ?? ended
            }
            guard let exchange else { throw CancellationError() }
            return exchange
        }
    }

    private static func collect(
        _ body: ResponseBody, upTo limit: Int
    ) async -> (bytes: [UInt8], isWhole: Bool) {
        var bytes: [UInt8] = []
        do {
            for try await piece in body {
                guard piece.count <= limit - bytes.count else {
                    return (bytes + piece.prefix(max(0, limit - bytes.count)), false)
                }
                bytes += piece
            }
            return (bytes, true)
        } catch {
            return (bytes, false)
        }
    }

    /// A clock cannot be told every time that a setting can hold.
    private static let longestBodyTime = Duration.seconds(365 * 24 * 3600)
}

/// Adds credentials to requests, and gets new ones once, however many requests were refused with the old ones.
actor CredentialKeeper {
    private let credentials: OfflineCredentials
    /// How often new ones were got.
    private var generation: UInt64 = 0
    private var renewal: Task<Void, any Error>?
    /// The closures that add credentials just now.
    private var authorizations: [UInt64: Task<HTTPRequest, any Error>] = [:]
    private var lastAuthorization: UInt64 = 0
    private var isCancelled = false

    init(_ credentials: OfflineCredentials) { self.credentials = credentials }

    /// A request with its credentials, and which ones they are.
    func authorize(_ request: HTTPRequest) async throws -> (request: HTTPRequest, generation: UInt64) {
        // Those that are being got are worth the wait.
        if let renewal { try await CredentialKeeper.wait(for: renewal) }
        guard !isCancelled else { throw CancellationError() }
        let (credentials, generation) = (credentials, generation)
        lastAuthorization += 1
        let number = lastAuthorization
        // Unstructured, so that the end of the queue can end the wait as well. Nothing has been sent yet.
        let authorization = Task {
            try await waitUnlessCancelled { try await credentials.authorize(request) }
        }
        authorizations[number] = authorization
        defer { authorizations[number] = nil }
        let made = try await withTaskCancellationHandler {
            try await authorization.value
        } onCancel: {
            authorization.cancel()
        }
        return (made, generation)
    }

    /// Gets new credentials in place of those a server refused, unless that has happened since.
    func renew(after refused: UInt64) async throws {
        if let renewal { return try await CredentialKeeper.wait(for: renewal) }
        guard refused == generation else { return }
        guard let refresh = credentials.refresh else {
            generation += 1
            return
        }
        // Unstructured, since whoever is first does it for all: that its request is cancelled must not take it from them. It
        // notes its own end, so that nobody goes on before that is done.
        let renewal = Task {
            defer { self.renewal = nil }
            try await waitUnlessCancelled { try await refresh() }
            generation += 1
        }
        self.renewal = renewal
        try await CredentialKeeper.wait(for: renewal)
    }

    /// Ends all waits for the program's closures, for good.
    func cancel() {
        isCancelled = true
        renewal?.cancel()
        for authorization in authorizations.values { authorization.cancel() }
    }

    /// Waits for a renewal, and no longer than the task that waits.
    private static func wait(for renewal: Task<Void, any Error>) async throws {
        let end = OneShot<Result<Void, any Error>>()
        Task { end.fulfil(await renewal.result) }
        let outcome = await end.waitUnlessCancelled(until: .distantFuture, on: .sharedOrStalled)
        guard case .value(let result) = outcome else { throw CancellationError() }
        try result.get()
    }
}
