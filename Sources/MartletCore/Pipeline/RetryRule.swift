import MartletTransport
import MartletWire
import Synchronization

/// Whether a call that failed, or was answered with a passing refusal, is made again, and when.
struct RetryRule: Sendable {
    let policy: RetryPolicy
    /// Whether repeating the request does no harm, whatever became of it.
    let isIdempotent: Bool
    /// Whether its body can be sent again.
    let isReplayable: Bool

    /// What came of a try.
    package enum Outcome: Sendable {
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

/// Whether calls that failed for a passing reason are made again.
///
/// Made again are requests whose repetition does no harm: with an idempotent method, with an `Idempotency-Key`, or of which
/// nothing was sent; and only with a body that can be sent again. Passing reasons are a name that cannot be looked up just
/// now, a connection that cannot be opened or breaks, a proxy that breaks off or answers CONNECT with 502, 503 or 504, TLS that
/// is cut in its handshake or breaks behind it, a clock other than the total one, and the statuses of ``statuses``. Certificates that are refused, protocol errors and limits are none.
///
/// Between two tries passes a random part of a growing span (full jitter), or what `Retry-After` says. No try is begun that
/// the total clock would end before it starts, and cancelling ends the wait at once.
public struct RetryPolicy: Hashable, Sendable {
    /// How many times a request is made at most, the first time included; 1 is never again.
    public var attempts: Int
    /// How long to wait.
    public var backoff: Backoff
    /// How many repetitions a session may add to its calls, as a share of them; 0.2 by default, `nil` for any number.
    ///
    /// Ten are free at any time, so that a few calls have theirs. When a server is down for all, a session does not
    /// multiply the load on it.
    public var budget: Double?
    /// The statuses after which a request is made again: 408 (once), 429, 502, 503 and 504 by default.
    public var statuses: Set<Int> = [408, 429, 502, 503, 504]
    /// The longest `Retry-After` that is waited for in full, and what is waited for in place of a longer one; a minute by
    /// default.
    public var longestRetryAfter = Duration.seconds(60)
    /// Whether methods that are not idempotent are made again though their request was sent; `false` by default.
    public var includesUnsafeMethods = false
    /// Whether every error is a passing one, as curl's `--retry-all-errors`; `false` by default.
    public var includesAllErrors = false
    /// When no further try begins, from the call's start on; `nil` by default.
    public var timeLimit: Duration?

    /// How the wait between two tries grows.
    public enum Backoff: Hashable, Sendable {
        /// A random part of a span that doubles from try to try, up to a longest one.
        case exponential(from: Duration, upTo: Duration)
        /// Always the same.
        case constant(Duration)
    }

    /// Calls are made once.
    public static let never = RetryPolicy(attempts: 1, backoff: .constant(.zero), budget: nil)

    /// Calls are made again after passing failures.
    public static func transient(
        attempts: Int = 3, backoff: Backoff = .exponential(from: .milliseconds(200), upTo: .seconds(10)),
        budget: Double? = 0.2
    ) -> RetryPolicy { RetryPolicy(attempts: max(1, attempts), backoff: backoff, budget: budget) }

    private init(attempts: Int, backoff: Backoff, budget: Double?) {
        self.attempts = attempts
        self.backoff = backoff
        self.budget = budget
    }
}

/// How many repetitions a session has left: each call pays in a part of one, each repetition takes out one.
final class RetryBudget: Sendable {
    /// What is there at first, so that a session with few calls has some as well.
    static let initial = 10.0
    /// What is there at most: a long quiet time does not save up for a storm.
    static let most = 100.0

    private let left = Mutex(RetryBudget.initial)

    init() {}

    /// Notes a call.
    func deposit(_ share: Double) { left.withLock { $0 = min($0 + max(0, share), RetryBudget.most) } }

    /// Takes out one repetition; `false` when there is none.
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
    /// How long to wait; zero where the date is past.
    package let delay: Duration

    /// A value; `nil` when it is neither seconds nor a date.
    /// - Parameter now: Seconds since 1970.
    package init?(_ value: some Collection<UInt8>, now: Int64) {
        guard !value.isEmpty else { return nil }
        if value.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) {
            // More digits than make sense stand for a very long time, which policies cap.
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
    /// Whether the network, a proxy or a busy server failed, and not what was said over it: the same request may fare better.
    ///
    /// Where ``wasSent`` is `false` besides, nothing of the request reached the server, and even one that is not idempotent
    /// may be sent again. Certificates that are refused, protocol errors, limits and the total clock do not pass.
    package var isTransient: Bool {
        switch code {
        case .resolutionFailed, .connectFailed, .connectionLost, .emptyResponse, .truncated: true
        case .proxyFailed: (underlying as? ProxyError)?.isTransient ?? false
        case .tlsFailed: isCutHandshake || isBrokenTLS
        case .timedOut: clock != .total
        default: false
        }
    }

    /// Whether the connection stood by then.
    var isBehindHandshake: Bool { phase == .sending || phase == .awaitingHead || phase == .receivingBody }

    /// Whether the peer, which may be a proxy, ended the connection amid the TLS handshake, without a word: as a reset there,
    /// that says nothing of who it is. A server that is restarted does so, and one that has too much to do.
    package var isCutHandshake: Bool {
        code == .tlsFailed && phase == .securing && (underlying as? TLSError)?.kind == .truncated
    }

    /// Whether TLS broke behind the handshake, by an alert or a record that was changed. That a certificate of this side is
    /// refused is told there too, by TLS 1.3, and will not pass.
    private var isBrokenTLS: Bool {
        guard isBehindHandshake else { return false }
        switch (underlying as? TLSError)?.kind {
        case .clientCertificateRequired?, .clientCertificateRefused?: return false
        default: return true
        }
    }
}

extension ProxyError {
    /// Whether the proxy broke off, has no server or no capacity at the moment, or could not reach the server.
    ///
    /// RFC 9110 §15.6.3–15.6.5 for HTTP; for SOCKS the codes that a direct connection would fail with (RFC 1928 §6): general
    /// failure, network or host unreachable, connection refused, TTL expired.
    var isTransient: Bool {
        switch kind {
        case .connectionLost: true
        case .refused(let status): (502...504).contains(status)
        case .socksRefused(let code): [1, 3, 4, 5, 6].contains(code)
        case .socksCredentialsRefused, .protocolViolation, .unsendable: false
        }
    }
}
