/// Whether a call that failed, or was answered with a passing refusal, is made again, and when.
struct RetryRule: Sendable {
    let policy: RetryPolicy
    /// Whether repeating the request does no harm, whatever became of it.
    let isIdempotent: Bool
    /// Whether its body can be sent again.
    let isReplayable: Bool

    /// What came of a try.
    enum Outcome: Sendable {
        case status(Int, retryAfter: RetryAfter?)
        case failure(HTTPError)
    }

    /// How long to wait for the next try; `nil` when there is none.
    /// - Parameters:
    ///   - attempt: How many tries there were.
    ///   - timeouts408: How many of those before this one were answered with 408.
    ///   - elapsed: Time since the call began.
    ///   - remaining: Time until its total clock runs out; `nil` for ever.
    ///   - random: Between 0 and 1.
    func delay(
        after outcome: Outcome, attempt: Int, timeouts408: Int, elapsed: Duration, remaining: Duration?,
        random: Double
    ) -> Duration? {
        guard attempt < policy.attempts, isReplayable else { return nil }
        var delay = backoff(attempt: attempt, random: random)
        switch outcome {
        case .status(let status, let retryAfter):
            guard policy.statuses.contains(status), isIdempotent || policy.includesUnsafeMethods else {
                return nil
            }
            if status == 408, timeouts408 > 0 { return nil }
            if let retryAfter, status == 429 || status == 503 || status == 413 {
                delay = min(retryAfter.delay, policy.longestRetryAfter.bounded)
            }
        case .failure(let error):
            guard isPassing(error), isIdempotent || !error.wasSent || policy.includesUnsafeMethods else {
                return nil
            }
        }
        if let limit = policy.timeLimit, elapsed + delay >= limit { return nil }
        if let remaining, delay >= remaining { return nil }
        return delay
    }

    private func backoff(attempt: Int, random: Double) -> Duration {
        switch policy.backoff {
        case .constant(let span): return span.bounded
        case .exponential(let first, let longest):
            let longest = longest.bounded
            var span = first.bounded
            // Doubled so often at most that no span of any use is left out, and none overflows.
            for _ in 1..<max(2, min(attempt, 40)) where attempt > 1 && span < longest { span = span * 2 }
            return min(span, longest) * min(max(random, 0), 1)
        }
    }

    private func isPassing(_ error: HTTPError) -> Bool {
        if error.isTransient { return true }
        switch error.code {
        case .timedOut, .invalidURL, .invalidRequest, .sessionInvalidated, .bodyNotReplayable: return false
        default: return policy.includesAllErrors
        }
    }
}
