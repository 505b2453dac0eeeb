import FoundationEssentials
import Martlet

/// The file of `--har`: a complete log after each transfer.
actor HARFile {
    /// The reason that a request followed by another has no response.
    private struct StepFailure: Error, CustomStringConvertible { var description: String }

    private let name: String
    private let file: FileDescriptor
    private var log = HARLog()
    private var isBroken = false

    /// Creates or truncates the file, and writes a log without entries. Only its owner may read and write it.
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

    /// Adds the requests of a transfer.
    func append(_ report: TransferReport, _ plan: TransferPlan, _ failure: (any Error)?) async {
        for step in report.steps {
            if let exchange = step.exchange {
                await add(exchange, plan, step.passedHeads.lastSentBytes)
            } else {
                let request = HTTPRequest(method: step.hop.method, url: step.hop.url.withoutUserInfo)
                let error = StepFailure(description: step.hop.error?.rawValue ?? "no answer")
                await add(HAREntry(failed: request, url: step.hop.url, error: error))
            }
        }
        if let exchange = report.exchange {
            await add(exchange, plan, report.passedHeads.lastSentBytes, failure)
        } else if let failure {
            let elapsed = ContinuousClock.now - report.start
            var metrics = HTTPMetrics()
            metrics.total = elapsed
            await add(
                HAREntry(
                    failed: plan.request, url: plan.url.withoutUserInfo, requestBody: plan.body,
                    error: failure, metrics: report.metrics ?? metrics,
                    startedAt: Date(timeIntervalSinceNow: -(elapsed / .seconds(1)))))
        }
    }

    func close() async {
        let file = file
        await Console.run { try? file.close() }
    }

    private func add(
        _ exchange: HTTPExchange, _ plan: TransferPlan, _ head: [UInt8]?, _ failure: (any Error)? = nil
    ) async {
        // A redirect may have dropped the body.
        let hasBody = exchange.request.method == plan.request.method
        await add(
            HAREntry(
                exchange, requestBody: hasBody ? plan.body : .none, sentHeaders: head.map(HARFile.fields),
                error: failure))
    }

    private func add(_ entry: HAREntry) async { await write(log.append(entry)) }

    /// The fields of a head that was sent.
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
