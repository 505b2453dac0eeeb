import Martlet

/// The times of the phases of a transfer, as bars below one another.
struct TimelineChart: Sendable {
    /// A phase, with times from the beginning of the transfer.
    private struct Row {
        var label: String
        var start: Duration
        var end: Duration
    }

    private let rows: [Row]
    private let width: Int
    private let usesUnicode: Bool

    /// - Parameters:
    ///   - steps: The requests before the last.
    ///   - source: The source of the response: one from the cache has one row only.
    ///   - width: The columns, of which the last stays empty.
    init(steps: [HTTPHop], metrics: HTTPMetrics, source: HTTPExchange.Source, width: Int, usesUnicode: Bool) {
        self.width = width
        self.usesUnicode = usesUnicode
        var rows: [Row] = []
        var time = Duration.zero
        for step in steps {
            let label = step.status.map { "\(step.reason.rawValue) \($0)" } ?? step.reason.rawValue
            rows.append(Row(label: label, start: time, end: max(time, step.ended)))
            time = max(time, step.ended) + step.delay
        }
        guard source == .network else {
            let label = source == .validatedCache ? "validate" : "cache"
            self.rows = rows + [Row(label: label, start: time, end: max(time, metrics.total))]
            return
        }
        // The time of opening a connection beyond the wait was for another request.
        let opening = [
            ("dns", metrics.dns), ("connect", metrics.connect), ("tunnel", metrics.tunnel),
            ("tls", metrics.tls),
        ]
        let ready = time + metrics.wait
        let begun = max(time, ready - opening.reduce(.zero) { $0 + ($1.1 ?? .zero) })
        func add(_ label: String, until end: Duration, evenIfNothing: Bool = false) {
            let end = max(time, end)
            if end > time || evenIfNothing { rows.append(Row(label: label, start: time, end: end)) }
            time = end
        }
        add("queue", until: begun)
        for (label, duration) in opening {
            guard let duration else { continue }
            add(label, until: min(ready, time + duration), evenIfNothing: true)
        }
        time = ready
        add("send", until: ready + (metrics.send ?? .zero), evenIfNothing: true)
        add("wait", until: metrics.firstByte ?? metrics.total, evenIfNothing: true)
        add("receive", until: metrics.total, evenIfNothing: true)
        self.rows = rows
    }

    /// A line for each row: its name, its bar, its duration.
    var text: String {
        let whole = rows.last?.end ?? .zero
        let labelWidth = max(8, rows.map(\.label.count).max() ?? 0)
        let times = rows.map { TimelineChart.milliseconds($0.end - $0.start) }
        let timeWidth = times.map(\.count).max() ?? 0
        // Blanks at the beginning, before and after the bar, and the last column.
        let room = max(8, width - labelWidth - timeWidth - 5)
        return zip(rows, times).map { row, time in
            let first = TimelineChart.column(row.start, of: whole, room)
            let last = max(first + 1, TimelineChart.column(row.end, of: whole, room))
            let begin = min(first, room - 1)
            let count = max(1, min(last, room) - begin)
            let bar =
                String(repeating: " ", count: begin)
                + String(repeating: usesUnicode ? "█" : "#", count: count)
                + String(repeating: " ", count: room - begin - count)
            let label = row.label + String(repeating: " ", count: labelWidth - row.label.count)
            let padding = String(repeating: " ", count: timeWidth - time.count)
            return "  \(label) \(bar) \(padding)\(time)\n"
        }.joined()
    }

    private static func column(_ time: Duration, of whole: Duration, _ room: Int) -> Int {
        guard whole > .zero else { return 0 }
        return Int((time / whole * Double(room)).rounded())
    }

    private static func milliseconds(_ duration: Duration) -> String {
        let tenths = Int((duration / .milliseconds(1) * 10).rounded())
        return "\(tenths / 10).\(tenths % 10) ms"
    }

    /// The columns of standard error: those of its terminal, or of `COLUMNS`, or 80.
    static var terminalWidth: Int { min(max(TerminalSize.current.columns, 40), 400) }
}
