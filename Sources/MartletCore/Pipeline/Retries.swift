import FoundationEssentials

/// A stage that sends a request again after transient failures, as ``RetryRule`` decides.
struct RetryStage: CallStage {
    let progress: CallProgress

    func answer(_ call: Call, _ next: CallNext) async throws -> StreamedResponse {
        var call = call
        while true {
            do {
                let answer = try await next(call)
                do {
                    // A response from the cache is not retried, because the cache would return it again.
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
    /// Decides whether a request is sent again after a failure, also of the response's body, and waits for the delay.
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
        // The policy requires another attempt, but the total timeout expires before. So the response is not returned.
        var error = call.timedOut(.processingResponse, "", sentCount: sentCount)
        error.message =
            "the total timeout expires before the next attempt, in \(HTTPError.text(delay)); the last response was \(head.status)"
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
        guard policy.budget != nil else { return delay }
        // An attempt after the total timeout is not made, so it does not use the budget.
        let isInTime = delay < request.totalDeadline.since(MonotonicTime.now())
        return core.retryBudget.withdraw(isUsed: isInTime) ? delay : nil
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
            throw call.timedOut(.preparing, "while waiting for the next attempt", sentCount: sentCount)
        }
    }
}
