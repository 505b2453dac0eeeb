import Martlet
import Synchronization

/// Shows the progress of a transfer on standard error, in the form that the options select.
final class ProgressMeter: Sendable {
    private let form: ProgressStyle
    private let url: String
    private let start = ContinuousClock.now
    /// Shared by the transfer and the task that draws.
    private let state: Mutex<(row: DownloadRow, window: RateWindow, block: TerminalBlock)>

    init(form: ProgressStyle, name: String, url: String) {
        (self.form, self.url) = (form, url)
        state = Mutex((row: DownloadRow(name: name), window: RateWindow(), block: TerminalBlock()))
    }

    /// Whether all output is JSON, for programs that read it.
    var isJSON: Bool { form.progress == .json }

    /// Reports a retry after a delay, in JSON only.
    func retrying(_ message: String, in delay: Duration, failures: Int) async {
        guard isJSON else { return }
        await printEvent("retrying", ["message": message, "delay": delay, "failures": failures])
    }

    func note(_ bytes: UInt64, of total: UInt64?) { state.withLock { ($0.row.bytes, $0.row.total) = (bytes, total) } }

    /// Reports the start of the transfer, before all other events.
    func begin() async {
        guard isJSON else { return }
        let row = snapshot().row
        await printEvent("start", ["bytes": row.bytes, "total": row.total])
    }

    func run() async {
        if form.progress == .none { return }
        let interval: Duration = form.progress == .bar ? .milliseconds(100) : .milliseconds(500)
        var lastLine = ContinuousClock.now
        while (try? await Task.sleep(for: interval)) != nil {
            let now = ContinuousClock.now
            let (row, elapsed) = snapshot()
            switch form.progress {
            case .bar where now - start >= .milliseconds(400):
                let bars = DownloadBars(size: .current, usesUnicode: form.usesUnicode, usesColor: form.usesColor)
                await draw { $0.frame(bars.lines([row], total: nil)) }
            case .json: await printEvent("progress", members(row, elapsed))
            case .plain where now - lastLine >= .seconds(10):
                lastLine = now
                await Console.printError(DownloadText(usesUnicode: form.usesUnicode).progress(row) + "\n")
            default: break
            }
        }
    }

    /// Writes the last line, after ``run()`` has ended; in JSON with the message of a failure.
    func finish(_ status: ExitStatus, message: String = "") async {
        if form.progress == .none { return }
        let (row, elapsed) = snapshot()
        if isJSON {
            let end: JSONMembers = ["ok": status == .success, "exit": status.code]
            let rest: JSONMembers = message.isEmpty ? [:] : ["message": message]
            return await printEvent("finish", members(row, elapsed) + end + rest)
        }
        var amount = ProgressText.size(Double(row.bytes))
        if status != .success {
            amount = "failed after \(amount)" + (row.total.map { " of \(ProgressText.size(Double($0)))" } ?? "")
        }
        let line =
            "\(ColumnText.safe(row.name, usesUnicode: form.usesUnicode)): \(amount) in \(ProgressText.time(elapsed)), "
            + ProgressText.rate(row.bytes, elapsed)
        guard form.progress == .bar else { return await Console.printError(line + "\n") }
        await draw { $0.end(notes: [line]) }
    }

    private func snapshot() -> (row: DownloadRow, elapsed: Duration) {
        let elapsed = ContinuousClock.now - start
        return state.withLock { state in
            state.window.note(state.row.bytes, at: elapsed)
            (state.row.rate, state.row.stall) = (state.window.rate, state.window.stall(at: elapsed))
            return (state.row, elapsed)
        }
    }

    private func draw(_ change: (inout TerminalBlock) -> String) async {
        let (frame, hidesCursor) = state.withLock { (change(&$0.block), $0.block.lineCount > 0) }
        SignalHandler.update { $0.hidesCursor = hidesCursor }
        await Console.printError(frame)
    }

    private func members(_ row: DownloadRow, _ elapsed: Duration) -> JSONMembers {
        ["bytes": row.bytes, "total": row.total, "rate": Int(row.rate), "seconds": elapsed]
    }

