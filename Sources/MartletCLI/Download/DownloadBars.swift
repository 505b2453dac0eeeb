import Martlet

/// The progress display of downloads on a terminal: a line for each running download, then a line for the total. The
/// lines depend only on the arguments. No line uses the terminal's last column.
struct DownloadBars: Sendable {
    var size: TerminalSize
    var usesUnicode: Bool
    var usesColor: Bool

    /// The widths of the parts of a line, in columns; the same for all lines, so that they are aligned.
    private struct Layout {
        /// The minimum width of the bar; 0 for no bar.
        var bar = 0
        var percent = 0
        var amount = 0
        /// The width of the rate and the remaining time, or of the reason that no bytes arrive.
        var tail: Int
        var name: Int

        var parts: Int { [bar, percent, amount, tail].reduce(0) { $0 + ($1 > 0 ? $1 + 2 : 0) } }
    }

    private static let layouts = [
        Layout(bar: 12, percent: 4, amount: 24, tail: DownloadRow.longTail, name: 10),
        Layout(bar: 10, percent: 4, amount: 10, tail: DownloadRow.longTail, name: 8),
        Layout(bar: 10, percent: 4, tail: DownloadRow.longTail, name: 8),
        Layout(bar: 8, percent: 4, tail: DownloadRow.shortTail, name: 6),
        Layout(percent: 4, tail: DownloadRow.shortTail, name: 4),
    ]

    private var room: Int { max(1, size.columns - 1) }

    /// The lines of the downloads and of the total. Downloads that do not fit the terminal's rows are only counted.
    func lines(_ rows: [DownloadRow], total: DownloadTotal?) -> [String] {
        let names = rows.map { ColumnText.safe($0.name, usesUnicode: usesUnicode) }
        let layout = DownloadBars.layouts.first { $0.name + $0.parts <= room }
        var wanted = names.map { ColumnText.width($0) }.max() ?? 0
        if let total { wanted = max(wanted, ColumnText.width(label(total, columns: .max))) }
        let nameColumns = layout.map { widthOfNames($0, wanted: wanted) } ?? 0
        let shownLimit = max(1, size.rows - 1 - (total == nil ? 0 : 1))
        let shown = rows.count > shownLimit ? max(0, shownLimit - 1) : rows.count
        var lines = zip(names, rows).prefix(shown).map { name, row in line(name, row, layout, nameColumns) }
        if shown < rows.count {
            lines.append(ColumnText.cut("and \(rows.count - shown) more", to: room, usesUnicode: usesUnicode))
        }
        if let total {
            let columns = layout == nil ? compactNameColumns(total.row) : nameColumns
            lines.append(line(label(total, columns: columns), total.row, layout, nameColumns))
        }
        return lines
    }

    /// Returns the width of the names: without a bar all spare columns, else part of them, up to a third of the line.
    private func widthOfNames(_ layout: Layout, wanted: Int) -> Int {
        guard layout.bar > 0 else { return room - layout.parts }
        let spare = room - layout.parts - layout.name
        return max(layout.name, min(wanted, layout.name + spare * 2 / 3, room / 3))
    }

    private func line(_ name: String, _ row: DownloadRow, _ layout: Layout?, _ nameColumns: Int) -> String {
        guard let layout else { return compactLine(name, row) }
        let cut = ColumnText.cut(name, to: nameColumns, usesUnicode: usesUnicode)
        var parts = [ColumnText.fitted(cut, to: nameColumns)]
        let barColumns = room - nameColumns - layout.parts + layout.bar
        if let fraction = row.fraction {
            if layout.bar > 0 { parts.append(bar(fraction, columns: barColumns)) }
            parts.append(ColumnText.fitted(DownloadRow.percent(fraction), to: layout.percent, isRight: true))
            if layout.amount > 0 {
                let amount = layout.amount > 10 ? row.amountOfTotal : row.amount
                parts.append(ColumnText.fitted(amount, to: layout.amount, isRight: true))
            }
        } else {
            // Without a total, the received bytes use the columns of bar, percentage and amount.
            let joined = [layout.bar > 0 ? barColumns : 0, layout.percent, layout.amount].filter { $0 > 0 }
            let columns = joined.reduce(-2) { $0 + $1 + 2 }
            let amount = columns < 10 ? row.shortAmount : row.amount
            parts.append(ColumnText.fitted(amount, to: columns, isRight: true))
        }
        let isLong = layout.tail >= DownloadRow.longTail
        parts.append(colored(ColumnText.fitted(isLong ? row.tail : row.shortStatus, to: layout.tail), row))
        return parts.joined(separator: "  ")
    }

