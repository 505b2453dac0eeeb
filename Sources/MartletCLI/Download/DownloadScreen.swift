import Martlet

/// Shows the progress of downloads on standard error, in the form of the options.
///
/// Bars are drawn at most ten times a second, each time by one write, together with the lines that stay. The other forms are
/// written immediately. A slow reader of standard error delays only the end of the program: events wait for it, and it gets
/// fewer lines of progress.
actor DownloadScreen {
    private static let firstFrame = Duration.milliseconds(400)
    /// A little less than ten seconds, so that no ten are without a line.
    private static let lineInterval = Duration.seconds(9)

    private let form: ProgressStyle
    private let text: DownloadText
    private let start = ContinuousClock.now
    private var board: DownloadStatusTable
    private var sources: [Int: (download: Download, url: String)] = [:]
    private var block = TerminalBlock()
    private var shown: (lines: [String], size: TerminalSize)?
    /// The lines that wait for the next frame.
    private var notes: [String] = []
    private var lastLine = Duration.zero
    /// Whether the summary was written: no frame follows.
    private var isOver = false

    init(form: ProgressStyle, fileCount: Int) {
        self.form = form
        text = DownloadText(usesUnicode: form.usesUnicode)
        board = DownloadStatusTable(fileCount: fileCount)
    }

    private var elapsed: Duration { ContinuousClock.now - start }

    /// Whether it shows events, and not only outcomes.
    nonisolated var showsEvents: Bool { form.progress != .none }

    // MARK: Events

    func begin(_ plan: DownloadPlan, _ download: Download) {
        sources[plan.number] = (download, plan.url.redacted)
        board.begin(plan.number, name: plan.name, at: elapsed)
    }

    func take(_ event: DownloadEvent, of number: Int) {
        board.take(event, of: number, at: elapsed)
        guard let subject = subject(number) else { return }
        if form.progress == .json {
            say(DownloadJSON.line(event, subject))
        } else if form.tellsPeople {
            // A bar shows these already.
            let isShown = form.progress == .bar && !form.tellsAll
            switch event {
            case .retrying where isShown, .verifying where isShown: break
            default: say(text.note(event, name: subject.name))
            }
        }
    }

    /// Shows the outcome of a download, which may not have begun.
    func end(
        _ plan: DownloadPlan, _ outcome: DownloadOutcome, of download: Download? = nil,
        since start: ContinuousClock.Instant? = nil
    ) async {
        if board[plan.number] == nil { board.begin(plan.number, name: plan.name, at: elapsed) }
        if let download { board.note(await download.newestProgress, of: plan.number, at: elapsed) }
        if case .finished(let result) = outcome {
            board.take(.finished(result), of: plan.number, at: elapsed)
        }
        let subject =
            subject(plan.number)
            ?? DownloadJSON.Subject(id: plan.number, name: plan.name, url: plan.url.redacted)
        let kept = board[plan.number]?.progress.completedByteCount ?? 0
        let time = start.map { ContinuousClock.now - $0 } ?? .zero
        board.end(plan.number, outcome, at: elapsed)
        sources[plan.number] = nil
        if form.progress == .json {
            say(DownloadJSON.line(outcome, subject, kept: kept))
        } else if outcome.status == nil ? form.tellsPeople : form.tellsErrors {
            say(text.outcome(outcome, name: subject.name, after: time, kept: kept))
        }
    }

    /// Shows a fault that ends no download.
    func warn(_ message: String) {
        if form.progress == .json {
            say(DownloadJSON.warning(message))
        } else if form.tellsErrors {
            say("martlet: \(ColumnText.safe(message, usesUnicode: form.usesUnicode))")
        }
    }

    /// Writes a line that stays.
    func say(_ line: String?) {
        guard let line else { return }
        guard form.progress == .bar, !isOver else { return Console.post("\(line)\n") }
        notes.append(line)
    }

    private func subject(_ number: Int) -> DownloadJSON.Subject? {
        guard let source = sources[number], let tracker = board[number] else { return nil }
        return DownloadJSON.Subject(id: number, name: tracker.name, url: source.url)
    }

    /// The bytes of stopped downloads that are on the disk.
    var resumableByteCount: UInt64 { board.resumableByteCount }

    // MARK: Drawing

    /// Draws until it is cancelled.
    func run() async {
        guard showsEvents else { return }
        let interval = Duration.milliseconds(form.progress == .bar ? 100 : 500)
        while (try? await Task.sleep(for: interval)) != nil { await tick() }
    }

    private func tick() async {
        for (number, source) in sources {
            board.note(await source.download.newestProgress, of: number, at: elapsed)
        }
        let now = elapsed
        switch form.progress {
        case .bar: await draw()
        case .json:
            await Console.complain(DownloadJSON.progress(rows(at: now), total: board.total(at: now)) + "\n")
        case .plain where now - lastLine >= DownloadScreen.lineInterval:
            lastLine = now
            var lines = rows(at: now).map { text.progress($0.row) }
            if board.fileCount > 1 { lines.append(text.progress(board.total(at: now))) }
            await Console.complain(lines.map { "\($0)\n" }.joined())
        default: break
        }
    }

    /// The rows of the downloads that do not wait for their turn.
    private func rows(at time: Duration) -> [(id: Int, row: DownloadRow)] {
        board.rows(at: time).filter { id, _ in
            if case .waiting? = sources[id]?.download.state { false } else { true }
        }
    }

    private func draw() async {
        let now = elapsed
        let size = TerminalSize.current
        var lines: [String] = []
        if now >= DownloadScreen.firstFrame {
            let bars = DownloadBars(size: size, usesUnicode: form.usesUnicode, usesColour: form.usesColour)
            lines = bars.lines(
                rows(at: now).map(\.row), total: board.fileCount > 1 ? board.total(at: now) : nil)
        }
        if notes.isEmpty, let shown, shown.lines == lines, shown.size == size { return }
        shown = (lines, size)
        await write(block.frame(lines, notes: notes))
    }

    private func write(_ frame: String) async {
        notes = []
        let hidesCursor = block.lineCount > 0
        SignalHandler.update { $0.hidesCursor = hidesCursor }
        await Console.complain(frame)
    }

    /// Removes the bars, and writes a summary.
    /// - Parameter farewell: More lines.
    func finish(_ status: ExitStatus, summaryMessage: String? = nil) async {
        let total = board.total(at: elapsed)
        switch form.progress {
        case .json: say(DownloadJSON.ended(total, received: board.receivedByteCount, status))
        case .bar, .plain:
            if board.fileCount > 1 {
                say(text.summary(total, received: board.receivedByteCount, after: elapsed))
            }
        default: break
        }
        if form.tellsErrors, form.progress != .json { say(summaryMessage) }
        isOver = true
        if form.progress == .bar { await write(block.end(notes: notes)) }
    }
}
