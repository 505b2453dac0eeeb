import FoundationEssentials
import HTTPTypes
import Martlet
import MartletWire
import SystemPackage

/// Carries one plan out: request, heads, body, `-w`; again where that is wanted after a passing failure.
struct Transfer: Sendable {
    private(set) var plan: TransferPlan
    let session: HTTPSession
    let global: GlobalOptions
    /// The log of `--har`, if there is one.
    let log: HARFile?
    let options: TransferOptions
    /// The byte of the resource from which on it goes on; `nil` for all of it.
    private(set) var offset: UInt64?

    init(_ plan: TransferPlan, session: HTTPSession, global: GlobalOptions, log: HARFile? = nil) {
        self.plan = plan
        self.session = session
        self.global = global
        self.log = log
        options = plan.group
    }

    /// A transfer that ends with this exit code and these words, without being the fault of what is below.
    struct Verdict: Error {
        var status: ExitStatus
        var message: String
    }

    /// Fetches, and tells standard error what went wrong.
    func run() async -> TransferReport {
        let ledger = TransferLedger(TransferReport(plan), speed: SpeedWatch(options))
        do {
            try await fetch(ledger)
        } catch {
            ledger.update { report in
                (report.status, report.message) = Transfer.verdict(error)
                report.noteCertificate(error)
                report.isOutputBroken = (error as? OutputError)?.isStandardOutput ?? false
            }
        }
        var report = ledger.report
        report.elapsed = ContinuousClock.now - report.start
        if report.status != .success, !report.message.isEmpty, !report.isTold, global.tellsErrors {
            await Console.complain("martlet: (\(report.status.code)) \(report.message)\n")
        }
        if let format = options.writeOut, report.status != .interrupted {
            do throws(OutputError) {
                try await writeOut(format, report)
            } catch {
                if report.status == .success { report.status = .writeFailed }
                report.isOutputBroken = true
            }
        }
        return report
    }

    static func verdict(_ error: any Error) -> (ExitStatus, String) {
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
        try await Console.write(pieces)
    }

    // MARK: Fetching

    private func fetch(_ ledger: TransferLedger) async throws {
        try await EntityTagFile.prepare(options)
        let output = try makeOutput()
        var transfer = self
        if options.uploads.isEmpty, let offset = options.continuation?.offset(of: output.path), offset > 0 {
            transfer.offset = offset
            transfer.plan.goOn(at: offset)
            // A file that cannot be continued is a failure before anything is asked for.
            try await output.append()
        }
        try await transfer.fetch(ledger, into: output)
    }

    private func fetch(_ ledger: TransferLedger, into output: BodyOutput) async throws {
        ledger.update { $0.file = output.path }
        let meter = output.path.map { path in
            ProgressMeter(form: global.shownProgress, name: path, url: plan.url.redacted)
        }
        try await Transfer.showing(meter) {
            do {
                try await tryAndTryAgain(ledger, output, meter)
                try await end(output, ledger.report)
                await meter?.finish(.success)
            } catch {
                await output.close()
                let (status, message) = Transfer.verdict(error)
                await meter?.finish(status, message: message)
                if meter?.isJSON == true { ledger.update { $0.isTold = true } }
                throw error
            }
        }
    }

    /// Ends the output of a transfer that went well.
    private func end(_ output: BodyOutput, _ report: TransferReport) async throws(OutputError) {
        let modified = options.keepsRemoteTime ? report.head?.fields.firstValue(of: "last-modified") : nil
        let problem = try await output.finish(
            makesFile: report.effectiveStatus != 304,
            modified: modified.flatMap { HTTPDate($0)?.secondsSinceEpoch })
        if let problem, global.tellsErrors {
            await Console.complain("martlet: option -R: no time for “\(problem.name)”: \(problem.reason)\n")
        }
        if let head = report.head { try await EntityTagFile.save(head, options) }
    }

    private static func showing(_ meter: ProgressMeter?, _ body: () async throws -> Void) async throws {
        guard let meter else { return try await body() }
        await meter.begin()
        // Unstructured, since it must end with the transfer and not hold it up.
        let drawing = Task { await meter.run() }
        defer { drawing.cancel() }
        try await body()
    }