    private func compactNameColumns(_ row: DownloadRow) -> Int {
        max(0, room - 2 - ColumnText.width(compactFigure(row)))
    }

    private func compactFigure(_ row: DownloadRow) -> String {
        if row.isStalled || row.phase != .receiving { return row.shortStatus }
        return row.fraction.map(DownloadRow.percent) ?? row.shortAmount
    }

    private func compactLine(_ name: String, _ row: DownloadRow) -> String {
        let columns = compactNameColumns(row)
        let figure = String(ColumnText.prefix(of: compactFigure(row), columns: room))
        guard columns >= 3 else { return colored(figure, row) }
        let cut = ColumnText.cut(name, to: columns, usesUnicode: usesUnicode)
        return "\(ColumnText.fitted(cut, to: columns))  \(colored(figure, row))"
    }

    private func label(_ total: DownloadTotal, columns: Int) -> String {
        ColumnText.width(total.count) <= columns ? total.count : "\(total.finishedCount)/\(total.fileCount)"
    }

    private func bar(_ fraction: Double, columns: Int) -> String {
        // The last column stays empty until the download is complete.
        let done = fraction >= 1 ? columns : min(columns - 1, Int(Double(columns) * fraction))
        let (full, empty) = ProgressText.bar(done, of: columns, usesUnicode: usesUnicode)
        guard usesColor else { return full + empty }
        return "\u{1B}[32m\(full)\u{1B}[2;39m\(empty)\u{1B}[0m"
    }

    private func colored(_ text: String, _ row: DownloadRow) -> String {
        let isWaiting = if case .waiting = row.phase { true } else { row.isStalled }
        return usesColor && isWaiting ? "\u{1B}[33m\(text)\u{1B}[0m" : text
    }
}

/// Messages about downloads, as lines that remain on the terminal.
struct DownloadText: Sendable {
    var usesUnicode: Bool

    private func safe(_ text: String) -> String { ColumnText.safe(text, usesUnicode: usesUnicode) }

    func progress(_ row: DownloadRow) -> String {
        let percent = row.fraction.map { "\(DownloadRow.percent($0)), " } ?? ""
        var text = "\(safe(row.name)): \(percent)\(row.amountOfTotal)"
        if row.phase == .receiving, !row.isStalled {
            text += ", \(row.shortStatus)"
            if let left = row.timeLeft { text += ", \(ProgressText.time(left)) left" }
        } else {
            text += ", \(row.tail)"
        }
        return text
    }

    func progress(_ total: DownloadTotal) -> String {
        var row = total.row
        row.name = "total, \(total.count)"
        return progress(row)
    }

    /// Returns the line for an event of a running download; `nil` for events without a line.
    func note(_ event: DownloadEvent, name: String) -> String? {
        switch event {
        case .started(let resumed) where resumed > 0:
            return "\(safe(name)): resumes after \(ProgressText.size(Double(resumed)))"
        case .restarted(let reason): return "\(safe(name)): restarts: \(DownloadText.words(reason))"
        case .retrying(let error, let delay, _):
            return "\(safe(name)): \(safe(error.message)); retrying in \(ProgressText.time(delay))"
        case .verifying: return "\(safe(name)): verifying"
        case .urlUsed(let url): return "\(safe(name)): receives from \(safe(url.redacted))"
        case .urlFailed(let url, let error): return "\(safe(name)): \(safe(url.redacted)): \(safe(error.message))"
        case .started, .finished, .failed, .paused, .cancelled: return nil
        }
    }

