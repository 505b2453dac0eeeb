import FoundationEssentials
import Martlet
import Synchronization

/// Runs one plan: sends the request, writes heads, body and `-w`, and retries after transient failures.
struct Transfer: Sendable {
    private(set) var plan: TransferPlan
    let session: HTTPSession
    let global: GlobalOptions
    let log: HARFile?
    let builder: TransferReportBuilder
    /// The destination of the body; a placeholder until the transfer runs.
    private(set) var output = BodyOutput(mayBeBinary: false)
    private(set) var meter: ProgressMeter?
    /// The offset of the first requested byte (`-C`); `nil` for the whole resource.
    private(set) var offset: UInt64?

    var options: TransferOptions { plan.group }

    init(_ plan: TransferPlan, session: HTTPSession, global: GlobalOptions, log: HARFile? = nil) {
        (self.plan, self.session, self.global, self.log) = (plan, session, global, log)
        builder = TransferReportBuilder(plan)
    }

    /// The exit code and the message of a transfer that the program itself ends.
    struct ExitError: Error {
        var status: ExitStatus
        var message: String
    }

    /// Fetches, and reports failures on standard error.
    func run() async -> TransferReport {
        builder.restart(plan)
        // The message of a command-line error names no request.
        var subject = ""
        do { try await fetch() } catch {
            if !(error is UsageError) { subject = self.subject }
            builder.update { report in
                (report.status, report.message) = Transfer.statusAndMessage(of: error)
                report.noteCertificate(error)
                report.isOutputBroken = (error as? OutputError)?.isStandardOutput ?? false
            }
        }
        var report = builder.report
        report.elapsed = ContinuousClock.now - report.start
        if report.status != .success, !report.message.isEmpty, !report.isReported, global.printsErrors {
            await Console.report("(\(report.status.code)) \(subject)\(report.message)")
        }
        if let format = options.writeOut, report.status != .interrupted {
            let (pieces, unknown) = WriteOut(report).text(format)
            for name in unknown { await Console.report("option -w: unknown variable “\(name)”") }
            do throws(OutputError) { try await Console.write(pieces) } catch {
                if report.status == .success { report.status = .writeFailed }
                report.isOutputBroken = true
            }
        }
        return report
    }

    static func statusAndMessage(of error: any Error) -> (ExitStatus, String) {
        switch error {
        case let error as ExitError: (error.status, error.message)
        case let error as UsageError: (error.status, error.description)
        case let error as HTTPError: (ExitStatus(error), error.message)
        case let error as OutputError: (.writeFailed, error.isClosedPipe ? "" : error.description)
        case is CancellationError: (.interrupted, "")
        default: (.readFailed, "\(error)")
        }
    }

    private var subject: String { "\(plan.request.method.rawValue) \(plan.url.redacted): " }

    private func fetch() async throws {
        try await EntityTagFile.prepare(options)
        var transfer = self
        transfer.output = try makeOutput()
        let path = transfer.output.path
        if options.uploads.isEmpty, let offset = options.continuation?.offset(of: path), offset > 0 {
            transfer.offset = offset
            transfer.plan.resume(at: offset)
            // A file that cannot be appended to fails before anything is requested.
            try await transfer.output.append()
        }
        transfer.meter = path.map { ProgressMeter(form: ProgressStyle(global), name: $0, url: plan.url.redacted) }
        try await transfer.fetchToOutput()
    }

    private func fetchToOutput() async throws {
        builder.update { $0.file = output.path }
        await meter?.begin()
        // Unstructured: drawing is stopped when the transfer ends, and must not delay it.
        let drawing = meter.map { meter in Task { await meter.run() } }
        // The final line must be written after all others.
        func stop() async {
            drawing?.cancel()
            await drawing?.value
        }
        do {
            try await runWithRetries()
            try await end(builder.report)
            await stop()
            await meter?.finish(.success)
        } catch {
            await stop()
            await output.close()
            let (status, message) = Transfer.statusAndMessage(of: error)
            await meter?.finish(status, message: message)
            if meter?.isJSON == true { builder.update { $0.isReported = true } }
            throw error
        }
    }

    /// Completes the output of a transfer that succeeded, and saves its entity tag.
    private func end(_ report: TransferReport) async throws(OutputError) {
        let modified = options.preservesModificationTime ? report.head?.fields.firstValue(of: "last-modified") : nil
        let problem = try await output.finish(
            makesFile: report.effectiveStatus != 304, modified: modified.flatMap { HTTPDate($0)?.secondsSinceEpoch })
        if let problem, global.printsErrors {
            await Console.report("option -R: no time for “\(problem.name)”: \(problem.reason)")
        }
        if let head = report.head { try await EntityTagFile.save(head, options) }
    }