    private func tryAndTryAgain(
        _ ledger: TransferLedger, _ output: BodyOutput, _ meter: ProgressMeter?
    ) async throws {
        let start = ContinuousClock.now
        var tries = 0
        var hasMended = false
        while true {
            tries += 1
            var failure: (any Error)?
            do {
                var attempt = self
                // What is tried again is what the network says; the cache would say the same.
                if tries > 1, !options.isOffline, !options.acceptsAnyCertificate {
                    attempt.plan.options.cacheMode = .reload
                }
                try await attempt.tryOnce(ledger, output, meter)
            } catch {
                failure = error
            }
            if !hasMended, Transfer.isOfStore(failure, ledger.report), await output.mayRestart {
                // What was stored is out of the cache by now; it was no try of the network's.
                hasMended = true
                tries -= 1
                try await output.restart()
                ledger.restart(plan)
                continue
            }
            await tell(ledger.report, failure)
            guard plan.body.replay != .once,
                let wait = options.retries.wait(
                    after: Transfer.outcome(failure, ledger.report), tries: tries,
                    elapsed: ContinuousClock.now - start)
            else {
                if let failure { throw failure }
                return
            }
            let problem = Transfer.problem(failure, ledger.report)
            await meter?.retrying(problem, in: wait, failures: tries)
            if global.tellsErrors, !global.isSilent, meter?.isJSON != true {
                let left = options.retries.count - tries
                await Console.complain(
                    "martlet: \(problem); trying again in \(wait), \(left) more after that\n")
            }
            try await Task.sleep(for: wait)
            try await output.restart()
            ledger.restart(plan)
        }
    }

    /// Whether it is the stored body that fails: damaged, or one that cannot be decoded.
    private static func isOfStore(_ failure: (any Error)?, _ report: TransferReport) -> Bool {
        switch (failure as? HTTPError)?.code {
        case .storedBodyDamaged: true
        case .contentDecodingFailed: report.source != .network
        default: false
        }
    }

    private static func problem(_ failure: (any Error)?, _ report: TransferReport) -> String {
        if let failure, !(failure is Verdict) { return verdict(failure).1 }
        return "the status is \(report.head?.status ?? 0)"
    }

    private static func outcome(_ failure: (any Error)?, _ report: TransferReport) -> RetryPlan.Outcome {
        if let head = report.head,
            failure == nil || verdict(failure ?? CancellationError()).0 == .refusedByStatus
        {
            let now = Int64(Date().timeIntervalSince1970)
            let retryAfter = head.fields.rawValues(of: "retry-after").first.flatMap {
                RetryAfter($0, now: now)
            }
            return .status(head.status, isError: failure != nil, retryAfter: retryAfter?.delay)
        }
        guard let failure else { return .failure(.success, isRefusedConnection: false) }
        let refusals = (failure as? HTTPError)?.connectFailures ?? []
        return .failure(
            verdict(failure).0,
            isRefusedConnection: refusals.contains { $0.error.code == Errno.connectionRefused.rawValue })
    }

    /// What is told of a try when it is over, whatever came of it.
    private func tell(_ report: TransferReport, _ failure: (any Error)?) async {
        if let log { await log.append(report, plan, failure) }
        if global.showsTimeline, report.head != nil, let metrics = report.metrics {
            let picture = TimelinePicture(
                steps: report.steps.map(\.hop), metrics: metrics, source: report.source,
                width: TimelinePicture.terminalWidth, usesUnicode: Environment.speaksUTF8)
            await Console.complain(
                "\(report.method) \(report.url.redacted) \(report.head?.status ?? 0)\n\(picture.text)")
        }
    }

    private func makeOutput() throws(UsageError) -> BodyOutput {
        switch plan.destination {
        case .named("-"):
            let isAskedFor = options.destinations.contains(.named("-"))
            return BodyOutput(mayBeBinary: isAskedFor)
        case .named(let name): return BodyOutput(path: placed(name), makesFolders: options.makesFolders)
        case .remoteName:
            let name: String
            do throws(UsageError) {
                name = try RemoteName.name(for: plan.url)
            } catch {
                // The response may propose one all the same.
                guard options.heedsProposedNames else { throw error }
                name = RemoteName.placeholder
            }
            return BodyOutput(path: placed(name), makesFolders: options.makesFolders)
        }
    }

    func placed(_ name: String) -> String {
        guard let folder = options.outputFolder, !name.hasPrefix("/") else { return name }
        return folder.hasSuffix("/") ? folder + name : "\(folder)/\(name)"
    }
}