    static func words(_ reason: DownloadEvent.RestartReason) -> String {
        switch reason {
        case .changed: "the file on the server has changed"
        case .rangesRejected: "the server does not send the missing range"
        case .notResumable: "the response has no validator to compare with"
        case .overlapDiffers: "the bytes on disk differ from the server's"
        case .otherURL: "another URL may have another file"
        }
    }

    func outcome(_ outcome: DownloadOutcome, of subject: DownloadJSON.Subject, after elapsed: Duration, kept: UInt64)
        -> String?
    {
        switch outcome {
        case .finished(let result): return finished(result, elapsed)
        case .failed(let error):
            let hint = DownloadText.hints[error.code] ?? ""
            return failure(outcome, subject, error.message + hint, kept: error.resumableByteCount ?? 0)
        case .outOfTime:
            return failure(outcome, subject, "not complete within \(ProgressText.time(elapsed))", kept: kept)
        case .stopped: return nil
        }
    }

    private static let hints: [HTTPError.Code: String] = [
        .fileExists: "; --overwrite replaces it, --rename keeps both",
        .notResumable: "; --restart discards the bytes of the earlier run",
    ]

    private func finished(_ result: DownloadResult, _ elapsed: Duration) -> String {
        // The prefix for the working directory is omitted.
        let path = result.path.string
        let name = path.hasPrefix("./") ? String(path.dropFirst(2)) : path
        var text = "\(safe(name)): \(ProgressText.size(Double(result.byteCount)))"
        text += " in \(ProgressText.time(elapsed)), \(ProgressText.rate(result.receivedByteCount, elapsed))"
        if result.resumedByteCount > 0 {
            text += "; \(ProgressText.size(Double(result.resumedByteCount))) were already on disk"
        }
        if !result.verified.isEmpty {
            text += "; \(result.verified.map(\.algorithm.rawValue).joined(separator: ", ")) verified"
        }
        return text
    }

    private func failure(_ outcome: DownloadOutcome, _ subject: DownloadJSON.Subject, _ message: String, kept: UInt64)
        -> String
    {
        let rest = kept > 0 ? "; \(ProgressText.size(Double(kept))) are kept for the next run" : ""
        return "martlet: (\(outcome.status?.code ?? 0)) \(safe(subject.name)): GET \(safe(subject.url)): "
            + safe(message) + rest
    }

    func summary(_ total: DownloadTotal, received: UInt64, after elapsed: Duration) -> String {
        "total: \(total.count), \(ProgressText.size(Double(received))) in \(ProgressText.time(elapsed)), "
            + ProgressText.rate(received, elapsed)
    }

    /// Returns the message after a signal: how to resume. `left` has the URLs of the incomplete downloads, `kept` the
    /// number of their bytes on disk, and `stateDirectory` the directory of their queue.
    func resumption(left: [String], of count: Int, kept: UInt64, stateDirectory: String?) -> String {
        let amount = kept > 0 ? " \(ProgressText.size(Double(kept))) are kept." : ""
        if let stateDirectory {
            return "martlet: stopped.\(amount) To resume: martlet download --state \(safe(stateDirectory))"
        }
        if left.count == count { return "martlet: stopped.\(amount) To resume, run the same command again." }
        let shown = left.prefix(20).map { "\n  \(safe($0))" }.joined()
        let more = left.count > 20 ? "\n  and \(left.count - 20) more" : ""
        return "martlet: stopped.\(amount) To resume, run the command again for the rest:\(shown)\(more)"
    }
}

/// The values of a download's row, as text.
extension DownloadRow {
    /// The width of ``tail``, in columns.
    static let longTail = 29
    /// The width of ``shortStatus``, in columns.
    static let shortTail = 13

