import Martlet

/// Follows one download by its events and by looks at its progress. Pure: times are given, counted from any one instant,
/// and never fall.
struct DownloadTracker: Sendable {
    /// What it is called.
    var name: String
    /// The newest look.
    private(set) var progress = DownloadProgress()
    private var window = RateWindow()
    private var isVerifying = false
    /// When the next try comes, after how many failures, and what had come by then.
    private var wait: (until: Duration, failures: Int, received: UInt64)?

    /// A download that begins.
    init(name: String, start: Duration) {
        self.name = name
        window.note(0, at: start)
    }

    /// Notes what has happened.
    mutating func take(_ event: DownloadEvent, at time: Duration) {
        switch event {
        case .started(let resumed):
            progress.resumedByteCount = resumed
            progress.completedByteCount = max(progress.completedByteCount, resumed)
            isVerifying = false
        case .restarted: isVerifying = false
        case .retrying(_, let delay, let failures):
            wait = (time + delay, failures, progress.receivedByteCount)
        case .verifying:
            isVerifying = true
            wait = nil
        case .finished(let result):
            if let last = result.path.lastComponent { name = last.string }
            progress.completedByteCount = result.byteCount
            progress.totalByteCount = result.byteCount
            progress.receivedByteCount = max(progress.receivedByteCount, result.receivedByteCount)
            progress.resumedByteCount = result.resumedByteCount
        case .failed, .paused, .cancelled: break
        }
    }

    /// Notes how far it has come.
    mutating func note(_ progress: DownloadProgress, at time: Duration) {
        self.progress = progress
        // Only what this run received counts: what was there before is not fast.
        window.note(progress.receivedByteCount, at: time)
        if let wait, progress.receivedByteCount > wait.received { self.wait = nil }
    }

    /// What there is to show.
    func row(at time: Duration) -> DownloadRow {
        var row = DownloadRow(
            name: name, bytes: progress.completedByteCount, total: progress.totalByteCount,
            resumed: progress.resumedByteCount, rate: window.rate, stall: window.stall(at: time),
            connections: progress.connectionCount)
        if isVerifying {
            row.phase = .verifying
        } else if let wait, wait.until > time {
            row.phase = .waiting(wait.until - time, failures: wait.failures)
        } else if progress.receivedByteCount == 0, !row.isStalled {
            row.phase = .starting
        }
        return row
    }
}
