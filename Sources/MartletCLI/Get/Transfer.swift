import HTTPTypes
import Martlet
import MartletWire

/// Carries one plan out: request, heads, body, `-w`.
struct Transfer: Sendable {
    let plan: TransferPlan
    let session: HTTPSession
    let global: GlobalOptions
    private let options: TransferOptions

    init(_ plan: TransferPlan, session: HTTPSession, global: GlobalOptions) {
        self.plan = plan
        self.session = session
        self.global = global
        options = plan.group
    }

    /// A transfer that ends with this exit code and these words, without being the fault of what is below.
    private struct Verdict: Error {
        var status: ExitStatus
        var message: String
    }

    /// Fetches, and tells standard error what went wrong.
    func run() async -> TransferReport {
        var report = TransferReport(plan)
        let start = ContinuousClock.now
        let ledger = TransferLedger(report)
        do {
            try await fetch(ledger)
            report = ledger.report
        } catch {
            report = ledger.report
            (report.status, report.message) = Transfer.verdict(error)
            if global.isVerbose, report.head == nil, (error as? HTTPError)?.wasSent == true {
                await Console.complain(HeadText.shown(report.requestHead, mark: ">"))
            }
        }
        report.elapsed = ContinuousClock.now - start
        if report.status != .success, !report.message.isEmpty, !global.isSilent || global.showsErrors {
            await Console.complain("martlet: (\(report.status.code)) \(report.message)\n")
        }
        if let format = options.writeOut, report.status != .interrupted {
            do throws(OutputError) {
                try await writeOut(format, report)
            } catch {
                if report.status == .success { report.status = .writeFailed }
            }
        }
        return report
    }

    private static func verdict(_ error: any Error) -> (ExitStatus, String) {
        switch error {
        case let error as Verdict: (error.status, error.message)
        case let error as UsageError: (error.status, error.description)
        case let error as HTTPError: (ExitStatus(error), error.message)
        case let error as OutputError: (.writeFailed, error.isClosedPipe ? "" : error.description)
        case is CancellationError: (.interrupted, "")
        default: (.readFailed, "\(error)")
        }
    }

    private func writeOut(_ format: String, _ report: TransferReport) async throws(OutputError) {
        let (pieces, unknown) = WriteOut(report).text(format)
        for name in unknown { await Console.complain("martlet: unknown --write-out variable: “\(name)”\n") }
        for piece in pieces {
            if piece.goesToStandardError {
                await Console.complain(piece.text)
            } else {
                try await Console.write(piece.text)
            }
        }
    }

    // MARK: Fetching

    private func fetch(_ ledger: TransferLedger) async throws {
        let output = try makeOutput()
        ledger.update { $0.file = output.path }
        if global.isVerbose || options.writeOut != nil {
            let head = try await session.composedHead(
                plan.request, to: plan.url, body: plan.shownBody, options: plan.options)
            ledger.update { $0.requestHead = head }
        }
        let meter = output.path.map { path in
            ProgressMeter(
                form: global.isSilent ? .none : global.progress, name: path, url: plan.url.redacted)
        }
        try await Transfer.showing(meter) {
            do {
                try await exchange(ledger, output, meter)
                try await output.finish()
                await meter?.finish(.success)
            } catch {
                await output.close()
                await meter?.finish(Transfer.verdict(error).0)
                throw error
            }
        }
    }

    private static func showing(_ meter: ProgressMeter?, _ body: () async throws -> Void) async throws {
        guard let meter else { return try await body() }
        // Unstructured, since it must end with the transfer and not hold it up.
        let drawing = Task { await meter.run() }
        defer { drawing.cancel() }
        try await body()
    }

    private func makeOutput() throws(UsageError) -> BodyOutput {
        switch plan.destination {
        case .named("-"):
            let isAskedFor = options.destinations.contains(.named("-"))
            return BodyOutput(mayBeBinary: isAskedFor)
        case .named(let name): return BodyOutput(path: placed(name), makesFolders: options.makesFolders)
        case .remoteName:
            return BodyOutput(
                path: placed(try RemoteName.name(for: plan.url)), makesFolders: options.makesFolders)
        }
    }

    private func placed(_ name: String) -> String {
        guard let folder = options.outputFolder, !name.hasPrefix("/") else { return name }
        return folder.hasSuffix("/") ? folder + name : "\(folder)/\(name)"
    }

    private func exchange(_ ledger: TransferLedger, _ output: BodyOutput, _ meter: ProgressMeter?)
        async throws
    {
        let control = TransferControl()
        defer { ledger.update { $0.uploadedByteCount = control.uploadedByteCount } }
        try await session.streamDetailed(
            plan.request, to: plan.url, body: plan.body, options: plan.options, control: control
        ) { response in
            ledger.update { report in
                report.head = response.head
                report.metrics = response.metrics
            }
            defer { ledger.update { $0.metrics = response.metrics } }
            try await show(response, ledger, output)
            let isFailure = options.failsOnStatus && response.head.status >= 400
            let verdict = Verdict(
                status: .refusedByStatus, message: "the requested URL returned error: \(response.head.status)"
            )
            if isFailure, !options.keepsBodyOnFailure { throw verdict }
            try await receive(response, ledger, output, meter)
            if isFailure { throw verdict }
        }
    }

    /// The heads, wherever they are to go.
    private func show(_ response: DetailedResponse, _ ledger: TransferLedger, _ output: BodyOutput)
        async throws
    {
        let heads = (response.interim + [response.head]).map(HeadText.bytes)
        ledger.update { $0.headByteCount = heads.reduce(0) { $0 + $1.count } }
        if global.isVerbose {
            await Console.complain(VerboseText.connection(response.metrics))
            await Console.complain(HeadText.shown(ledger.report.requestHead, mark: ">"))
            for head in heads { await Console.complain(HeadText.shown(head, mark: "<")) }
        }
        let bytes = Array(heads.joined())
        if let file = options.headsFile { try await HeadsFile(file).write(bytes, anew: plan.isFirstOfGroup) }
        if options.includesHeads || options.isHead { try await output.write(bytes) }
    }

    private func receive(
        _ response: DetailedResponse, _ ledger: TransferLedger, _ output: BodyOutput, _ meter: ProgressMeter?
    ) async throws {
        let total = response.body.announcedByteCount
        if let limit = options.sizeLimit, let total, total > UInt64(limit), plan.request.method != .head {
            throw Verdict(
                status: .tooLarge, message: "the body has \(total) bytes, more than the \(limit) allowed")
        }
        meter?.note(0, of: total)
        for try await piece in response.body {
            try await output.write(piece)
            meter?.note(response.metrics.receivedBodyByteCount, of: total)
        }
        guard let trailers = response.trailers, !trailers.isEmpty else { return }
        let lines = HeadText.lines(of: trailers)
        ledger.update { $0.headByteCount += lines.count }
        if global.isVerbose { await Console.complain(HeadText.shown(lines, mark: "<")) }
        if let file = options.headsFile { try await HeadsFile(file).write(lines, anew: false) }
        if options.includesHeads { try await output.write(lines) }
    }
}
