/// How often and when a download tries again after a failure that may pass.
///
/// Counted are failures since the last byte that was new: a download that gets ahead may fail any number of times. Passing
/// failures are those of ``MartletClient/RetryPolicy``, a stall, and the statuses 408, 425, 429, 500, 502, 503 and 504. Before each
/// try passes a random part of a span that doubles (full jitter), or what `Retry-After` says.
public struct DownloadRetry: Hashable, Sendable, Codable {
    /// How many failures in a row are borne; 5 by default, 0 for none.
    public var attempts: Int
    /// The span before the first repetition; 500 ms by default.
    public var firstDelay: Duration
    /// The longest span; 30 s by default.
    public var longestDelay: Duration
    /// The longest `Retry-After` that is waited for in full, and what is waited for in place of a longer one; 2 minutes
    /// by default.
    public var longestRetryAfter: Duration

    /// The settings; see the properties for what they are by default.
    public init(
        attempts: Int = 5, firstDelay: Duration = .milliseconds(500), longestDelay: Duration = .seconds(30),
        longestRetryAfter: Duration = .seconds(120)
    ) {
        self.attempts = attempts
        self.firstDelay = firstDelay
        self.longestDelay = longestDelay
        self.longestRetryAfter = longestRetryAfter
    }
}