    private func runWithRetries() async throws {
        let start = ContinuousClock.now
        var tries = 0
        var hasRepeated = false
        while true {
            tries += 1
            var failure: (any Error)?
            do {
                var attempt = self
                // A retry uses the network; the cache would respond as before.
                if tries > 1, !options.isOffline, !options.acceptsAnyCertificate {
                    attempt.plan.options.cacheMode = .reload
                }
                try await attempt.tryOnce()
            } catch { failure = error }
            if !hasRepeated, Transfer.isCacheFailure(failure, builder.report), await output.mayRestart {
                // The stored response was removed from the cache; the network was not tried.
                hasRepeated = true
                tries -= 1
                try await output.restart()
                builder.restart(plan)
                continue
            }
            await publish(builder.report, failure)
            guard plan.body.replay != .once,
                let wait = options.retries.wait(
                    after: Transfer.outcome(failure, builder.report), tries: tries, elapsed: ContinuousClock.now - start
                )
            else {
                if let failure { throw failure }
                return
            }
            let status = "the status is \(builder.report.head?.status ?? 0)"
            let problem = failure.map { Transfer.statusAndMessage(of: $0).1 } ?? status
            await meter?.retrying(problem, in: wait, failures: tries)
            if global.printsErrors, !global.isSilent, meter?.isJSON != true {
                let left = options.retries.count - tries
                await Console.report("\(subject)\(problem); retrying in \(wait), \(left) retries left")
            }
            try await Task.sleep(for: wait)
            try await output.restart()
            builder.restart(plan)
        }
    }

    /// Whether the body from the cache was damaged, or could not be decoded.
    private static func isCacheFailure(_ failure: (any Error)?, _ report: TransferReport) -> Bool {
        switch (failure as? HTTPError)?.code {
        case .cachedBodyCorrupted: true
        case .contentDecodingFailed: report.source != .network
        default: false
        }
    }

    private static func outcome(_ failure: (any Error)?, _ report: TransferReport) -> RetryPlan.Outcome {
        let status = failure.map { statusAndMessage(of: $0).0 }
        if let head = report.head, status == nil || status == .rejectedByStatus {
            return .status(head.status, isError: failure != nil, retryAfter: head.retryAfter?.delay)
        }
        let connectErrors = (failure as? HTTPError)?.connectErrors ?? []
        return .failure(
            status ?? .success,
            isRefusedConnection: connectErrors.contains { $0.error.code == Errno.connectionRefused.rawValue })
    }

    /// Appends an ended attempt to the HAR log, and prints its timeline.
    private func publish(_ report: TransferReport, _ failure: (any Error)?) async {
        if let log { await log.append(report, plan, failure) }
        if global.showsTimeline, report.head != nil, let metrics = report.metrics {
            let chart = TimelineChart.text(steps: report.steps.map(\.hop), metrics: metrics, source: report.source)
            await Console.printError("\(report.method) \(report.url.redacted) \(report.head?.status ?? 0)\n\(chart)")
        }
    }

    private func makeOutput() throws(UsageError) -> BodyOutput {
        var name = RemoteName.placeholder
        switch plan.destination {
        case .named("-"): return BodyOutput(mayBeBinary: options.destinations.contains(.named("-")))
        case .named(let given): name = given
        case .remoteName:
            do throws(UsageError) { name = try RemoteName.name(for: plan.url) } catch {
                // The response may still propose a file name.
                guard options.usesRemoteHeaderName else { throw error }
            }
        }
        return BodyOutput(path: placed(name), makesDirectories: options.makesDirectories)
    }

    func placed(_ name: String) -> String {
        guard let directory = options.outputDirectory, !name.hasPrefix("/") else { return name }
        return directory.hasSuffix("/") ? directory + name : "\(directory)/\(name)"
    }
}

/// A builder of the report of a running transfer, which also measures the transfer's speed.
final class TransferReportBuilder: Sendable {
    /// Shared by the transfer's task, the closures of ``tracer``, and the task that measures the speed.
    private let state: Mutex<(report: TransferReport, speed: LowSpeedDetector?)>

    init(_ plan: TransferPlan) { state = Mutex((report: TransferReport(plan), speed: LowSpeedDetector(plan.group))) }

    var report: TransferReport { state.withLock { $0.report } }

    /// Starts a new report for another attempt. Only the file's name is retained.
    func restart(_ plan: TransferPlan) {
        state.withLock { state in
            state.speed?.rest()
            let file = state.report.file
            state.report = TransferReport(plan)
            state.report.file = file
        }
    }

    func update(_ change: (inout TransferReport) -> Void) { state.withLock { change(&$0.report) } }

    func isTooSlow(_ bytes: UInt64, at now: ContinuousClock.Instant) -> Bool {
        state.withLock { $0.speed?.isTooSlow(bytes, at: now) ?? false }
    }

