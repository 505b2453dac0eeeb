import Martlet
import Synchronization

/// Shows the progress of a transfer on standard error, in the form of the options.
final class ProgressMeter: Sendable {
    private struct State {
        var bytes: UInt64 = 0
        var total: UInt64?
        var window = RateWindow()
        /// The columns of the drawn line.
        var drawnWidth = 0
        var isOver = false
    }

    private let form: GlobalOptions.Progress
    private let text: ProgressText
    private let url: String
    private let start = ContinuousClock.now
    /// Guards the above: the transfer and the task that draws.
    private let state = Mutex(State())

    init(form: GlobalOptions.Progress, name: String, url: String) {
        self.form = form == .auto ? (Console.errorIsTerminal ? .bar : .plain) : form
        self.url = url
        let width = Environment["COLUMNS"].flatMap { Int($0) } ?? 80
        text = ProgressText(name: name, usesUnicode: Environment.speaksUTF8, width: min(max(width, 20), 400))
    }

    /// Whether programs read the output, so that all of it is JSON.
    var isJSON: Bool { form == .json }

    /// Reports a retry after a delay, in JSON only.
    func retrying(_ message: String, in delay: Duration, failures: Int) async {
        guard isJSON else { return }
        await tell("retrying", ["message": message, "delay": delay, "failures": failures])
    }

    func note(_ bytes: UInt64, of total: UInt64?) {
        state.withLock { state in
            state.bytes = bytes
            state.total = total
        }
    }

    /// Reports the start of the transfer, before all other events.
    func begin() async {
        guard isJSON else { return }
        let current = snapshot()
        await tell("start", ["bytes": current.bytes, "total": current.total])
    }

    /// Draws until it is cancelled.
    func run() async {
        if form == .none { return }
        let interval: Duration = form == .bar ? .milliseconds(100) : .milliseconds(500)
        var lastLine = ContinuousClock.now
        while !Task.isCancelled {
            guard (try? await Task.sleep(for: interval)) != nil else { return }
            let now = ContinuousClock.now
            let current = snapshot()
            switch form {
            case .bar where now - start >= .milliseconds(400): await draw(text.bar(current))
            case .json: await tell("progress", ProgressMeter.members(current))
            case .plain where now - lastLine >= .seconds(10):
                lastLine = now
                await Console.complain(text.line(current) + "\n")
            default: break
            }
        }
    }

    /// Writes the last line.
    /// - Parameter message: The failure, for JSON.
    func finish(_ status: ExitStatus, message: String = "") async {
        if form == .none { return }
        let current = snapshot()
        let isLate = state.withLock { state in
            defer { state.isOver = true }
            return state.isOver
        }
        if isLate { return }
        if isJSON {
            let end: JSONMembers = ["ok": status == .success, "exit": status.code]
            let rest: JSONMembers = message.isEmpty ? [:] : ["message": message]
            return await tell("finish", ProgressMeter.members(current) + end + rest)
        }
        let line = text.total(current, failed: status != .success)
        // In one write, since another transfer may write as well.
        guard form == .bar else { return await Console.complain(line + "\n") }
        await draw(line)
        await Console.complain("\n")
        SignalHandler.update { $0.hasBar = false }
    }

    private func snapshot() -> ProgressText.State {
        let elapsed = ContinuousClock.now - start
        return state.withLock { state in
            state.window.note(state.bytes, at: elapsed)
            return ProgressText.State(
                bytes: state.bytes, total: state.total, rate: state.window.rate,
                stall: state.window.stall(at: elapsed), elapsed: elapsed)
        }
    }

    /// Draws over the last line, in one write.
    private func draw(_ line: String) async {
        let padding = state.withLock { state in
            defer { state.drawnWidth = line.count }
            return max(0, state.drawnWidth - line.count)
        }
        SignalHandler.update { $0.hasBar = true }
        await Console.complain("\r\(line)\(String(repeating: " ", count: padding))")
    }

    private static func members(_ current: ProgressText.State) -> JSONMembers {
        [
            "bytes": current.bytes, "total": current.total, "rate": Int(current.rate),
            "seconds": current.elapsed,
        ]
    }

    /// Writes a line of JSON. Each of several concurrent transfers names itself.
    private func tell(_ event: String, _ rest: JSONMembers) async {
        await Console.complain((["event": event, "name": text.name, "url": url] + rest).jsonLine + "\n")
    }
}
