import MartletCredentials
import MartletConnections
import MartletTransport
import MartletWire

/// Sends a request again after passing failures, as ``RetryRule`` decides.
struct RetryStage: CallStage {
    let progress: CallProgress

    func answer(_ call: Call, _ next: CallNext) async throws -> Answer {
        var call = call
        while true {
            do {
                let answer = try await next(call)
                do {
                    // The cache would say the same again.
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
    /// Whether a request is sent again that failed, or whose answer broke off; returns when it is time for it.
    func retries(after error: HTTPError, of request: Call) async throws -> Bool {
        guard request.retryPolicy.attempts > 1,
            let delay = try await delay(after: .failure(error), of: request)
        else { return false }
        note(.retry, request, error: error.code, delay: delay)
        beginTry(afterTimeoutStatus: false)
        try await wait(delay, request)
        return true
    }

    /// How long to wait before a request is sent again because of its answer's status; `nil` where it is not.
    fileprivate func delay(after answer: Answer, _ call: Call) async throws -> Duration? {
        let head = answer.head
        guard call.retryPolicy.statuses.contains(head.status) else { return nil }
        if observer?.delegate != nil { await readAhead(answer) }
        let retryAfter = head.fields.rawValues(of: "retry-after").first.flatMap {
            RetryAfter($0, now: WallClock.secondsSince1970)
        }
        return try await delay(
            after: .status(head.status, retryAfter: retryAfter), of: call,
            holding: answer.channel.heldExchange)
    }

    private func delay(
        after outcome: RetryRule.Outcome, of request: Call, holding exchange: Exchange? = nil
    ) async throws -> Duration? {
        let policy = request.retryPolicy
        let now = MonotonicTime.now()
        let deadline = request.totalDeadline
        let tries = tries
        let rule = RetryRule(
            policy: policy, isIdempotent: request.method.isIdempotent || request.rule.isDeclaredSafe,
            isReplayable: request.body.isWhole || observer?.delegate != nil)
        let delay = rule.delay(
            after: outcome, attempt: tries.count, timeouts408: tries.timeoutStatuses,
            elapsed: now.since(start), remaining: deadline == .distantFuture ? nil : deadline.since(now),
            random: Double.random(in: 0...1))
        guard let delay, try await isRepeatable(request, holding: exchange) else { return nil }
        guard policy.budget == nil || core.retryBudget.withdraw() else { return nil }
        return delay
    }

    /// Waits before the next request; a cancel ends it at once, and so does the total clock.
    fileprivate func wait(_ delay: Duration, _ call: Call) async throws {
        guard delay > .zero else { return }
        let now = MonotonicTime.now()
        let end = now.advanced(by: delay)
        let pause = OneShot<Void>()
        control.begin(.pausing(pause))
        _ = await pause.wait(until: min(end, call.totalDeadline), on: core.loop)
        if control.isCancelled { throw CancellationError() }
        guard end <= call.totalDeadline else {
            throw HTTPError(
                .timedOut, phase: .preparing,
                message: "the total clock ran out while waiting for another try",
                wasSent: sentCount > 0, origin: call.url.origin.description, clock: .total,
                elapsed: MonotonicTime.now().since(start), attempts: sentCount)
        }
    }
}
