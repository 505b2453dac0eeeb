import Martlet

/// Whether a transfer is too slow: it moved less than so many bytes a second, on average over the last so many seconds.
///
/// It begins with a connection, as curl's `-Y` and `-y`: the wait for the head counts, the wait for a connection does not.
struct SpeedWatch: Sendable {
    private struct Sample: Sendable {
        var instant: ContinuousClock.Instant
        var bytes: UInt64
    }

    /// How many times at most in each of ``time`` it is asked.
    private static let sampleLimit = 20

    /// Bytes a second.
    let limit: Int
    /// How long they are counted.
    let time: Duration
    /// The samples of the last ``time``, with one before them; none while there is no connection.
    private var samples: [Sample] = []

    /// A watch; `nil` where nothing is too slow.
    init?(_ options: TransferOptions) {
        guard options.speedLimit > 0, options.speedTime > .zero else { return nil }
        limit = options.speedLimit
        time = options.speedTime
    }

    /// How long to wait between two questions.
    var interval: Duration { max(time / SpeedWatch.sampleLimit, .milliseconds(1)) }

    /// What is said of a transfer that is too slow, in curl's words.
    var message: String {
        let seconds = time / .seconds(1)
        let text = seconds == seconds.rounded() ? String(Int(seconds)) : String(seconds)
        return "Operation too slow. Less than \(limit) bytes/sec transferred the last \(text) seconds"
    }

    /// There is a connection: from now on bytes can move.
    mutating func begin(at now: ContinuousClock.Instant) { samples = [Sample(instant: now, bytes: 0)] }

    /// There is none any more: no time counts until there is another.
    mutating func rest() { samples = [] }

    /// Notes how many bytes have moved since the connection was there, either way.
    /// - Returns: Whether that is too slow.
    mutating func isTooSlow(_ bytes: UInt64, at now: ContinuousClock.Instant) -> Bool {
        guard let last = samples.last else { return false }
        // A request that was sent again counts anew.
        if bytes < last.bytes { begin(at: now) }
        samples.append(Sample(instant: now, bytes: bytes))
        while samples.count > 2, now - samples[1].instant >= time { samples.removeFirst() }
        let elapsed = now - samples[0].instant
        guard elapsed >= time else { return false }
        return Double(bytes - samples[0].bytes) < Double(limit) * (elapsed / .seconds(1))
    }
}

extension Transfer {
    /// Runs a try, and ends it where it is too slow.
    func watchingSpeed(
        of control: TransferControl, _ ledger: TransferLedger,
        _ body: @escaping @Sendable () async throws -> Void
    ) async throws {
        guard let watch = SpeedWatch(options) else { return try await body() }
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await body() }
            tasks.addTask {
                while true {
                    try await Task.sleep(for: watch.interval)
                    let bytes = control.downloadedByteCount + control.uploadedByteCount
                    if ledger.isTooSlow(bytes, at: .now) {
                        throw Verdict(status: .timedOut, message: watch.message)
                    }
                }
            }
            defer { tasks.cancelAll() }
            // Whichever ends first: only the try can end well.
            try await tasks.next()
        }
    }
}

/// Whether a transfer that failed is tried again, and after how long: curl's rules for `--retry` and its kin.
struct RetryPlan: Hashable, Sendable {
    /// What came of a try.
    package enum Outcome: Hashable, Sendable {
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
        .usage, .malformedURL, .unsupportedScheme, .writeFailed, .readFailed, .interrupted, .notInCache,
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
