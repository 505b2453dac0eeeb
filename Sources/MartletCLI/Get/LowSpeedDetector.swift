import Martlet

/// A detector of a transfer whose average rate over the last seconds is below a limit.
///
/// As with curl's `-Y` and `-y`, the measurement starts with the connection: the wait for the head counts, the wait for
/// a connection does not.
struct LowSpeedDetector: Sendable {
    private static let sampleLimit = 20
    /// The minimum rate, in bytes per second.
    private let limit: Int
    private let time: Duration
    /// The samples of the last ``time``, and the one before them; empty without a connection.
    private var samples: [(instant: ContinuousClock.Instant, bytes: UInt64)] = []

    /// Creates a detector; `nil` if the options set no limit.
    init?(_ options: TransferOptions) {
        guard options.speedLimit > 0, options.speedTime > .zero else { return nil }
        (limit, time) = (options.speedLimit, options.speedTime)
    }

    var interval: Duration { max(time / LowSpeedDetector.sampleLimit, .milliseconds(1)) }

    /// The message for a transfer that is too slow, the same as curl's.
    var message: String {
        let seconds = time / .seconds(1)
        let text = seconds == seconds.rounded() ? String(Int(seconds)) : String(seconds)
        return "Operation too slow. Less than \(limit) bytes/sec transferred the last \(text) seconds"
    }

    mutating func begin(at now: ContinuousClock.Instant) { samples = [(now, 0)] }

    /// Stops the measurement until the next connection.
    mutating func rest() { samples = [] }

    /// Records the bytes that have moved in both directions. Returns whether the transfer is too slow.
    mutating func isTooSlow(_ bytes: UInt64, at now: ContinuousClock.Instant) -> Bool {
        guard let last = samples.last else { return false }
        // A retried request restarts the measurement.
        if bytes < last.bytes { begin(at: now) }
        samples.append((now, bytes))
        while samples.count > 2, now - samples[1].instant >= time { samples.removeFirst() }
        let elapsed = now - samples[0].instant
        guard elapsed >= time else { return false }
        return Double(bytes - samples[0].bytes) < Double(limit) * (elapsed / .seconds(1))
    }
}

extension Transfer {
    /// Runs an attempt, and ends it with an error if it is too slow.
    func watchingSpeed(of control: TransferControl, _ body: @escaping @Sendable () async throws -> Void) async throws {
        guard let detector = LowSpeedDetector(options) else { return try await body() }
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await body() }
            tasks.addTask {
                while true {
                    try await Task.sleep(for: detector.interval)
                    let bytes = control.downloadedByteCount + control.uploadedByteCount
                    if builder.isTooSlow(bytes, at: .now) {
                        throw ExitError(status: .timedOut, message: detector.message)
                    }
                }
            }
            defer { tasks.cancelAll() }
            // Only the attempt can end without an error.
            try await tasks.next()
        }
    }
}

/// Decides whether a failed transfer is retried, and when: curl's rules for the options `--retry…`.
struct RetryPlan: Hashable, Sendable {
    enum Outcome: Hashable, Sendable {
        /// A response: whether its status is an error because of `-f`, and the delay of its `Retry-After`.
        case status(Int, isError: Bool = false, retryAfter: Duration?)
        case failure(ExitStatus, isRefusedConnection: Bool)
    }

    var count = 0
    /// The delay before each retry; `nil` for one second, which is doubled each time.
    var delay: Duration?
    /// The period from the start of the first attempt in which retries may start; `nil` for no limit.
    var timeLimit: Duration?
    var includesRefusedConnections = false
    var includesAllErrors = false

    private static let maximumDelay = Duration.seconds(600)
    private static let transientStatuses: Set = [408, 429, 500, 502, 503, 504]
    private static let transientFailures: Set<ExitStatus> = [.timedOut, .unresolvedHost, .unresolvedProxy]
    /// Local failures, which no retry can fix.
    private static let localFailures: Set<ExitStatus> = [
        .usage, .malformedURL, .unsupportedScheme, .writeFailed, .readFailed, .interrupted, .notInCache,
    ]

    /// The delay before the next attempt; `nil` for no further attempt. `tries` is the number of attempts so far, and
    /// `elapsed` the time since the first one started.
    func wait(after outcome: Outcome, tries: Int, elapsed: Duration) -> Duration? {
        guard tries <= count, isRetryable(outcome) else { return nil }
        // More doublings would exceed the maximum anyway.
        let doubled = min(.seconds(1 << min(max(tries - 1, 0), 12)), RetryPlan.maximumDelay)
        var wait = delay ?? doubled
        if case .status(_, _, let retryAfter?) = outcome, retryAfter > .zero { wait = retryAfter }
        if let timeLimit, elapsed + wait > timeLimit { return nil }
        return wait
    }

    private func isRetryable(_ outcome: Outcome) -> Bool {
        switch outcome {
        case .status(let status, let isError, _):
            return RetryPlan.transientStatuses.contains(status) || includesAllErrors && isError
        case .failure(let status, let isRefusedConnection):
            if RetryPlan.transientFailures.contains(status) { return true }
            if includesRefusedConnections, isRefusedConnection { return true }
            return includesAllErrors && !RetryPlan.localFailures.contains(status)
        }
    }
}
