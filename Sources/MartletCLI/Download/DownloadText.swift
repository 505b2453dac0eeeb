import Martlet

/// Lines about downloads that stay on the terminal, for people.
struct DownloadText: Sendable {
    /// Whether more than ASCII may be used.
    var usesUnicode: Bool

    private func safe(_ text: String) -> String { ColumnText.safe(text, usesUnicode: usesUnicode) }

    func progress(_ row: DownloadRow) -> String {
        let figures = DownloadFigures(row)
        let percent = row.fraction.map { "\(DownloadFigures.percent($0)), " } ?? ""
        var text = "\(safe(row.name)): \(percent)\(figures.amountOfTotal)"
        if row.phase == .receiving, !row.isStalled {
            text += ", \(figures.shortStatus)"
            if let left = row.timeLeft { text += ", \(ProgressText.time(left)) left" }
        } else {
            text += ", \(figures.tail)"
        }
        return text
    }

    func progress(_ total: DownloadTotal) -> String {
        var row = total.row
        row.name = "total, \(total.count)"
        return progress(row)
    }

    /// An event of a running download; `nil` for those without a line.
    func note(_ event: DownloadEvent, name: String) -> String? {
        switch event {
        case .started(let resumed) where resumed > 0:
            return "\(safe(name)): goes on behind \(ProgressText.size(Double(resumed)))"
        case .restarted(let reason): return "\(safe(name)): begins anew: \(DownloadText.words(reason))"
        case .retrying(let error, let delay, _):
            return "\(safe(name)): \(safe(error.message)); trying again in \(ProgressText.time(delay))"
        case .verifying: return "\(safe(name)): is verified"
        case .started, .finished, .failed, .paused, .cancelled: return nil
        }
    }

    /// The reason that a download was restarted.
    static func words(_ reason: DownloadEvent.RestartReason) -> String {
        switch reason {
        case .changed: "the file on the server has changed"
        case .rangesRefused: "the server does not send the part that is missing"
        case .notResumable: "nothing shows whether what is there is still of the file"
        case .overlapDiffers: "what is there is not what the server has"
        }
    }

    /// The outcome of a download.
    func outcome(_ outcome: DownloadOutcome, name: String, after elapsed: Duration, kept: UInt64) -> String? {
        switch outcome {
        case .finished(let result): return finished(result, elapsed)
        case .failed(let error):
            return failure(outcome, name, error.message, kept: error.resumableByteCount ?? 0)
        case .outOfTime:
            return failure(outcome, name, "not complete within \(ProgressText.time(elapsed))", kept: kept)
        case .stopped: return nil
        }
    }

    private func finished(_ result: DownloadResult, _ elapsed: Duration) -> String {
        // The working directory is left out.
        let path = result.path.string
        let name = path.hasPrefix("./") ? String(path.dropFirst(2)) : path
        var text = "\(safe(name)): \(ProgressText.size(Double(result.byteCount)))"
        text += " in \(ProgressText.time(elapsed)), \(ProgressText.rate(result.receivedByteCount, elapsed))"
        if result.resumedByteCount > 0 {
            text += "; \(ProgressText.size(Double(result.resumedByteCount))) were there before"
        }
        if !result.verified.isEmpty {
            text += "; \(result.verified.map(\.algorithm.rawValue).joined(separator: ", ")) verified"
        }
        return text
    }

    private func failure(_ outcome: DownloadOutcome, _ name: String, _ message: String, kept: UInt64)
        -> String
    {
        let rest = kept > 0 ? "; \(ProgressText.size(Double(kept))) are kept, to go on with" : ""
        return "martlet: (\(outcome.status?.code ?? 0)) \(safe(name)): \(safe(message))\(rest)"
    }

    func summary(_ total: DownloadTotal, received: UInt64, after elapsed: Duration) -> String {
        "total: \(total.count), \(ProgressText.size(Double(received))) in \(ProgressText.time(elapsed)), "
            + ProgressText.rate(received, elapsed)
    }

