/// Whether a transfer that failed is tried again, and after how long: curl's rules for `--retry` and its kin.
struct RetryPlan: Hashable, Sendable {
    /// What came of a try.
    enum Outcome: Hashable, Sendable {
        /// An answer; whether its status is an error that was asked for, and the wait that it asks for, in `Retry-After`.
        case status(Int, isError: Bool = false, retryAfter: Duration?)
        /// A failure.
        case failure(ExitStatus, isRefusedConnection: Bool)
    }

    /// How many times at most it is tried again.
    var count = 0
    /// How long to wait; `nil` for a second, then two, four and so on.
    var delay: Duration?
    /// From the first try on, how long others may begin; `nil` for ever.
    var timeLimit: Duration?
    var includesRefusedConnections = false
    var includesAllErrors = false

    /// The longest wait of those that double.
    private static let longestDelay = Duration.seconds(600)
    private static let passingStatuses: Set = [408, 429, 500, 502, 503, 504]
    private static let passingFailures: Set<ExitStatus> = [.timedOut, .unresolvedHost, .unresolvedProxy]
    /// Mistakes of this side: no try mends them.
    private static let ownFailures: Set<ExitStatus> = [
        .usage, .malformedURL, .unsupportedScheme, .writeFailed, .readFailed, .interrupted,
        .notInCache,
    ]

    /// How long to wait for the next try; `nil` when there is none.
    /// - Parameters:
    ///   - tries: How many there were.
    ///   - elapsed: Time since the first began.
    func wait(after outcome: Outcome, tries: Int, elapsed: Duration) -> Duration? {
        guard tries <= count, isPassing(outcome) else { return nil }
        var wait = delay ?? RetryPlan.doubled(tries)
        if case .status(_, _, let retryAfter?) = outcome, retryAfter > .zero { wait = retryAfter }
        if let timeLimit, elapsed + wait > timeLimit { return nil }
        return wait
    }

    private func isPassing(_ outcome: Outcome) -> Bool {
        switch outcome {
        case .status(let status, let isError, _):
            return RetryPlan.passingStatuses.contains(status) || includesAllErrors && isError
        case .failure(let status, let isRefusedConnection):
            if RetryPlan.passingFailures.contains(status) { return true }
            if includesRefusedConnections, isRefusedConnection { return true }
            return includesAllErrors && !RetryPlan.ownFailures.contains(status)
        }
    }

    private static func doubled(_ tries: Int) -> Duration {
        // More doublings than these are longer than the longest wait anyway.
        min(.seconds(1 << min(max(tries - 1, 0), 12)), longestDelay)
    }
}
