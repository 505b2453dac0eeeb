/// Progress in words and bars. Pure: the text depends on the arguments only.
struct ProgressText: Sendable {
    var name: String
    /// Whether more than ASCII may be used.
    var usesUnicode: Bool
    /// The columns of the terminal.
    var width: Int

    struct State: Sendable {
        var bytes: UInt64
        var total: UInt64?
        var rate: Double
        var stall: Duration
        var elapsed: Duration
    }

    /// A bar of at most `width - 1` columns.
    func bar(_ state: State) -> String {
        let figures = figures(state)
        let label = shortened(name, to: max(8, width / 4))
        let room = width - 1 - label.count - figures.count - 4
        guard let total = state.total, total > 0, room >= 6 else { return fitted("\(label)  \(figures)") }
        let done = min(room, Int(Double(room) * min(1, Double(state.bytes) / Double(total))))
        let (full, empty) = ProgressText.bar(done, of: room, usesUnicode: usesUnicode)
        return fitted("\(label)  \(full)\(empty)  \(figures)")
    }

    /// The full and the empty part of a bar.
    static func bar(_ done: Int, of columns: Int, usesUnicode: Bool) -> (full: String, empty: String) {
        (
            String(repeating: usesUnicode ? "━" : "#", count: max(0, done)),
            String(repeating: usesUnicode ? "─" : ".", count: max(0, columns - done))
        )
    }

    /// A line for files and pipes.
    func line(_ state: State) -> String { "\(name): \(figures(state))" }

    /// The last line.
    func total(_ state: State, failed: Bool) -> String {
        let time = ProgressText.time(state.elapsed)
        var amount = ProgressText.size(Double(state.bytes))
        if failed, let total = state.total { amount += " of \(ProgressText.size(Double(total)))" }
        let rate = ProgressText.rate(state.bytes, state.elapsed)
        return "\(name): \(failed ? "failed after " : "")\(amount) in \(time), \(rate)"
    }

    /// The mean rate of so many bytes in a time.
    static func rate(_ bytes: UInt64, _ elapsed: Duration) -> String {
        let seconds = elapsed / .seconds(1)
        return "\(size(seconds > 0 ? Double(bytes) / seconds : 0))/s"
    }

    private func figures(_ state: State) -> String {
        var parts: [String] = []
        let done = ProgressText.size(Double(state.bytes))
        if let total = state.total, total > 0 {
            let percent = Int(min(100, Double(state.bytes) / Double(total) * 100))
            parts.append(ColumnText.fitted("\(percent)%", to: 4, isRight: true))
            parts.append("\(done) of \(ProgressText.size(Double(total)))")
        } else {
            parts.append(done)
        }
        if state.stall >= .seconds(3) {
            parts.append("stalled \(state.stall.components.seconds) s")
        } else {
            parts.append("\(ProgressText.size(state.rate))/s")
            if let total = state.total, state.rate > 0, total > state.bytes {
                let left = Duration.seconds(min(1e8, Double(total - state.bytes) / state.rate))
                parts.append("\(ProgressText.time(left)) left")
            }
        }
        return parts.joined(separator: "  ")
    }

    private func fitted(_ text: String) -> String { String(text.prefix(max(1, width - 1))) }

    /// A name cut in the middle.
    private func shortened(_ name: String, to limit: Int) -> String {
        let plain = String(name.map { usesUnicode || $0.isASCII ? $0 : "?" })
        guard plain.count > limit else { return plain }
        let mark = usesUnicode ? "…" : "..."
        let kept = max(2, limit - mark.count)
        return plain.prefix((kept + 1) / 2) + mark + plain.suffix(kept / 2)
    }

    /// Bytes for people: `999 B`, `1.5 KiB`, `12.0 MiB`.
    static func size(_ bytes: Double) -> String {
        guard bytes >= 1024 else { return "\(Int(max(0, bytes))) B" }
        var value = bytes
        for unit in ["KiB", "MiB", "GiB"] {
            value /= 1024
            if value < 1024 { return "\(oneDecimal(value)) \(unit)" }
        }
        return "\(oneDecimal(value / 1024)) TiB"
    }

    /// A duration for people: `0.4 s`, `12 s`, `3 min 5 s`, `2 h 7 min`.
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

    /// Records the bytes so far. Times are counted from the beginning of the transfer and never fall.
    mutating func note(_ bytes: UInt64, at time: Duration) {
        if samples.last?.bytes != bytes { lastAdvance = time }
        samples.append((time, bytes))
        // One sample older than the window is kept, from which the rate is measured.
        while samples.count > 2, samples[1].time <= time - RateWindow.length { samples.removeFirst() }
    }

    /// Bytes a second.
    var rate: Double {
        guard let first = samples.first, let last = samples.last else { return 0 }
        // Only over the window: earlier bytes do not count after ten seconds.
        let span = (last.time - first.time) / .seconds(1)
        guard span > 0, last.bytes > first.bytes else { return 0 }
        return Double(last.bytes - first.bytes) / span
    }

    /// The time without a new byte.
    func stall(at time: Duration) -> Duration { max(.zero, time - lastAdvance) }
}
