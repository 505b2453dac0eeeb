import FoundationEssentials
import Synchronization

/// A stage that sends a request again after transient failures, as ``RetryRule`` decides.
struct RetryStage: CallStage {
    let progress: CallProgress

    func answer(_ call: Call, _ next: CallNext) async throws -> StreamedResponse {
        var call = call
        while true {
            do {
                let answer = try await next(call)
                do {
                    // The cache would return the same response again.
                    guard answer.source == .network || answer.source == .middleware,
                        let delay = try await progress.delay(after: answer, call)
                    else { return answer }
                    await progress.give(up: answer, reason: .retry, delay: delay)
                    progress.beginTry(afterTimeoutStatus: answer.head.status == 408)
                    try await progress.wait(delay, call)
                } catch {
                    answer.finish()
                    throw error
                }
            } catch let error as HTTPError where progress.isOwn(error) {
                guard try await progress.retries(after: error, of: call) else { throw error }
            }
            call = progress.renewed(call)
        }
    }
}

extension CallProgress {
    /// Decides whether a request that failed, or whose response was truncated, is sent again. Returns after the delay.
    func retries(after error: HTTPError, of request: Call) async throws -> Bool {
        guard request.retryPolicy.maximumAttempts > 1, let delay = try await delay(after: .failure(error), of: request),
            delay < request.totalDeadline.since(MonotonicTime.now())
        else { return false }
        note(.retry, request, error: error, delay: delay)
        beginTry(afterTimeoutStatus: false)
        try await wait(delay, request)
        return true
    }

    /// Returns the delay before a request is retried because of the status of its response; `nil` if it is not retried.
    fileprivate func delay(after answer: StreamedResponse, _ call: Call) async throws -> Duration? {
        let head = answer.head
        guard call.retryPolicy.statuses.contains(head.status) else { return nil }
        if observer?.delegate != nil { await readAhead(answer) }
        let retryAfter = head.fields.rawValues(of: "retry-after").first.flatMap {
            RetryAfter($0, now: Int64(Date().timeIntervalSince1970))
        }
        let delay = try await delay(
            after: .status(head.status, retryAfter: retryAfter), of: call, holding: answer.channel.heldExchange)
        guard let delay, delay >= call.totalDeadline.since(MonotonicTime.now()) else { return delay }
        // The response is not returned: the caller requested another attempt, and an end of the call before that.
        var error = call.totalTimeout(
            .processingResponse,
            "before the next attempt, in \(HTTPError.text(delay)), could begin; the last response was \(head.status)",
            sentCount: sentCount)
        error.exchange = answer.exchange(with: [])
        throw error
    }

    private func delay(after outcome: RetryRule.Outcome, of request: Call, holding exchange: Exchange? = nil)
        async throws -> Duration?
    {
        let policy = request.retryPolicy
        let tries = tries
        let rule = RetryRule(
            policy: policy, isIdempotent: request.isIdempotent,
            isReplayable: request.body.isWhole || observer?.delegate != nil)
        let delay = rule.delay(
            after: outcome, attempt: tries.count, timeouts408: tries.timeoutStatuses,
            elapsed: MonotonicTime.now().since(start), random: Double.random(in: 0...1))
        guard let delay, try await isRepeatable(request, holding: exchange) else { return nil }
        // No attempt follows within the total timeout: the caller ends the call, and the budget is not used.
        if delay >= request.totalDeadline.since(MonotonicTime.now()) { return delay }
        guard policy.budget == nil || core.retryBudget.withdraw() else { return nil }
        return delay
    }

    /// Waits before the next request. A cancellation or the total timeout ends the wait immediately.
    fileprivate func wait(_ delay: Duration, _ call: Call) async throws {
        guard delay > .zero else { return }
        let end = MonotonicTime.now().advanced(by: delay)
        let pause = OneShot<Void>()
        control.enter(.waiting)
        control.begin(.pausing(pause))
        _ = await pause.wait(until: min(end, call.totalDeadline), on: core.loop)
        if control.isCancelled { throw CancellationError() }
        guard end <= call.totalDeadline else {
            throw call.totalTimeout(.preparing, "while waiting for the next attempt", sentCount: sentCount)
        }
    }
}

/// The number of retries that a session may still make. Each call adds a fraction of one, and each retry takes one.
final class RetryBudget: Sendable {
    /// The initial amount, so that a session with few calls has some retries as well.
    static let initial = 10.0
    /// The maximum amount: a long quiet period does not save up for many retries at once.
    static let most = 100.0

    private let left = Mutex(RetryBudget.initial)

    /// Adds the share of one call.
    func deposit(_ share: Double) { left.withLock { $0 = min($0 + max(0, share), RetryBudget.most) } }

    /// Withdraws one retry. Returns `false` if none is left.
    func withdraw() -> Bool {
        left.withLock { left in
            guard left >= 1 else { return false }
            left -= 1
            return true
        }
    }
}

extension HTTPError {
    /// Whether the network, a proxy or a busy server failed, so that the same request may succeed later.
    ///
    /// If ``wasSent`` is `false` as well, nothing of the request reached the server, and even a request that is not
    /// idempotent may be sent again. Rejected certificates, protocol errors, limits and the total timeout are not
    /// transient.
    package var isTransient: Bool {
        switch code {
        case .resolutionFailed, .connectFailed, .connectionLost, .emptyResponse, .truncated: true
        case .proxyFailed: (underlying as? ProxyError)?.isTransient ?? false
        case .tlsFailed: isCutHandshake || isBrokenTLS
        case .timedOut: timeout != .total && timeout != .unread
        // The token could not be fetched.
        case .authenticationFailed: (underlying as? HTTPError)?.isTransient ?? false
        default: false
        }
    }

    /// Whether the connection was established when the error occurred.
    var isAfterHandshake: Bool { phase == .sending || phase == .awaitingHead || phase == .receivingBody }

    /// Whether the peer, which may be a proxy, ended the connection during the TLS handshake without an alert. Like a
    /// reset in the handshake, this has no relation to its identity: a server that restarts or is overloaded does so.
    package var isCutHandshake: Bool {
        code == .tlsFailed && phase == .tlsHandshake && (underlying as? TLSError)?.kind == .truncated
    }

    /// Whether TLS failed after the handshake, by an alert or a modified record. In TLS 1.3 a rejected client
    /// certificate is also reported there; that is not transient.
    private var isBrokenTLS: Bool {
        guard isAfterHandshake else { return false }
        switch (underlying as? TLSError)?.kind {
        case .clientCertificateRequired?, .clientCertificateRefused?: return false
        default: return true
        }
    }
}

extension RetryRule.Outcome {
    /// Returns the outcome of a request that failed.
    static func failure(_ error: HTTPError) -> Self {
        let isFinal =
            switch error.code {
            case .timedOut, .invalidURL, .invalidRequest, .invalidHeader, .sessionInvalidated, .bodyNotReplayable,
                .cancelledByDelegate:
                true
            default: false
            }
        return .failure(isTransient: error.isTransient, isFinal: isFinal, wasSent: error.wasSent)
    }
}
