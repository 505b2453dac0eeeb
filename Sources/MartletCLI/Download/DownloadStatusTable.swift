import Martlet

/// The state of all downloads of a command line, to be shown. Pure: times are passed in, counted from the beginning.
struct DownloadStatusTable: Sendable {
    let fileCount: Int
    /// The running downloads, by number.
    private var trackers: [Int: DownloadTracker] = [:]
    private var finishedCount = 0
    private var failedCount = 0
    private var stoppedCount = 0
    /// The bytes of stopped downloads that are on the disk.
    private(set) var resumableByteCount: UInt64 = 0
    /// The bytes of the files of ended downloads, and the bytes that these received.
    private var endedBytes: UInt64 = 0
    private var endedReceived: UInt64 = 0
    private var window = RateWindow()

    init(fileCount: Int) {
        self.fileCount = fileCount
        window.note(0, at: .zero)
    }

    mutating func begin(_ number: Int, name: String, at time: Duration) {
        trackers[number] = DownloadTracker(name: name, start: time)
    }

    mutating func take(_ event: DownloadEvent, of number: Int, at time: Duration) {
        trackers[number]?.take(event, at: time)
    }

    mutating func note(_ progress: DownloadProgress, of number: Int, at time: Duration) {
        trackers[number]?.note(progress, at: time)
        window.note(receivedByteCount, at: time)
    }

    mutating func end(_ number: Int, _ outcome: DownloadOutcome, at time: Duration) {
        guard let tracker = trackers.removeValue(forKey: number) else { return }
        endedReceived += tracker.progress.receivedByteCount
        endedBytes += tracker.progress.completedByteCount
        switch outcome {
        case .finished: finishedCount += 1
        case .failed, .outOfTime: failedCount += 1
        case .stopped:
            stoppedCount += 1
            resumableByteCount += tracker.progress.completedByteCount
        }
        window.note(receivedByteCount, at: time)
    }

    /// The numbers of the running downloads, in order.
    var running: [Int] { trackers.keys.sorted() }

    subscript(number: Int) -> DownloadTracker? { trackers[number] }

    /// The bytes of bodies that all downloads received.
    var receivedByteCount: UInt64 {
        trackers.values.reduce(endedReceived) { $0 &+ $1.progress.receivedByteCount }
    }

    func rows(at time: Duration) -> [(id: Int, row: DownloadRow)] {
        running.compactMap { number in trackers[number].map { (number, $0.row(at: time)) } }
    }

    /// The row of all. Its total is known when that of each is.
    func total(at time: Duration) -> DownloadTotal {
        let rows = rows(at: time).map(\.row)
        var row = DownloadRow(name: "total", rate: window.rate, stall: window.stall(at: time))
        row.bytes = rows.reduce(endedBytes) { $0 &+ $1.bytes }
        row.resumed = rows.reduce(0) { $0 &+ $1.resumed }
        row.connections = rows.reduce(0) { $0 + $1.connections }
        let hasBegun = finishedCount + failedCount + stoppedCount + rows.count >= fileCount
        if hasBegun, rows.allSatisfy({ $0.total != nil }) {
            row.total = rows.reduce(endedBytes) { $0 &+ ($1.total ?? 0) }
        }
        row.phase = DownloadStatusTable.phase(of: rows)
        return DownloadTotal(
            fileCount: fileCount, finishedCount: finishedCount, failedCount: failedCount, row: row)
    }

    /// The phase of all, if it is the same; of waits the shortest.
    private static func phase(of rows: [DownloadRow]) -> DownloadRow.Phase {
        guard let first = rows.first?.phase else { return .receiving }
        let waits = rows.compactMap { row -> Duration? in
            if case .waiting(let time, _) = row.phase { time } else { nil }
        }
        if let shortest = waits.min() {
            return waits.count == rows.count ? .waiting(shortest, failures: 1) : .receiving
        }
        return rows.allSatisfy { $0.phase == first } ? first : .receiving
    }
}

/// The figures of one download, or of all of them.
struct DownloadRow: Hashable, Sendable {
    enum Phase: Hashable, Sendable {
        /// No bytes have come yet.
        case starting
        case receiving
        /// The next attempt begins after a delay, after so many consecutive failures.
        case waiting(Duration, failures: Int)
        /// All bytes are there, and are compared with the checksums.
        case verifying
    }

    /// The time without a byte after which a download is shown as stalled.
    static let stallLimit = Duration.seconds(3)

    /// The name, not yet escaped for a terminal.
    var name: String
    var phase = Phase.receiving
    /// The bytes of the file that are there.
    var bytes: UInt64 = 0
    /// The size of the file; `nil` while it is not known.
    var total: UInt64?
    /// The bytes of earlier runs.
    var resumed: UInt64 = 0
    /// Bytes a second.
    var rate = 0.0
    /// The time without a byte.
    var stall = Duration.zero
    /// The number of connections that receive.
    var connections = 0

    var isStalled: Bool { phase == .receiving && stall >= DownloadRow.stallLimit }

    /// The finished part, 0 to 1; `nil` while the total is not known.
    var fraction: Double? {
        guard let total else { return nil }
        return total == 0 ? 1 : min(1, Double(bytes) / Double(total))
    }

    /// The time for the rest at the present rate; `nil` if it is not known, or no bytes come.
    var timeLeft: Duration? {
        guard let total, phase == .receiving, !isStalled, rate >= 1 else { return nil }
        return .seconds(min(1e8, Double(total - min(total, bytes)) / rate))
    }
}

/// The figures of all downloads together.
struct DownloadTotal: Hashable, Sendable {
    var fileCount = 0
    var finishedCount = 0
    var failedCount = 0
    /// The bytes, rate and time of all; the name is not shown.
    var row = DownloadRow(name: "")

    /// The numbers of complete and failed downloads.
    var count: String {
        "\(finishedCount) of \(fileCount) files" + (failedCount > 0 ? ", \(failedCount) failed" : "")
    }
}

/// Follows one download by its events and its progress. Pure: times are passed in, counted from one instant, and never fall.
struct DownloadTracker: Sendable {
    private(set) var name: String
    private(set) var progress = DownloadProgress()
    private var window = RateWindow()
    private var isVerifying = false
    /// The time of the next attempt, the number of failures, and the bytes received by then.
    private var wait: (until: Duration, failures: Int, received: UInt64)?

    init(name: String, start: Duration) {
        self.name = name
        window.note(0, at: start)
    }

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

    mutating func note(_ progress: DownloadProgress, at time: Duration) {
        self.progress = progress
        // Only the bytes that this run received count for the rate.
        window.note(progress.receivedByteCount, at: time)
        if let wait, progress.receivedByteCount > wait.received { self.wait = nil }
    }

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

extension Download {
    var newestProgress: DownloadProgress {
        get async {
            // A pass begins with the present value, without waiting.
            var pass = progress.makeAsyncIterator()
            return await pass.next() ?? DownloadProgress()
        }
    }
}