    /// Writes a line of JSON. With several concurrent transfers, each line identifies its transfer.
    private func printEvent(_ event: String, _ rest: JSONMembers) async {
        let name = state.withLock { $0.row.name }
        await Console.printError((["event": event, "name": name, "url": url] + rest).jsonLine + "\n")
    }
}

struct ProgressStyle: Hashable, Sendable {
    /// The form to use: never `auto`, and `bar` only if the terminal can show it.
    let progress: GlobalOptions.Progress
    let printsErrors: Bool
    /// Whether each transient failure is reported, although a bar shows it.
    let printsEveryFailure: Bool
    let usesUnicode: Bool
    let usesColor: Bool

    /// Chooses the form by the options and the environment. Bars and colors need a terminal that can move its cursor.
    init(
        _ global: GlobalOptions, isTerminal: Bool = Console.errorIsTerminal, usesUnicode: Bool = Environment.speaksUTF8,
        variable: (String) -> String? = { Environment[$0] }
    ) {
        let canDraw = isTerminal && !["", "dumb"].contains(variable("TERM") ?? "")
        progress =
            switch global.shownProgress {
            case .auto, .bar: canDraw ? .bar : .plain
            case .plain, .json, .none: global.shownProgress
            }
        (printsErrors, printsEveryFailure, self.usesUnicode) = (global.printsErrors, global.isVerbose, usesUnicode)
        usesColor = canDraw && (variable("NO_COLOR") ?? "").isEmpty
    }

    var isReadableText: Bool { progress == .bar || progress == .plain }
}

enum ProgressText {
    static func bar(_ done: Int, of columns: Int, usesUnicode: Bool) -> (full: String, empty: String) {
        (
            String(repeating: usesUnicode ? "━" : "#", count: max(0, done)),
            String(repeating: usesUnicode ? "─" : ".", count: max(0, columns - done))
        )
    }

    static func rate(_ bytes: UInt64, _ elapsed: Duration) -> String {
        let seconds = elapsed / .seconds(1)
        return "\(size(seconds > 0 ? Double(bytes) / seconds : 0))/s"
    }

    /// A readable number of bytes: `999 B`, `1.5 KiB`, `12.0 MiB`.
    static func size(_ bytes: Double) -> String { "\(ByteCount(Int(min(max(0, bytes), 9e18))))" }

    /// A readable duration: `0.4 s`, `12 s`, `3 min 5 s`, `2 h 7 min`.
    static func time(_ duration: Duration) -> String {
        let seconds = duration.components.seconds
        if seconds < 10 { return "\(oneDecimal(duration / .seconds(1))) s" }
        if seconds < 60 { return "\(seconds) s" }
        if seconds < 3600 { return "\(seconds / 60) min \(seconds % 60) s" }
        return "\(seconds / 3600) h \(seconds / 60 % 60) min"
    }

    private static func oneDecimal(_ value: Double) -> String {
        let tenths = Int((value * 10).rounded(.down))
        return "\(tenths / 10).\(tenths % 10)"
    }
}

/// The rate of a transfer over its last ten seconds; it falls to zero when no bytes move.
struct RateWindow: Sendable {
    private static let length = Duration.seconds(10)
    private var samples: [(time: Duration, bytes: UInt64)] = []
    private var lastAdvance = Duration.zero

    /// Records the bytes so far. Times are counted from the start of the transfer and never decrease.
    mutating func note(_ bytes: UInt64, at time: Duration) {
        if samples.last?.bytes != bytes { lastAdvance = time }
        samples.append((time, bytes))
        // One sample older than the window is kept, from which the rate is measured.
        while samples.count > 2, samples[1].time <= time - RateWindow.length { samples.removeFirst() }
    }

    var rate: Double {
        guard let first = samples.first, let last = samples.last else { return 0 }
        // Computed over the window only: bytes older than ten seconds do not count.
        let span = (last.time - first.time) / .seconds(1)
        guard span > 0, last.bytes > first.bytes else { return 0 }
        return Double(last.bytes - first.bytes) / span
    }

    func stall(at time: Duration) -> Duration { max(.zero, time - lastAdvance) }
}
