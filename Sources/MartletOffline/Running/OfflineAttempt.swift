import MartletCache
import MartletCaching
import MartletCore
import MartletDigests
import MartletFeatureSettings

/// One attempt to send a request: it adds credentials, sends, and refreshes the credentials if the server rejects them.
struct OfflineAttempt: Sendable {
    let session: HTTPSession
    let request: QueuedRequest
    let body: HTTPBody
    /// The fields that are not stored, while the process that submitted the request runs.
    let secretFields: HTTPFields?
    /// The fields of the host that are not stored, while that process runs.
    let hostFields: HTTPFields?
    let credentials: CredentialRefresher?
    let options: RequestOptions
    let rule: ReplayRule
    /// The secret fields of the queue's options.
    let declaredSecrets: Set<HTTPField.Name>
    /// The maximum time for the body of the final response.
    let bodyTime: Duration
    /// Becomes true when the queue is closing, and bodies are no longer awaited.
    let isStopping: CurrentValue<Bool>

    /// Sends the request.
    /// - Returns: The decision; `nil` if the attempt was cancelled.
    func run() async -> ReplayDecision? {
        do {
            let (request, added, generation) = try await authorized()
            let first = await send(request, added)
            guard case .unauthorized(let exchange) = first else { return first }
            guard let credentials else { return unauthorized(exchange) }
            try await credentials.renew(after: generation)
            let (other, otherAdded, _) = try await authorized()
            let second = await send(other, otherAdded)
            if case .unauthorized(let exchange) = second { return unauthorized(exchange) }
            return second
        } catch {
            if error is CancellationError, Task.isCancelled { return nil }
            return .later(.credentialsFailed, atLeast: nil, message: "\(error)")
        }
    }

    private func unauthorized(_ exchange: HTTPExchange) -> ReplayDecision {
        .later(
            .unauthorized, atLeast: nil,
            message: "the server requires other credentials (status \(exchange.statusCode))")
    }

    /// Returns the request, the names of the fields that the closure added, and the generation of its credentials.
    private func authorized() async throws -> (HTTPRequest, Set<HTTPField.Name>, UInt64) {
        var bare = HTTPRequest(
            method: HTTPRequest.Method(rawValue: request.method) ?? .post, url: request.url, headers: request.fields)
        if let hostFields { bare.headerFields.append(contentsOf: hostFields) }
        var made = (request: bare, generation: UInt64(0))
        var added: Set<HTTPField.Name> = []
        if let credentials {
            made = try await credentials.authorize(bare)
            // The request needs its type and its key at other origins, too.
            added = made.request.headerFields.secretNames(addedTo: bare.headerFields)
                .subtracting([.contentType, .idempotencyKey])
        } else if let secretFields {
            made.request.headerFields.append(contentsOf: secretFields)
        }
        // The key is the same in each attempt, even if the closure changed it.
        made.request.headerFields[.idempotencyKey] = request.idempotencyKey
        return (made.request, added, made.generation)
    }

    private func send(_ request: HTTPRequest, _ added: Set<HTTPField.Name>) async -> ReplayDecision? {
        var options = options
        options.retry = .never
        options.validator = .anything
        // The head decides. A rejected body would hide it, and the request would be sent again.
        options.digestVerification = .off
        options.idempotencyKey = nil
        // Fields that are not stored, and those of the closure, are not sent to other origins.
        var redirects = options.redirects ?? session.configuration.redirects
        // After a 301 the method is preserved: a GET would deliver nothing.
        if options.redirects == nil { redirects.methodPreservingStatuses.insert(301) }
        redirects.secretFields.formUnion(declaredSecrets.union(added))
        redirects.secretFields.formUnion(self.request.secretFields.compactMap { HTTPField.Name($0) })
        options.redirects = redirects
        // A cached response is not the server's response to this request.
        if request.method == .get || request.method == .head { options.cacheMode = .reload }
        do {
            return rule.decision(on: try await exchange(request, options), now: WallTime.now.seconds)
        } catch is CancellationError where Task.isCancelled { return nil } catch {
            return rule.decision(on: error, now: WallTime.now.seconds)
        }
    }

    /// Sends the request, and collects what arrives of the body in time. The head decides, not a failure of the body.
    private func exchange(_ request: HTTPRequest, _ options: RequestOptions) async throws -> HTTPExchange {
        let limit = (options.bodyLimit ?? session.configuration.bufferedBodyLimit).bytes
        let hasHead = CurrentValue(false)
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
            // The first task to end cancels the others. A cancelled reader returns the bytes received so far.
            while let ended = try await group.next() {
                group.cancelAll()
                exchange = exchange ?? ended
            }
            guard let exchange else { throw CancellationError() }
            return exchange
        }
    }

    private static func collect(_ body: ResponseBody, upTo limit: Int) async -> (bytes: [UInt8], isWhole: Bool) {
        var bytes: [UInt8] = []
        do {
            for try await piece in body {
                guard piece.count <= limit - bytes.count else {
                    return (bytes + piece.prefix(max(0, limit - bytes.count)), false)
                }
                bytes += piece
            }
            return (bytes, true)
        } catch { return (bytes, false) }
    }

    /// The maximum supported sleep, which the setting may exceed.
    private static let longestBodyTime = Duration.seconds(365 * 24 * 3600)
}

/// Adds credentials to requests, and refreshes them once for all requests that were rejected with the old ones.
actor CredentialRefresher {
    private let credentials: OfflineCredentials
    /// The number of refreshes.
    private var generation: UInt64 = 0
    private var renewal: Task<Void, any Error>?
    /// The running closures that add credentials.
    private var authorizations: [UInt64: Task<HTTPRequest, any Error>] = [:]
    private var lastAuthorization: UInt64 = 0
    private var isCancelled = false

    init(_ credentials: OfflineCredentials) { self.credentials = credentials }

    /// Adds the credentials to a request.
    /// - Returns: The request, and the generation of its credentials.
    func authorize(_ request: HTTPRequest) async throws -> (request: HTTPRequest, generation: UInt64) {
        // A refresh in progress is awaited.
        if let renewal { try await waitUnlessCancelled { try await renewal.value } }
        guard !isCancelled else { throw CancellationError() }
        let (credentials, generation) = (credentials, generation)
        lastAuthorization += 1
        let number = lastAuthorization
        // Unstructured, so that the end of the queue can end the wait as well. Nothing has been sent yet.
        let authorization = Task { try await waitUnlessCancelled { try await credentials.authorize(request) } }
        authorizations[number] = authorization
        defer { authorizations[number] = nil }
        let made = try await withTaskCancellationHandler {
            try await authorization.value
        } onCancel: {
            authorization.cancel()
        }
        return (made, generation)
    }

    /// Refreshes the credentials that a server rejected, unless they were refreshed since.
    func renew(after rejected: UInt64) async throws {
        if let renewal { return try await waitUnlessCancelled { try await renewal.value } }
        guard rejected == generation else { return }
        guard let refresh = credentials.refresh else {
            generation += 1
            return
        }
        // Unstructured, because cancelling the first request must not cancel the others.
        let renewal = Task {
            defer { self.renewal = nil }
            try await waitUnlessCancelled { try await refresh() }
            generation += 1
        }
        self.renewal = renewal
        try await waitUnlessCancelled { try await renewal.value }
    }

    /// Ends all waits for the closures, now and later.
    func cancel() {
        isCancelled = true
        renewal?.cancel()
        for authorization in authorizations.values { authorization.cancel() }
    }
}