    /// Returns a tracer that records the requests of a call.
    /// - Parameter isVerbose: Whether the heads up to an interim response are printed when it arrives (`-v`).
    func tracer(isVerbose: Bool) -> CallTracer {
        CallTracer(
            sent: { head in self.update { $0.passedHeads.append(.sent(head)) } },
            connected: { heads in
                self.state.withLock { state in
                    state.speed?.begin(at: .now)
                    state.report.noteTunnel(heads)
                }
            },
            interim: { head, connection, isReused in
                guard isVerbose else { return }
                Console.post(
                    self.state.withLock { state in
                        state.report.takeText(upTo: head, VerboseText.connection(connection, isReused: isReused))
                    })
            }, repeated: { heads in self.update { $0.passedHeads += heads.map { .received($0) } } },
            followed: { hop, exchange in
                self.state.withLock { state in
                    state.speed?.rest()
                    let heads = Swift.exchange(&state.report.passedHeads, with: [])
                    let shown = Swift.exchange(&state.report.shownHeadCount, with: 0)
                    state.report.steps.append(
                        TransferStep(passedHeads: heads, hop: hop, exchange: exchange, shownHeadCount: shown))
                }
            })
    }
}

struct TransferReport: Sendable {
    let plan: TransferPlan
    var url: HTTPURL
    var method: String
    /// The name of the output file; `nil` for standard output.
    var file: String?
    var head: ResponseHead?
    /// The head of the proxy's last response to CONNECT; `nil` without one, as on a reused connection.
    var tunnelHead: ResponseHead?
    /// Whether the body was omitted, as with status 304, because the response does not satisfy `-z`.
    var isSimulatedNotModified = false
    /// The number of bytes of all received heads and trailers.
    var headByteCount = 0
    var metrics: HTTPMetrics?
    var source = HTTPExchange.Source.network
    /// The requests before the last one.
    var steps: [TransferStep] = []
    var passedHeads: [IntermediateHead] = []
    /// The number of heads of the last request that `-v` has already printed: of ``passedHeads``, then interim ones.
    var shownHeadCount = 0
    /// The response with the part of its body for the HAR log; `nil` before the response.
    var exchange: HTTPExchange?
    var start = ContinuousClock.now
    var uploadedByteCount: UInt64 = 0
    var elapsed = Duration.zero
    var status = ExitStatus.success
    var message = ""
    /// OpenSSL's number for the rejection of the certificate of the server, or of an HTTPS proxy; 0 for none.
    var verifyResult = 0
    var proxyVerifyResult = 0
    /// Whether standard output can no longer be written.
    var isOutputBroken = false
    /// Whether the failure was already reported in JSON.
    var isReported = false

    /// The status, or 304 if the body was omitted; 0 before the response.
    var effectiveStatus: Int { isSimulatedNotModified ? 304 : head?.status ?? 0 }

    var sentHeadByteCount: Int {
        (steps.flatMap(\.passedHeads) + passedHeads).reduce(0) { $0 + ($1.sentBytes?.count ?? 0) }
    }

    /// Records the responses of a proxy to CONNECT before the head of the request, which is already recorded.
    mutating func noteTunnel(_ heads: [ResponseHead]) {
        guard let last = heads.last else { return }
        tunnelHead = last
        let request = passedHeads.popLast()
        passedHeads += heads.map { .received($0) }
        if let request { passedHeads.append(request) }
    }

    /// Returns the text of `-v` that was not printed yet, up to an interim head that was just received.
    mutating func takeText(upTo head: ResponseHead, _ connection: String) -> String {
        var text = ""
        for index in steps.indices {
            text += steps[index].text
            steps[index].shownHeadCount = nil
        }
        text += VerboseText.heads(passedHeads, [], after: shownHeadCount, connection, nil)
        shownHeadCount = max(shownHeadCount, passedHeads.count) + 1
        return text + HeadText.shown(HeadText.bytes(of: head), mark: "<")
    }

    mutating func noteCertificate(_ error: any Error) {
        guard let error = error as? HTTPError, let cause = error.underlying as? TLSError,
            let code = cause.verificationCode
        else { return }
        if error.proxy == nil { verifyResult = code } else { proxyVerifyResult = code }
    }

    init(_ plan: TransferPlan) { (self.plan, url, method) = (plan, plan.url, plan.request.method.rawValue) }
}

/// A request of a transfer that was followed by another.
struct TransferStep: Sendable {
    /// The sent heads, and the responses after which the same request was sent again.
    let passedHeads: [IntermediateHead]
    /// The reason and the time of the next request.
    let hop: HTTPHop
    /// The response; `nil` if the request failed.
    let exchange: HTTPExchange?
    /// The number of heads that `-v` has already printed, as in ``TransferReport``; `nil` for all.
    var shownHeadCount: Int? = 0

    /// The text of `-v` that was not printed yet.
    var text: String {
        guard let exchange, let shownHeadCount else { return "" }
        return VerboseText.heads(
            passedHeads, exchange.rawHeads, after: shownHeadCount,
            VerboseText.connection(exchange.metrics), exchange.cacheStatus)
    }
}

extension HTTPExchange {
    /// The heads of the interim responses and of the final one, as received.
    var rawHeads: [ResponseHead] { rawInterim + [rawHead] }
}
