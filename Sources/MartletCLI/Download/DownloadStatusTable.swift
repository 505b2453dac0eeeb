import Martlet

/// The displayed state of all downloads of a command line. Times are passed in, counted from its start.
struct DownloadStatusTable: Sendable {
    var fileCount: Int
    private var trackers: [Int: DownloadTracker] = [:]
    private var finishedCount = 0
    private var failedCount = 0
    private var stoppedCount = 0
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

    var running: [Int] { trackers.keys.sorted() }

    subscript(number: Int) -> DownloadTracker? { trackers[number] }

    /// The body bytes that all downloads received in this run.
    var receivedByteCount: UInt64 { trackers.values.reduce(endedReceived) { $0 &+ $1.progress.receivedByteCount } }

    func rows(at time: Duration) -> [(id: Int, row: DownloadRow)] {
        running.compactMap { number in trackers[number].map { (number, $0.row(at: time)) } }
    }

    /// The row of all downloads. Its total is known once all totals are known.
    func total(at time: Duration) -> DownloadTotal {
        let rows = rows(at: time).map(\.row)
        var row = DownloadRow(name: "total", rate: window.rate, stall: window.stall(at: time))
        row.bytes = rows.reduce(endedBytes) { $0 &+ $1.bytes }
        row.resumed = rows.reduce(0) { $0 &+ $1.resumed }
        row.connections = rows.reduce(0) { $0 + $1.connections }
        let allHaveStarted = finishedCount + failedCount + stoppedCount + rows.count >= fileCount
        if allHaveStarted, rows.allSatisfy({ $0.total != nil }) {
            row.total = rows.reduce(endedBytes) { $0 &+ ($1.total ?? 0) }
        }
        row.phase = DownloadStatusTable.phase(of: rows)
        return DownloadTotal(fileCount: fileCount, finishedCount: finishedCount, failedCount: failedCount, row: row)
    }

    /// The common phase of all rows, with the shortest delay; `.receiving` if the phases differ.
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

/// The values of one download, or of all of them.
struct DownloadRow: Hashable, Sendable {
    enum Phase: Hashable, Sendable {
        case starting
        case receiving
        /// The next attempt starts after a delay. Contains the number of consecutive failures.
        case waiting(Duration, failures: Int)
        /// All bytes are present, and are compared with the checksums.
        case verifying
    }

    /// The time without a byte after which a download is shown as stalled.
    static let stallLimit = Duration.seconds(3)
    /// The name, not yet escaped for a terminal.
    var name: String
    var phase = Phase.receiving
    /// The bytes of the file that are present.
    var bytes: UInt64 = 0
    /// The size of the file; `nil` while it is not known.
    var total: UInt64?
    /// The bytes of earlier runs.
    var resumed: UInt64 = 0
    var rate = 0.0
    var stall = Duration.zero
    var connections = 0

    var isStalled: Bool { phase == .receiving && stall >= DownloadRow.stallLimit }

    /// The finished part, 0 to 1; `nil` while the total is not known.
    var fraction: Double? {
        guard let total else { return nil }
        return total == 0 ? 1 : min(1, Double(bytes) / Double(total))
    }

    /// The remaining time at the current rate; `nil` if it is unknown, or if no bytes arrive.
    var timeLeft: Duration? {
        guard let total, phase == .receiving, !isStalled, rate >= 1 else { return nil }
        return .seconds(min(1e8, Double(total - min(total, bytes)) / rate))
    }
}

struct DownloadTotal: Hashable, Sendable {
    var fileCount = 0
    var finishedCount = 0
    var failedCount = 0
    /// The bytes, rate and time of all downloads; the name is not shown.
    var row = DownloadRow(name: "")

    var count: String { "\(finishedCount) of \(fileCount) files" + (failedCount > 0 ? ", \(failedCount) failed" : "") }
}

/// Follows one download by its events and its progress. Times are passed in, counted from one instant, and never
/// decrease.
struct DownloadTracker: Sendable {
    private(set) var name: String
    private(set) var progress = DownloadProgress()
    private var window = RateWindow()
    private var isVerifying = false
    /// The time of the next attempt, the number of failures, and the bytes received before the last failure.
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
        case .urlUsed, .urlFailed: break
        case .retrying(_, let delay, let failures): wait = (time + delay, failures, progress.receivedByteCount)
        case .verifying:
            isVerifying = true
            wait = nil
        case .finished(let result):
            if let last = result.path.lastComponent { name = last.string }
            (progress.completedByteCount, progress.totalByteCount) = (result.byteCount, result.byteCount)
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
            // An iteration starts with the current value, without waiting.
            var pass = progress.makeAsyncIterator()
            return await pass.next() ?? DownloadProgress()
        }
    }
}

