import Martlet
import Synchronization

/// Shows on standard error how far a transfer has come, in the form asked for.
final class ProgressMeter: Sendable {
    private struct State {
        var bytes: UInt64 = 0
        var total: UInt64?
        var window = RateWindow()
        /// Columns of what stands on the terminal's line.
        var drawnWidth = 0
        var isOver = false
    }

    private let form: GlobalOptions.Progress
    private let text: ProgressText
    private let url: String
    private let start = ContinuousClock.now
    /// Guards the above: the transfer and the task that draws.
    private let state = Mutex(State())

    /// A meter for a transfer to a file.
    init(form: GlobalOptions.Progress, name: String, url: String) {
        self.form = form == .auto ? (Console.errorIsTerminal ? .bar : .plain) : form
        self.url = url
        let width = Environment["COLUMNS"].flatMap { Int($0) } ?? 80
        text = ProgressText(name: name, usesUnicode: Environment.speaksUTF8, width: min(max(width, 20), 400))
    }

    /// Whether programs read it, so that nothing may be said in other words.
    var isJSON: Bool { form == .json }

    /// Tells that the transfer is tried again, where that is told in JSON.
    /// - Parameters:
    ///   - message: What was wrong.
    ///   - delay: How long is waited before.
    ///   - failures: How many tries have failed.
    func retrying(_ message: String, in delay: Duration, failures: Int) async {
        guard isJSON else { return }
        let rest: [(String, JSONValue)] = [
            ("message", .string(message)), ("delay", .number(WriteOutValue.seconds(delay).text)),
            ("failures", .number(failures)),
        ]
        await Console.complain(line("retrying", rest))
    }

    /// Notes how many bytes have come, of how many.
    func note(_ bytes: UInt64, of total: UInt64?) {
        state.withLock { state in
            state.bytes = bytes
            state.total = total
        }
    }

    /// Says that the transfer begins, ahead of all else that is told of it.
    func begin() async { if isJSON { await Console.complain(event("start", snapshot())) } }

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
            case .json: await Console.complain(event("progress", current))
            case .plain where now - lastLine >= .seconds(10):
                lastLine = now
                await Console.complain(text.line(current) + "\n")
            default: break
            }
        }
    }

    /// The last line: always written, unless nothing is to be.
    /// - Parameter message: What was wrong, which JSON has a place for.
    func finish(_ status: ExitStatus, message: String = "") async {
        if form == .none { return }
        let current = snapshot()
        let isLate = state.withLock { state in
            defer { state.isOver = true }
            return state.isOver
        }
        if isLate { return }
        if form == .json {
            await Console.complain(event("finish", current, status, message))
        } else {
            let line = text.total(current, failed: status != .success)
            // In one write: another transfer may have something to say.
            guard form == .bar else { return await Console.complain(line + "\n") }
            await draw(line)
            await Console.complain("\n")
            Interrupts.barIsDrawn = false
        }
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

    /// Draws over what stands on the line, in one write.
    private func draw(_ line: String) async {
        let padding = state.withLock { state in
            defer { state.drawnWidth = line.count }
            return max(0, state.drawnWidth - line.count)
        }
        Interrupts.barIsDrawn = true
        await Console.complain("\r\(line)\(String(repeating: " ", count: padding))")
    }

    private func event(
        _ name: String, _ current: ProgressText.State, _ status: ExitStatus? = nil, _ message: String = ""
    ) -> String {
        var members: [(String, JSONValue)] = []
        members.append(("bytes", .number(current.bytes)))
        members.append(("total", current.total.map { .number($0) } ?? .null))
        if name != "start" {
            members.append(("rate", .number(Int(current.rate))))
            members.append(("seconds", .number(WriteOutValue.seconds(current.elapsed).text)))
        }
        if let status {
            members.append(("ok", .bool(status == .success)))
            members.append(("exit", .number(status.code)))
            if !message.isEmpty { members.append(("message", .string(message))) }
        }
        return line(name, members)
    }

    /// A line of JSON. Of several transfers at once each names its own.
    private func line(_ event: String, _ rest: [(String, JSONValue)]) -> String {
        let names: [(String, JSONValue)] = [
            ("event", .string(event)), ("name", .string(text.name)), ("url", .string(url)),
        ]
        return JSONLine.text(.members(names + rest)) + "\n"
    }
}
