/// Retries of a download or an upload after transient failures.
///
/// Failures are counted since the last new byte, in an upload since the last byte that the server acknowledged: a
/// transfer that makes progress may fail any number of times. The delay is a random part of a span that doubles with
/// each retry (full jitter), or the time in `Retry-After`.
public struct TransferRetry: Hashable, Sendable, Codable {
    /// The maximum number of consecutive retries without a new byte; 5 by default, 0 for none.
    public var maximumRetries: Int
    /// The span before the first retry; 500 ms by default.
    public var initialDelay: Duration
    /// The maximum span; 30 s by default.
    public var maximumDelay: Duration
    /// The maximum time to wait for a `Retry-After`, also used if the server asks for longer; 2 minutes by default.
    public var maximumRetryAfter: Duration

    /// Creates the settings; the properties document the defaults.
    public init(
        maximumRetries: Int = 5, initialDelay: Duration = .milliseconds(500), maximumDelay: Duration = .seconds(30),
        maximumRetryAfter: Duration = .seconds(120)
    ) {
        (self.maximumRetries, self.maximumRetryAfter) = (maximumRetries, maximumRetryAfter)
        (self.initialDelay, self.maximumDelay) = (initialDelay, maximumDelay)
    }

    private enum CodingKeys: String, CodingKey {
        // The former name, so that stored downloads can still be read.
        case maximumRetries = "maximumAttempts"
        case initialDelay, maximumDelay, maximumRetryAfter
    }
}
