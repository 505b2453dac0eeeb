import FoundationEssentials
import Martlet
import MartletDemo

/// The HAR file of `--har`. It is a complete JSON document after each write.
actor HARFile {
    private struct HopError: Error, CustomStringConvertible { let description: String }

    private let name: String
    private let file: FileDescriptor
    private var log = HARLog()
    private var isBroken = false

    /// Creates or truncates the file, and writes a log without entries. A new file is accessible only by its owner.
    init(_ name: String) async throws(UsageError) {
        self.name = name
        do throws(OutputError) {
            file = try await Console.write(to: name) {
                try FileDescriptor.open(
                    FilePath(name), .writeOnly, options: [.create, .truncate, .closeOnExec],
                    permissions: .ownerReadWrite)
            }
        } catch { throw UsageError("option --har: \(error)", status: .writeFailed) }
        await write(log.begin())
    }

    func append(_ report: TransferReport, _ plan: TransferPlan, _ failure: (any Error)?) async {
        for step in report.steps {
            if let exchange = step.exchange {
                await add(exchange, plan, step.passedHeads.compactMap(\.sentBytes).last)
            } else {
                let request = HTTPRequest(method: step.hop.method, url: step.hop.url.withoutUserInfo)
                let error = HopError(description: step.hop.error?.rawValue ?? "no response")
                await add(HAREntry(failed: request, url: step.hop.url, error: error))
            }
        }
        if let exchange = report.exchange {
            await add(exchange, plan, report.passedHeads.compactMap(\.sentBytes).last, failure)
        } else if let failure {
            let elapsed = ContinuousClock.now - report.start
            var metrics = HTTPMetrics()
            metrics.total = elapsed
            await add(
                HAREntry(
                    failed: plan.request, url: plan.url.withoutUserInfo, requestBody: plan.body, error: failure,
                    metrics: report.metrics ?? metrics, startedAt: Date(timeIntervalSinceNow: -(elapsed / .seconds(1))))
            )
        }
    }

    func close() async { await Console.run { [file] in try? file.close() } }

    private func add(_ exchange: HTTPExchange, _ plan: TransferPlan, _ head: [UInt8]?, _ failure: (any Error)? = nil)
        async
    {
        // A redirect may have dropped the body.
        let hasBody = exchange.request.method == plan.request.method
        await add(
            HAREntry(
                exchange, requestBody: hasBody ? plan.body : .none, sentHeaders: head.map(HARFile.fields),
                error: failure))
    }

    private func add(_ entry: HAREntry) async { await write(log.append(entry)) }

    private static func fields(of head: [UInt8]) -> HTTPFields {
        var fields = HTTPFields()
        for line in head.split(separator: 10).dropFirst() {
            let line = line.last == 13 ? line.dropLast() : line
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")),
                let name = HTTPField.Name(String(decoding: line[..<colon], as: UTF8.self))
            else { continue }
            let value = line[line.index(after: colon)...].drop { $0 == UInt8(ascii: " ") }
            fields.append(HTTPField(name: name, value: Array(value)))
        }
        return fields
    }

    private func write(_ piece: HARLog.Piece) async {
        guard !isBroken else { return }
        do throws(OutputError) {
            try await Console.write(to: name) { [file] in
                _ = try file.writeAll(toAbsoluteOffset: Int64(piece.offset), piece.bytes)
            }
        } catch {
            isBroken = true
            await Console.report("option --har: \(error)")
        }
    }
}

/// A chart of the phases of a transfer, with a bar for each phase.
enum TimelineChart {
    /// A phase, with times from the beginning of the transfer.
    private typealias Row = (label: String, start: Duration, end: Duration)

    /// A row for each request before the last one; then a row for each phase of the last one, or one for the cache.
    private static func rows(_ steps: [HTTPHop], _ metrics: HTTPMetrics, _ source: HTTPExchange.Source) -> [Row] {
        var rows: [Row] = []
        var time = Duration.zero
        for step in steps {
            let label = step.status.map { "\(step.reason.rawValue) \($0)" } ?? step.reason.rawValue
            rows.append((label, time, max(time, step.ended)))
            time = max(time, step.ended) + step.delay
        }
        guard source == .network else {
            let label = source == .validatedCache ? "validate" : "cache"
            return rows + [(label, time, max(time, metrics.total))]
        }
        // A connection may have been started earlier, for another request: only the wait of this request is shown.
        let opening = [
            ("dns", metrics.dns), ("connect", metrics.connect), ("tunnel", metrics.tunnel), ("tls", metrics.tls),
        ]
        let ready = time + metrics.wait
        let begun = max(time, ready - opening.reduce(.zero) { $0 + ($1.1 ?? .zero) })
        func add(_ label: String, until end: Duration, evenIfNothing: Bool = false) {
            let end = max(time, end)
            if end > time || evenIfNothing { rows.append((label, time, end)) }
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
        return rows
    }

    /// The chart for standard error: label, bar and duration in each line. The terminal's last column stays empty.
    static func text(steps: [HTTPHop], metrics: HTTPMetrics, source: HTTPExchange.Source) -> String {
        let rows = rows(steps, metrics, source)
        let whole = rows.last?.end ?? .zero
        let labelWidth = max(8, rows.map { $0.label.count }.max() ?? 0)
        let times = rows.map { Timeline.milliseconds($0.end - $0.start) }
        let timeWidth = times.map(\.count).max() ?? 0
        let width = min(max(TerminalSize.current.columns, 40), 400)
        // Two leading spaces, one on each side of the bar, and the last column.
        let room = max(8, width - labelWidth - timeWidth - 5)
        let mark = Environment.speaksUTF8 ? "█" : "#"
        return zip(rows, times).map { row, time in
            let first = column(row.start, of: whole, room)
            let last = max(first + 1, column(row.end, of: whole, room))
            let begin = min(first, room - 1)
            let count = max(1, min(last, room) - begin)
            let bar =
                String(repeating: " ", count: begin) + String(repeating: mark, count: count)
                + String(repeating: " ", count: room - begin - count)
            return "  \(ColumnText.fitted(row.label, to: labelWidth)) \(bar) "
                + ColumnText.fitted(time, to: timeWidth, isRight: true) + "\n"
        }.joined()
    }

    private static func column(_ time: Duration, of whole: Duration, _ room: Int) -> Int {
        guard whole > .zero else { return 0 }
        return Int((time / whole * Double(room)).rounded())
    }
}