    /// The way to continue after a signal.
    /// - Parameters:
    ///   - left: The URLs of the downloads that are not complete.
    ///   - kept: The bytes of these that are on the disk.
    ///   - stateFolder: The directory of the queue, if there is one.
    func resumption(left: [String], of count: Int, kept: UInt64, stateFolder: String?) -> String {
        let amount = kept > 0 ? " \(ProgressText.size(Double(kept))) are kept." : ""
        if let stateFolder {
            return "martlet: stopped.\(amount) To go on: martlet download --state \(safe(stateFolder))"
        }
        if left.count == count { return "martlet: stopped.\(amount) To go on, run the same command again." }
        let shown = left.prefix(20).map { "\n  \(safe($0))" }.joined()
        let more = left.count > 20 ? "\n  and \(left.count - 20) more" : ""
        return "martlet: stopped.\(amount) To go on, run the command again for what is left:\(shown)\(more)"
    }
}

/// The figures of a row of a download, as texts.
struct DownloadFigures: Sendable {
    /// The columns of ``tail``.
    static let longTail = 29
    /// The columns of ``shortStatus``.
    static let shortTail = 13

    private let row: DownloadRow

    init(_ row: DownloadRow) { self.row = row }

    /// A percentage; 100 only for a complete download.
    static func percent(_ fraction: Double) -> String {
        "\(fraction >= 1 ? 100 : min(99, max(0, Int(fraction * 100))))%"
    }

    /// The bytes that are there.
    var amount: String { ProgressText.size(Double(row.bytes)) }

    /// The bytes that are there, in at most eight columns: `1023 MiB`.
    var shortAmount: String {
        let parts = amount.split(separator: " ")
        guard parts.count == 2, amount.count > 8, let point = parts[0].firstIndex(of: ".") else {
            return amount
        }
        return "\(parts[0][..<point]) \(parts[1])"
    }

    /// The bytes that are there, and the total.
    var amountOfTotal: String { row.total.map { "\(amount) of \(ProgressText.size(Double($0)))" } ?? amount }

    /// Rate and time, or the reason that no bytes come.
    var tail: String {
        switch row.phase {
        case .waiting(let time, let failures) where failures > 1:
            return "again in \(seconds(time)) (failure \(failures))"
        case .waiting(let time, _): return "trying again in \(seconds(time))"
        case .starting, .verifying: return shortStatus
        case .receiving:
            if row.isStalled {
                return row.stall < .seconds(60) ? shortStatus : "stalled \(ProgressText.time(row.stall))"
            }
            guard let left = row.timeLeft else { return rate }
            return ColumnText.fitted(rate, to: 12) + " \(ProgressText.time(left)) left"
        }
    }

    /// Only the rate, or the reason that no bytes come, in at most ``shortTail`` columns if possible.
    var shortStatus: String {
        switch row.phase {
        case .starting: "starting"
        case .verifying: "verifying"
        case .waiting(let time, _): "again in \(seconds(time))"
        case .receiving: row.isStalled ? "stalled \(seconds(row.stall))" : rate
        }
    }

    private var rate: String { "\(ProgressText.size(row.rate))/s" }

    private func seconds(_ duration: Duration) -> String { "\(duration.components.seconds) s" }
}

/// The queue of the downloads of a command line: the first one that waits begins next, within the limits.
struct DownloadScheduler: Sendable {
    private struct Host {
        var running = 0
        /// The downloads that waited when the host was at its limit, in order, from ``first`` on.
        var held: [Int] = []
        var first = 0
    }

    private let hosts: [String]
    private let limit: Int
    private let limitPerHost: Int
    private var states: [String: Host] = [:]
    private var running = 0
    /// The first download that was not examined yet.
    private var position = 0
    /// The downloads of hosts that are below their limit again; they come before all that were not examined.
    private var freed: [Int] = []
    private var isStopped = false

    /// - Parameters:
    ///   - hosts: The host of each download.
    ///   - limit: The maximum number of running downloads.
    ///   - limitPerHost: The maximum number of one host.
    init(hosts: [String], limit: Int, limitPerHost: Int) {
        self.hosts = hosts
        self.limit = max(1, limit)
        self.limitPerHost = max(1, limitPerHost)
    }

    /// The index of the download that begins now; `nil` if none may.
    mutating func next() -> Int? {
        guard !isStopped, running < limit else { return nil }
        if let least = freed.indices.min(by: { freed[$0] < freed[$1] }) {
            return begin(freed.remove(at: least))
        }
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

    /// Removes a download that has ended.
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

    /// Prevents all further downloads from beginning.
    mutating func stop() { isStopped = true }
}
