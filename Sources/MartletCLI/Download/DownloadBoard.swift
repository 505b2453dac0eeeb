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
