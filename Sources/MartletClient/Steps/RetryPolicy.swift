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
        attempts: Int = 3,
        backoff: Backoff = .exponential(from: .milliseconds(200), upTo: .seconds(10)), budget: Double? = 0.2
    ) -> RetryPolicy {
        RetryPolicy(attempts: max(1, attempts), backoff: backoff, budget: budget)
    }

    private init(attempts: Int, backoff: Backoff, budget: Double?) {
        self.attempts = attempts
        self.backoff = backoff
        self.budget = budget
    }
}
