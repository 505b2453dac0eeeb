import Martlet

/// What is known of all downloads of a command line, to be shown. Pure: times are given, counted from the beginning.
struct DownloadBoard: Sendable {
    /// How many there are.
    let fileCount: Int
    /// Those that run, by number.
    private var trackers: [Int: DownloadTracker] = [:]
    private var finishedCount = 0
    private var failedCount = 0
    private var stoppedCount = 0
    /// Bytes that are there of those that are not complete.
    private(set) var keptByteCount: UInt64 = 0
    /// Bytes of the files of those that are over, and bytes that these received.
    private var endedBytes: UInt64 = 0
    private var endedReceived: UInt64 = 0
    private var window = RateWindow()

    /// A board for so many downloads.
    init(fileCount: Int) {
        self.fileCount = fileCount
        window.note(0, at: .zero)
    }

    /// A download begins.
    mutating func begin(_ number: Int, name: String, at time: Duration) {
        trackers[number] = DownloadTracker(name: name, start: time)
    }

    /// Something has happened to one.
    mutating func take(_ event: DownloadEvent, of number: Int, at time: Duration) {
        trackers[number]?.take(event, at: time)
    }

    /// One has come so far.
    mutating func note(_ progress: DownloadProgress, of number: Int, at time: Duration) {
        trackers[number]?.note(progress, at: time)
        window.note(receivedByteCount, at: time)
    }

    /// One is over.
    mutating func end(_ number: Int, _ outcome: DownloadOutcome, at time: Duration) {
        guard let tracker = trackers.removeValue(forKey: number) else { return }
        endedReceived += tracker.progress.receivedByteCount
        endedBytes += tracker.progress.completedByteCount
        switch outcome {
        case .finished: finishedCount += 1
        case .failed, .outOfTime: failedCount += 1
        case .stopped:
            stoppedCount += 1
            keptByteCount += tracker.progress.completedByteCount
        }
        window.note(receivedByteCount, at: time)
    }

    /// The numbers of those that run, in order.
    var running: [Int] { trackers.keys.sorted() }

    /// One that runs.
    subscript(number: Int) -> DownloadTracker? { trackers[number] }

    /// Bytes of bodies that were received by all.
    var receivedByteCount: UInt64 {
        trackers.values.reduce(endedReceived) { $0 &+ $1.progress.receivedByteCount }
    }

    /// What there is to show of those that run.
    func rows(at time: Duration) -> [(id: Int, row: DownloadRow)] {
        running.compactMap { number in trackers[number].map { (number, $0.row(at: time)) } }
    }

    /// What there is to show of all. The whole is known when that of each is.
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
        row.phase = DownloadBoard.phase(of: rows)
        return DownloadTotal(
            fileCount: fileCount, finishedCount: finishedCount, failedCount: failedCount, row: row)
    }

    /// What all of them are doing, where that is the same; of waits the shortest.
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

/// What there is to show of one download, or of all of them.
struct DownloadRow: Hashable, Sendable {
    /// What it is doing, where it does not just receive.
    enum Phase: Hashable, Sendable {
        /// Nothing has come yet.
        case starting
        /// Bytes come, or should come.
        case receiving
        /// The next try comes after so long, after so many failures in a row.
        case waiting(Duration, failures: Int)
        /// All is there, and is compared with its checksums.
        case verifying
    }

    /// After how long without a byte it is shown as stalled.
    static let stallLimit = Duration.seconds(3)

    /// Its name; fit for no terminal yet.
    var name: String
    /// What it is doing.
    var phase = Phase.receiving
    /// Bytes of the file that are there.
    var bytes: UInt64 = 0
    /// Bytes of the file in all; `nil` while that is not known.
    var total: UInt64?
    /// Bytes that earlier runs left.
    var resumed: UInt64 = 0
    /// Bytes a second.
    var rate = 0.0
    /// For how long nothing has come.
    var stall = Duration.zero
    /// Connections that receive.
    var connections = 0

    /// Whether nothing comes that should.
    var isStalled: Bool { phase == .receiving && stall >= DownloadRow.stallLimit }

    /// How much is there, 0 to 1; `nil` while the whole is not known.
    var fraction: Double? {
        guard let total else { return nil }
        return total == 0 ? 1 : min(1, Double(bytes) / Double(total))
    }

    /// How long the rest takes at the present rate; `nil` where that cannot be told, or nothing comes.
    var timeLeft: Duration? {
        guard let total, phase == .receiving, !isStalled, rate >= 1 else { return nil }
        return .seconds(min(1e8, Double(total - min(total, bytes)) / rate))
    }
}

/// What there is to show of all downloads together.
struct DownloadTotal: Hashable, Sendable {
    /// How many there are.
    var fileCount = 0
    /// How many are complete.
    var finishedCount = 0
    /// How many have failed.
    var failedCount = 0
    /// Their bytes, rate and time; its name is not shown.
    var row = DownloadRow(name: "")

    /// How many are complete, and have failed.
    var count: String {
        "\(finishedCount) of \(fileCount) files" + (failedCount > 0 ? ", \(failedCount) failed" : "")
    }
}

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

extension Download {
    /// How far it has come by now.
    var newestProgress: DownloadProgress {
        get async {
            // A pass begins with the present value, for which nobody waits.
            var pass = progress.makeAsyncIterator()
            return await pass.next() ?? DownloadProgress()
        }
    }
}
