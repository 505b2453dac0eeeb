package import HTTPTypes
import MartletTransport
import MartletWire

/// The policy for retries after transient failures.
///
/// A request is retried if repeating it is harmless: if it has an idempotent method or an `Idempotency-Key`, or if
/// nothing was sent. The body must be replayable.
///
/// Transient failures are:
/// - a name that currently does not resolve
/// - a connection that cannot be opened or is lost
/// - a proxy that closes the connection or responds to CONNECT with 502, 503 or 504
/// - a TLS connection that is closed during the handshake or fails after it
/// - a timeout other than the total timeout
/// - a response with one of the ``statuses``
///
/// Rejected certificates, protocol errors and limits are not transient.
///
/// The delay between two attempts is a random part of a growing span (full jitter), or, after a 413, 429 or 503, the
/// value of `Retry-After`. Cancelling the call ends the wait immediately.
///
/// ``Timeouts/total`` covers all attempts and the delays between them. If the next attempt could only start after that
/// timeout, the call ends immediately: after a failure with its error; after a status with `.timedOut`, whose message
/// and ``HTTPError/exchange`` have the status. If the total timeout expires in the last attempt, the error also names
/// the preceding status. At ``maximumAttempts`` or ``timeLimit``, the call ends with its last response or error.
public struct RetryPolicy: Hashable, Sendable {
    /// The maximum number of attempts, including the first; 1 for no retries.
    public var maximumAttempts: Int
    /// The growth of the delay between attempts.
    public var backoff: Backoff
    /// The maximum number of retries in a session, as a fraction of its calls; 0.2 by default; `nil` for no limit.
    ///
    /// A session starts with ten retries, so that its first calls can be retried, and never has more than 100. If a
    /// server is down, the budget prevents the session from multiplying the load on it.
    public var budget: Double?
    /// The statuses after which a request is retried: 408 (once), 429, 502, 503 and 504 by default.
    public var statuses: Set<Int>
    /// The maximum delay for `Retry-After`; a longer value is reduced to it. One minute by default.
    public var maximumRetryAfter = Duration.seconds(60)
    /// Whether methods that are not idempotent are retried even if the request was sent; `false` by default.
    public var retriesNonIdempotentMethods = false
    /// Whether calls are retried after other errors too, as with curl's `--retry-all-errors`; `false` by default.
    public var includesAllErrors = false
    /// The time since the call's start after which no attempt starts; `nil` (the default) for no limit.
    public var timeLimit: Duration?

    /// The growth of the delay between attempts.
    public enum Backoff: Hashable, Sendable {
        /// A random part of a span that doubles from attempt to attempt, up to a maximum.
        case exponential(from: Duration, upTo: Duration)
        /// The same delay before each retry.
        case constant(Duration)
    }

    /// A policy without retries.
    public static let never = transient(maximumAttempts: 1, backoff: .constant(.zero), budget: nil)

    /// Another name that is often guessed. It does not exist, because `.none` of an optional policy is `nil`.
    @available(*, unavailable, renamed: "never") public static var none: RetryPolicy { never }

    /// Returns a policy that retries calls after transient failures and after the given statuses.
    public static func transient(
        maximumAttempts: Int = 3, backoff: Backoff = .exponential(from: .milliseconds(200), upTo: .seconds(10)),
        budget: Double? = 0.2, statuses: Set<Int> = [408, 429, 502, 503, 504]
    ) -> RetryPolicy {
        RetryPolicy(maximumAttempts: max(1, maximumAttempts), backoff: backoff, budget: budget, statuses: statuses)
    }
}

/// The rule that decides whether and when a call is retried after an error or a status.
package struct RetryRule: Sendable {
    let policy: RetryPolicy
    /// Whether it is harmless to repeat the request.
    let isIdempotent: Bool
    let isReplayable: Bool

    package init(policy: RetryPolicy, isIdempotent: Bool, isReplayable: Bool) {
        (self.policy, self.isIdempotent, self.isReplayable) = (policy, isIdempotent, isReplayable)
    }

    package enum Outcome: Sendable {
        case status(Int, retryAfter: RetryAfter?)
        /// A failure. If `isFinal`, it is never retried, not even with ``RetryPolicy/includesAllErrors``.
        case failure(isTransient: Bool, isFinal: Bool, wasSent: Bool)
    }

    /// Returns the delay before the next attempt; `nil` for no retry.
    /// - Parameters:
    ///   - attempt: The number of attempts so far.
    ///   - timeouts408: The number of earlier attempts whose response was a 408.
    ///   - elapsed: The time since the call started.
    ///   - random: A random number between 0 and 1.
    package func delay(after outcome: Outcome, attempt: Int, timeouts408: Int, elapsed: Duration, random: Double)
        -> Duration?
    {
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
        case .failure(let isTransient, let isFinal, let wasSent):
            guard isTransient || (policy.includesAllErrors && !isFinal),
                isIdempotent || !wasSent || policy.retriesNonIdempotentMethods
            else { return nil }
        }
        if let limit = policy.timeLimit, elapsed + delay >= limit { return nil }
        return delay
    }

    private func backoff(attempt: Int, random: Double) -> Duration {
        switch policy.backoff {
        case .constant(let span): return span.bounded
        case .exponential(let first, let longest):
            return RetryRule.fullJitter(first.bounded, upTo: longest.bounded, retry: attempt, random: random)
        }
    }

    /// Returns a random part of a span that doubles with each retry (full jitter).
    /// - Parameters:
    ///   - initial: The span before the first retry; a negative one counts as zero.
    ///   - maximum: The maximum span.
    ///   - retry: The number of the retry, from 1.
    ///   - random: A random number between 0 and 1.
    package static func fullJitter(_ initial: Duration, upTo maximum: Duration, retry: Int, random: Double) -> Duration
    {
        let maximum = max(.zero, maximum)
        var span = max(.zero, initial)
        // At most 39 doublings: enough for every useful span, and too few to overflow.
        for _ in 1..<min(max(1, retry), 40) where span < maximum { span = span * 2 }
        return min(span, maximum) * min(max(random, 0), 1)
    }
}

/// The value of `Retry-After`: seconds, or a date (RFC 9110 §10.2.3).
package struct RetryAfter: Equatable, Sendable {
    /// The delay; zero if the date has passed.
    package let delay: Duration

    /// Parses a value; `nil` if it is neither seconds nor a date.
    /// - Parameter now: The current time, in seconds since 1970.
    package init?(_ value: some Collection<UInt8>, now: Int64) {
        guard !value.isEmpty else { return nil }
        if value.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) {
            // The value of more than 12 digits could overflow.
            let digits = value.drop { $0 == UInt8(ascii: "0") }
            let seconds = digits.count > 12 ? 1_000_000_000_000 : digits.reduce(0) { $0 * 10 + Int64($1 - 48) }
            delay = .seconds(min(seconds, 1_000_000_000))
            return
        }
        let present = HTTPDate(secondsSinceEpoch: now)
        guard let date = HTTPDate(String(decoding: value, as: UTF8.self), now: present) else { return nil }
        delay = .seconds(
            max(0, min(date.secondsSinceEpoch.subtractingReportingOverflow(now).partialValue, 1_000_000_000)))
    }
}

extension HTTPRequest.Method {
    /// Whether repeating the method has the same effect as sending it once (RFC 9110 §9.2.2).
    package var isIdempotent: Bool {
        switch self {
        case .get, .head, .options, .trace, .put, .delete: true
        default: false
        }
    }
}
