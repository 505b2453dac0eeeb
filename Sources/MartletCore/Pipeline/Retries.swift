/// A stage that sends a request again after transient failures, as ``RetryRule`` decides.
struct RetryStage: CallStage {
    let progress: CallProgress

    func answer(_ call: Call, _ next: CallNext) async throws -> StreamedResponse {
        var call = call
        while true {
            let answer: StreamedResponse
            do { answer = try await next(call) } catch let error as HTTPError where progress.isOwn(error) {
                try await progress.retry(after: error, of: call)
                call = progress.renewed(call)
                continue
            }
            do {
                // A response from the cache is not retried, because the cache would return it again.
                guard answer.isMadeForCall,
                    let delay = try await progress.delay(after: answer, call)
                else { return answer }
                await progress.give(up: answer, reason: .retry, delay: delay)
                progress.beginTry(afterTimeoutStatus: answer.head.status == 408)
                try await progress.wait(delay, call)
            } catch {
                answer.finish()
                throw error
            }
            call = progress.renewed(call)
        }
    }
}

extension CallProgress {
    /// Waits for the delay before a request is sent again after a failure, also of the response's body.
    /// - Throws: The failure if the request is not sent again. Its message ends with the limit that prevents a retry.
    func retry(after error: HTTPError, of request: Call) async throws {
        guard request.retryPolicy.maximumAttempts > 1 else { throw error }
        let decision = try await decision(after: .failure(error), of: request)
        if let delay = decision.delay, delay < request.totalDeadline.since(MonotonicTime.now()) {
            note(.retry, request, error: error, delay: delay)
            beginTry(afterTimeoutStatus: false)
            return try await wait(delay, request)
        }
        var error = error
        let limit =
            decision.limit
            ?? decision.delay.map { "the total timeout expires before the next attempt, in \(HTTPError.text($0))" }
        if let limit { error.message += "; not retried: \(limit)" }
        throw error
    }

    /// Returns the delay before a request is retried because of the status of its response; `nil` if it is not retried.
    fileprivate func delay(after answer: StreamedResponse, _ call: Call) async throws -> Duration? {
        let head = answer.head
        guard call.retryPolicy.statuses.contains(head.status) else { return nil }
        // Until another request begins, a stale response may replace this one (RFC 5861 §4), also after a timeout.
        if let provenance = answer.provenance { staleFallback { provenance.useFallback() } }
        if observer?.delegate != nil { await readAhead(answer) }
        let delay = try await decision(
            after: .status(head.status, retryAfter: head.retryAfter), of: call, holding: answer.channel.heldExchange
        ).delay
        guard let delay, delay >= call.totalDeadline.since(MonotonicTime.now()) else { return delay }
        // The policy requires another attempt, but the total timeout expires before. So the response is not returned.
        var error = call.timedOut(.processingResponse, "", sentCount: sentCount)
        error.message =
            "the total timeout expires before the next attempt, in \(HTTPError.text(delay)); the last response was \(head.status)"
        error.exchange = answer.exchange(with: [])
        throw own(error)
    }

    /// Returns the delay before a request is retried; without one, the limit that prevents a retry, if a limit does.
    private func decision(after outcome: RetryRule.Outcome, of request: Call, holding exchange: Exchange? = nil)
        async throws -> (delay: Duration?, limit: String?)
    {
        let (policy, tries) = (request.retryPolicy, tries)
        let rule = RetryRule(
            policy: policy, isIdempotent: request.isIdempotent && !request.options.acceptsUpgrade,
            isReplayable: request.body.isWhole || observer?.delegate != nil)
        // Whether a retry would help does not depend on the number of attempts, which is checked afterwards.
        let delay = rule.delay(
            after: outcome, attempt: min(tries.count, policy.maximumAttempts - 1), timeouts408: tries.timeoutStatuses,
            elapsed: MonotonicTime.now().since(start), random: Double.random(in: 0...1))
        guard let delay else { return (nil, nil) }
        guard tries.count < policy.maximumAttempts else {
            return (nil, "the limit of \(tries.count) attempts is reached")
        }
        func withdraw(isUsed: Bool) -> Bool { policy.budget == nil || core.retryBudget.withdraw(isUsed: isUsed) }
        let overBudget: (delay: Duration?, limit: String?) = (nil, "the retry budget is used up")
        guard withdraw(isUsed: false) else { return overBudget }
        // An attempt after the total timeout is not made, so the delegate is not asked for its body.
        guard delay < request.totalDeadline.since(MonotonicTime.now()) else {
            return (request.body.rewind() ? delay : nil, nil)
        }
        guard try await isRepeatable(request, holding: exchange) else { return (nil, nil) }
        return withdraw(isUsed: true) ? (delay, nil) : overBudget
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
            throw own(call.timedOut(.preparing, "while waiting for the next attempt", sentCount: sentCount))
        }
    }
}