    /// A percentage; 100 only for a complete download.
    static func percent(_ fraction: Double) -> String {
        "\(fraction >= 1 ? 100 : min(99, max(0, Int(fraction * 100))))%"
    }

    var amount: String { ProgressText.size(Double(bytes)) }

    /// The amount in at most eight columns: `1023 MiB`.
    var shortAmount: String {
        let parts = amount.split(separator: " ")
        guard parts.count == 2, amount.count > 8, let point = parts[0].firstIndex(of: ".") else { return amount }
        return "\(parts[0][..<point]) \(parts[1])"
    }

    var amountOfTotal: String { total.map { "\(amount) of \(ProgressText.size(Double($0)))" } ?? amount }

    /// The rate and the remaining time, or the reason that no bytes arrive.
    var tail: String {
        switch phase {
        case .waiting(let time, let failures) where failures > 1:
            return "again in \(seconds(time)) (failure \(failures))"
        case .waiting(let time, _): return "retrying in \(seconds(time))"
        case .starting, .verifying: return shortStatus
        case .receiving:
            if isStalled { return stall < .seconds(60) ? shortStatus : "stalled \(ProgressText.time(stall))" }
            guard let left = timeLeft else { return rateText }
            return ColumnText.fitted(rateText, to: 12) + " \(ProgressText.time(left)) left"
        }
    }

    /// Only the rate, or the reason that no bytes arrive, in at most ``shortTail`` columns if possible.
    var shortStatus: String {
        switch phase {
        case .starting: "starting"
        case .verifying: "verifying"
        case .waiting(let time, _): "again in \(seconds(time))"
        case .receiving: isStalled ? "stalled \(seconds(stall))" : rateText
        }
    }

    private var rateText: String { "\(ProgressText.size(rate))/s" }
    private func seconds(_ duration: Duration) -> String { "\(duration.components.seconds) s" }
}

/// The start order of a command line's downloads: the next one is the first that the limits allow.
struct DownloadScheduler: Sendable {
    private struct Host {
        var running = 0
        /// The downloads that were passed over while the host was at its limit. Those from ``first`` on are still held.
        var held: [Int] = []
        var first = 0
    }

    private var hosts: [String]
    private let limit: Int
    private let limitPerHost: Int
    private var states: [String: Host] = [:]
    private var running = 0
    /// The index of the first download that ``next()`` has not examined yet.
    private var position = 0
    /// The downloads of hosts that are below their limit again; they come before all unexamined ones.
    private var freed: [Int] = []
    private var isStopped = false

    /// Creates a scheduler for one download per element of `hosts`. The limits are for running downloads.
    init(hosts: [String], limit: Int, limitPerHost: Int) {
        self.hosts = hosts
        self.limit = max(1, limit)
        self.limitPerHost = max(1, limitPerHost)
    }

    /// The index of the download to start now; `nil` if the limits allow none.
    mutating func next() -> Int? {
        guard !isStopped, running < limit else { return nil }
        if let least = freed.indices.min(by: { freed[$0] < freed[$1] }) { return begin(freed.remove(at: least)) }
        while position < hosts.count {
            let index = position
            position += 1
            if states[hosts[index], default: Host()].running < limitPerHost { return begin(index) }
            states[hosts[index], default: Host()].held.append(index)
        }
        return nil
    }

    private mutating func begin(_ index: Int) -> Int {
        running += 1
        states[hosts[index], default: Host()].running += 1
        return index
    }

    mutating func end(_ index: Int) {
        running -= 1
        guard var state = states[hosts[index]] else { return }
        state.running -= 1
        if state.first < state.held.count {
            freed.append(state.held[state.first])
            state.first += 1
        }
        states[hosts[index]] = state
    }

    mutating func stop() { isStopped = true }

    /// Adds a download after the others.
    mutating func add(host: String) { hosts.append(host) }
}
