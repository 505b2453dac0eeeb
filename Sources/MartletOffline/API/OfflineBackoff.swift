/// How long a lane of an ``OfflineQueue`` waits after a try that failed: a random part of a span that doubles from try to try
/// (full jitter), or what `Retry-After` says where that is longer.
public struct OfflineBackoff: Hashable, Sendable {
    /// The span after the first failure; a second by default.
    public var first: Duration
    /// The longest span; five minutes by default.
    public var longest: Duration
    /// The longest `Retry-After` that is obeyed, and what is waited for in place of a longer one; an hour by default.
    public var longestRetryAfter: Duration

    /// A backoff; see the properties for what is so by default.
    public init(
        first: Duration = .seconds(1), longest: Duration = .seconds(300),
        longestRetryAfter: Duration = .seconds(3600)
    ) {
        self.first = first
        self.longest = longest
        self.longestRetryAfter = longestRetryAfter
    }

    /// How long to wait.
    /// - Parameters:
    ///   - failures: How many tries failed in a row, 1 or more.
    ///   - random: Between 0 and 1.
    func delay(failures: Int, random: Double) -> Duration {
        let longest = max(.zero, longest)
        var span = min(max(.zero, first), longest)
        // Doubled so often at most that no span of any use is left out, and none overflows.
        for _ in 1..<max(2, min(failures, 40)) where failures > 1 && span < longest {
            span = min(span * 2, longest)
        }
        return span * min(max(random, 0), 1)
    }
}
