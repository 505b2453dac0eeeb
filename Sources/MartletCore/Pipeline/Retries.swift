import FoundationEssentials
import Synchronization

/// Sends a request again after transient failures, as ``RetryRule`` decides.
struct RetryStage: CallStage {
    let progress: CallProgress

    func answer(_ call: Call, _ next: CallNext) async throws -> StreamedResponse {
        var call = call
        while true {
            do {
                let answer = try await next(call)
                do {
                    // The cache would have the same response again.
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
    /// Whether a request that failed, or whose response broke off, is sent again. Returns after the delay.
    func retries(after error: HTTPError, of request: Call) async throws -> Bool {
        guard request.retryPolicy.maximumAttempts > 1,
            let delay = try await delay(after: .failure(error), of: request)
        else { return false }
        note(.retry, request, error: error, delay: delay)
        beginTry(afterTimeoutStatus: false)
        try await wait(delay, request)
        return true
    }

    /// The delay before a request is sent again because of the status of its response; `nil` if it is not.
    fileprivate func delay(after answer: StreamedResponse, _ call: Call) async throws -> Duration? {
        let head = answer.head
        guard call.retryPolicy.statuses.contains(head.status) else { return nil }
        if observer?.delegate != nil { await readAhead(answer) }
        let retryAfter = head.fields.rawValues(of: "retry-after").first.flatMap {
            RetryAfter($0, now: Int64(Date().timeIntervalSince1970))
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
            policy: policy, isIdempotent: request.isIdempotent,
            isReplayable: request.body.isWhole || observer?.delegate != nil)
        let delay = rule.delay(
            after: outcome, attempt: tries.count, timeouts408: tries.timeoutStatuses,
            elapsed: now.since(start), remaining: deadline == .distantFuture ? nil : deadline.since(now),
            random: Double.random(in: 0...1))
        guard let delay, try await isRepeatable(request, holding: exchange) else { return nil }
        guard policy.budget == nil || core.retryBudget.withdraw() else { return nil }
        return delay
    }

    /// Waits before the next request. A cancel or the total timeout ends the wait immediately.
    fileprivate func wait(_ delay: Duration, _ call: Call) async throws {
        guard delay > .zero else { return }
        let end = MonotonicTime.now().advanced(by: delay)
        let pause = OneShot<Void>()
        control.enter(.waiting)
        control.begin(.pausing(pause))
        _ = await pause.wait(until: min(end, call.totalDeadline), on: core.loop)
        if control.isCancelled { throw CancellationError() }
        guard end <= call.totalDeadline else {
            throw call.totalTimeout(.preparing, "while waiting for another try", sentCount: sentCount)
        }
    }
}

/// Decides whether a call that failed, or had a temporary error as its response, is retried, and when.
struct RetryRule: Sendable {
    let policy: RetryPolicy
    /// Whether repeating the request does no harm.
    let isIdempotent: Bool
    let isReplayable: Bool

    enum Outcome: Sendable {
        case status(Int, retryAfter: RetryAfter?)
        case failure(HTTPError)
    }

    /// The delay before the next attempt; `nil` if there is none.
    /// - Parameters:
    ///   - attempt: The number of attempts so far.
    ///   - timeouts408: The number of attempts before this one whose response was a 408.
    ///   - elapsed: The time since the call began.
    ///   - remaining: The time until its total timeout; `nil` for no limit.
    ///   - random: Between 0 and 1.
    func delay(
        after outcome: Outcome, attempt: Int, timeouts408: Int, elapsed: Duration, remaining: Duration?,
        random: Double
    ) -> Duration? {
        guard attempt < policy.maximumAttempts, isReplayable else { return nil }
        var delay = backoff(attempt: attempt, random: random)
        switch outcome {
        case .status(let status, let retryAfter):
            guard policy.statuses.contains(status), isIdempotent || policy.retriesNonIdempotentMethods else {
                return nil
            }
            if status == 408, timeouts408 > 0 { return nil }
            if let retryAfter, status == 429 || status == 503 || status == 413 {
                delay = min(retryAfter.delay, policy.maximumRetryAfter.bounded)
            }
        case .failure(let error):
            guard isTransient(error), isIdempotent || !error.wasSent || policy.retriesNonIdempotentMethods
            else {
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
            // Doubled at most so often that every useful span is reached, and none overflows.
            for _ in 1..<max(2, min(attempt, 40)) where attempt > 1 && span < longest { span = span * 2 }
            return min(span, longest) * min(max(random, 0), 1)
        }
    }

    private func isTransient(_ error: HTTPError) -> Bool {
        if error.isTransient { return true }
        switch error.code {
        case .timedOut, .invalidURL, .invalidRequest, .invalidHeader, .sessionInvalidated, .bodyNotReplayable:
            return false
        default: return policy.includesAllErrors
        }
    }
}

/// Whether calls are retried after transient failures.
///
/// Requests are retried if repeating them does no harm: with an idempotent method, with an `Idempotency-Key`, or if
/// nothing was sent; and only with a body that can be sent again. Transient failures are a name that cannot be resolved now, a
/// connection that cannot be opened or breaks, a proxy that breaks off or answers CONNECT with 502, 503 or 504, TLS that
/// is cut in its handshake or breaks after it, a timeout other than the total one, and the statuses of ``statuses``. Rejected
/// certificates, protocol errors and limits are not.
///
/// The delay between two attempts is a random part of a growing span (full jitter), or the value of `Retry-After`. No attempt is
/// made that could only begin after the total timeout, and cancelling ends the wait immediately.
public struct RetryPolicy: Hashable, Sendable {
    /// The maximum number of attempts, including the first; 1 is no retry.
    public var maximumAttempts: Int
    /// The growth of the delay.
    public var backoff: Backoff
    /// The number of retries that a session may add to its calls, as a share of them; 0.2 by default, `nil` for no limit.
    ///
    /// Ten are free at any time, so that a few calls can be retried. When a server is down for all, a session does not
    /// multiply the load on it.
    public var budget: Double?
    /// The statuses after which a request is retried: 408 (once), 429, 502, 503 and 504 by default.
    public var statuses: Set<Int> = [408, 429, 502, 503, 504]
    /// The longest `Retry-After` that is waited for in full, and the wait in place of a longer one; one minute by default.
    public var maximumRetryAfter = Duration.seconds(60)
    /// Whether methods that are not idempotent are retried though their request was sent; `false` by default.
    public var retriesNonIdempotentMethods = false
    /// Whether every error is treated as transient, as curl's `--retry-all-errors`; `false` by default.
    public var includesAllErrors = false
    /// The time since the call's start after which no attempt begins; `nil` by default.
    public var timeLimit: Duration?

    /// The growth of the delay between attempts.
    public enum Backoff: Hashable, Sendable {
        /// A random part of a span that doubles from attempt to attempt, up to a longest one.
        case exponential(from: Duration, upTo: Duration)
        /// Always the same.
        case constant(Duration)
    }

    /// Calls are not retried.
    public static let never = RetryPolicy(maximumAttempts: 1, backoff: .constant(.zero), budget: nil)

    /// Calls are retried after transient failures.
    public static func transient(
        maximumAttempts: Int = 3,
        backoff: Backoff = .exponential(from: .milliseconds(200), upTo: .seconds(10)),
        budget: Double? = 0.2
    ) -> RetryPolicy {
        RetryPolicy(maximumAttempts: max(1, maximumAttempts), backoff: backoff, budget: budget)
    }
}

/// The number of retries that a session may still make: each call deposits a part of one, each retry withdraws one.
final class RetryBudget: Sendable {
    /// The first amount, so that a session with few calls has some retries as well.
    static let initial = 10.0
    /// The largest amount: a long quiet time does not save up for a storm.
    static let most = 100.0

    private let left = Mutex(RetryBudget.initial)

    /// Adds the share of one call.
    func deposit(_ share: Double) { left.withLock { $0 = min($0 + max(0, share), RetryBudget.most) } }

    /// Withdraws one retry; `false` if there is none.
    func withdraw() -> Bool {
        left.withLock { left in
            guard left >= 1 else { return false }
            left -= 1
            return true
        }
    }
}

/// The field `Retry-After`: seconds, or a date (RFC 9110 §10.2.3).
package struct RetryAfter: Equatable, Sendable {
    /// The delay; zero if the date is past.
    package let delay: Duration

    /// Parses a value; `nil` if it is neither seconds nor a date.
    /// - Parameter now: Seconds since 1970.
    package init?(_ value: some Collection<UInt8>, now: Int64) {
        guard !value.isEmpty else { return nil }
        if value.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) {
            // More digits than make sense stand for a very long time, which policies limit.
            let seconds = value.count > 12 ? 1_000_000_000_000 : value.reduce(0) { $0 * 10 + Int64($1 - 48) }
            delay = .seconds(min(seconds, 1_000_000_000))
            return
        }
        let present = HTTPDate(secondsSinceEpoch: now)
        guard let date = HTTPDate(String(decoding: value, as: UTF8.self), now: present) else { return nil }
        delay = .seconds(
            max(0, min(date.secondsSinceEpoch.subtractingReportingOverflow(now).partialValue, 1_000_000_000)))
    }
}

extension HTTPError {
    /// Whether the network, a proxy or a busy server failed, so that the same request may succeed later.
    ///
    /// If ``wasSent`` is `false` as well, nothing of the request reached the server, and even one that is not idempotent
    /// may be sent again. Rejected certificates, protocol errors, limits and the total timeout are not transient.
    package var isTransient: Bool {
        switch code {
        case .resolutionFailed, .connectFailed, .connectionLost, .emptyResponse, .truncated: true
        case .proxyFailed: (underlying as? ProxyError)?.isTransient ?? false
        case .tlsFailed: isCutHandshake || isBrokenTLS
        case .timedOut: timeout != .total
        default: false
        }
    }

    /// Whether the connection was established by then.
    var isAfterHandshake: Bool { phase == .sending || phase == .awaitingHead || phase == .receivingBody }

    /// Whether the peer, which may be a proxy, ended the connection during the TLS handshake without an alert. Like a reset
    /// there, that says nothing about its identity. A server that is restarted or overloaded does so.
    package var isCutHandshake: Bool {
        code == .tlsFailed && phase == .tlsHandshake && (underlying as? TLSError)?.kind == .truncated
    }

    /// Whether TLS broke after the handshake, by an alert or a record that was changed. In TLS 1.3 a rejected client certificate
    /// is reported there too, and is not transient.
    private var isBrokenTLS: Bool {
        guard isAfterHandshake else { return false }
        switch (underlying as? TLSError)?.kind {
        case .clientCertificateRequired?, .clientCertificateRefused?: return false
        default: return true
        }
    }
}