/// Shows the progress of downloads on standard error. Bars are drawn at most ten times a second, each time by one
/// write, together with the lines that stay. Other forms are written immediately. A slow reader of standard error
/// receives fewer progress lines; it delays no download, only the end of the program.
actor DownloadScreen {
    private static let firstFrame = Duration.milliseconds(400)
    /// Less than ten seconds, so that the pause between two lines is below ten seconds even if a tick is late.
    private static let lineInterval = Duration.seconds(9)

    private let form: ProgressStyle
    private let text: DownloadText
    private let start = ContinuousClock.now
    private var board: DownloadStatusTable
    private var sources: [Int: (download: Download, url: String)] = [:]
    private var block = TerminalBlock()
    private var shown: (lines: [String], size: TerminalSize)?
    private var notes: [String] = []
    private var lastLine = Duration.zero
    /// Whether the summary was written. Lines are then written immediately, because no frame follows.
    private var isOver = false

    init(form: ProgressStyle, fileCount: Int) {
        self.form = form
        text = DownloadText(usesUnicode: form.usesUnicode)
        board = DownloadStatusTable(fileCount: fileCount)
    }

    private var elapsed: Duration { ContinuousClock.now - start }
    nonisolated var showsEvents: Bool { form.progress != .none }

    // MARK: Events

    /// Expects one more file, of a Metalink document.
    func expectFile() { board.fileCount += 1 }

    func begin(_ plan: DownloadPlan, _ download: Download) {
        sources[plan.number] = (download, plan.url.redacted)
        board.begin(plan.number, name: plan.name, at: elapsed)
    }

    func take(_ event: DownloadEvent, of number: Int) {
        board.take(event, of: number, at: elapsed)
        guard let subject = subject(number) else { return }
        if form.progress == .json {
            say(DownloadJSON.line(event, subject))
        } else if form.isReadableText {
            // A bar shows these already.
            let isShown = form.progress == .bar && !form.printsEveryFailure
            switch event {
            case .retrying where isShown, .verifying where isShown: break
            default: say(text.note(event, name: subject.name))
            }
        }
    }

    /// Shows the outcome of a download, which may not have started.
    func end(
        _ plan: DownloadPlan, _ outcome: DownloadOutcome, of download: Download? = nil,
        since start: ContinuousClock.Instant? = nil
    ) async {
        if board[plan.number] == nil { board.begin(plan.number, name: plan.name, at: elapsed) }
        if let download { board.note(await download.newestProgress, of: plan.number, at: elapsed) }
        if case .finished(let result) = outcome { board.take(.finished(result), of: plan.number, at: elapsed) }
        let subject =
            subject(plan.number) ?? DownloadJSON.Subject(id: plan.number, name: plan.name, url: plan.url.redacted)
        let kept = board[plan.number]?.progress.completedByteCount ?? 0
        let time = start.map { ContinuousClock.now - $0 } ?? .zero
        board.end(plan.number, outcome, at: elapsed)
        sources[plan.number] = nil
        if form.progress == .json {
            say(DownloadJSON.line(outcome, subject, kept: kept))
        } else if outcome.status == nil ? form.isReadableText : form.printsErrors {
            say(text.outcome(outcome, of: subject, after: time, kept: kept))
        }
    }

    func warn(_ message: String) {
        if form.progress == .json {
            say(DownloadJSON.warning(message))
        } else if form.printsErrors {
            say("martlet: \(ColumnText.safe(message, usesUnicode: form.usesUnicode))")
        }
    }

    func say(_ line: String?) {
        guard let line else { return }
        guard form.progress == .bar, !isOver else { return Console.post("\(line)\n") }
        notes.append(line)
    }

    private func subject(_ number: Int) -> DownloadJSON.Subject? {
        guard let source = sources[number], let tracker = board[number] else { return nil }
        return DownloadJSON.Subject(id: number, name: tracker.name, url: source.url)
    }

    var resumableByteCount: UInt64 { board.resumableByteCount }

    // MARK: Drawing

    func run() async {
        guard showsEvents else { return }
        let interval = Duration.milliseconds(form.progress == .bar ? 100 : 500)
        while (try? await Task.sleep(for: interval)) != nil { await tick() }
    }

    private func tick() async {
        for (number, source) in sources { board.note(await source.download.newestProgress, of: number, at: elapsed) }
        let now = elapsed
        switch form.progress {
        case .bar: await draw()
        case .json: await Console.printError(DownloadJSON.progress(rows(at: now), total: board.total(at: now)) + "\n")
        case .plain where now - lastLine >= DownloadScreen.lineInterval:
            lastLine = now
            var lines = rows(at: now).map { text.progress($0.row) }
            if board.fileCount > 1 { lines.append(text.progress(board.total(at: now))) }
            await Console.printError(lines.map { "\($0)\n" }.joined())
        default: break
        }
    }

    /// The rows of the downloads that are not waiting for their turn.
    private func rows(at time: Duration) -> [(id: Int, row: DownloadRow)] {
        board.rows(at: time).filter { id, _ in if case .waiting? = sources[id]?.download.state { false } else { true } }
    }

    private func draw() async {
        let now = elapsed
        let size = TerminalSize.current
        var lines: [String] = []
        if now >= DownloadScreen.firstFrame {
            let bars = DownloadBars(size: size, usesUnicode: form.usesUnicode, usesColor: form.usesColor)
            lines = bars.lines(rows(at: now).map(\.row), total: board.fileCount > 1 ? board.total(at: now) : nil)
        }
        // After the last download has ended, its bar stays until the summary.
        if notes.isEmpty, sources.isEmpty || shown.map({ $0 == (lines, size) }) == true { return }
        shown = (lines, size)
        await write(block.frame(lines, notes: notes))
    }

    private func write(_ frame: String) async {
        notes = []
        let hidesCursor = block.lineCount > 0
        SignalHandler.update { $0.hidesCursor = hidesCursor }
        await Console.printError(frame)
    }

    /// Removes the bars, and writes the summary with `summaryMessage` below it.
    func finish(_ status: ExitStatus, summaryMessage: String? = nil) async {
        let total = board.total(at: elapsed)
        switch form.progress {
        case .json: say(DownloadJSON.ended(total, received: board.receivedByteCount, status))
        case .bar, .plain:
            if board.fileCount > 1 { say(text.summary(total, received: board.receivedByteCount, after: elapsed)) }
        default: break
        }
        if form.printsErrors, form.progress != .json { say(summaryMessage) }
        isOver = true
        if form.progress == .bar { await write(block.end(notes: notes)) }
    }
}
