import HTTPTypes
import Martlet
import MartletWire

extension Transfer {
    /// As much of a body as a log takes, in bytes.
    private static let loggedByteLimit = HAROptions().bodyLimit.bytes

    /// Sends the request and takes its answer in, once.
    func tryOnce(_ ledger: TransferLedger, _ output: BodyOutput, _ meter: ProgressMeter?) async throws {
        guard options.reading != .events else { return try await readEvents(ledger, output) }
        let control = TransferControl(watcher: ledger.watcher)
        try await watchingSpeed(of: control, ledger) { try await exchange(control, ledger, output, meter) }
    }

    private func exchange(
        _ control: TransferControl, _ ledger: TransferLedger, _ output: BodyOutput, _ meter: ProgressMeter?
    ) async throws {
        defer { ledger.update { $0.uploadedByteCount = control.uploadedByteCount } }
        do {
            try await session.streamDetailed(
                plan.request, to: plan.url, body: plan.body, options: plan.options, control: control
            ) { response in
                if response.isUnsatisfied {
                    if global.isVerbose { await Console.complain(VerboseText.cache(response.cacheStatus)) }
                    throw Verdict(
                        status: .notInCache, message: "\(response.url.redacted) is not in the cache")
                }
                ledger.update { report in
                    report.source = response.source
                    report.head = response.head
                    report.metrics = response.metrics
                    report.url = response.url
                    report.method = response.method.rawValue
                    if log != nil { report.exchange = response.exchange(with: []) }
                }
                defer { ledger.update { $0.metrics = response.metrics } }
                try await place(output, response, ledger)
                let answer = offset.map { ContinuationAnswer(response.head, at: $0, response.method) }
                // Not even a head goes into a file that stays as it was.
                let isShown = answer?.isRefusal != true || output.path == nil
                try await showSteps(ledger, isShown ? output : nil)
                try await show(
                    response.interim + [response.head], behind: ledger.report.passedHeads, response.metrics,
                    response.cacheStatus, ledger, isShown ? output : nil)
                try await EntityTagFile.show(response.head, options)
                let isFailure =
                    options.failsOnStatus && response.head.status >= 400
                    && !(offset != nil && response.head.status == 416)
                let verdict = Verdict(
                    status: .refusedByStatus,
                    message: "the requested URL returned error: \(response.head.status)")
                if isFailure, !options.keepsBodyOnFailure || offset != nil { throw verdict }
                if response.head.status == 401, needsRewind(control, ledger.report) {
                    throw Verdict(
                        status: .rewindFailed,
                        message:
                            "the server asks for credentials, and standard input cannot be sent again; save it to a file"
                    )
                }
                try checkSize(response)
                switch answer {
                case .refusal(let reason): throw Verdict(status: .rangeRefused, message: reason)
                case .complete:
                    if global.isVerbose { await Console.complain("* Nothing is missing\n") }
                    return
                case .rest, nil: break
                }
                try await receive(response, control, ledger, output, meter)
                if isFailure { throw verdict }
            }
        } catch {
            guard ledger.report.head == nil else { throw error }
            try await showFailure(error, ledger, output)
            throw error
        }
    }

    // MARK: Heads

    /// What was sent and received before a call failed.
    private func showFailure(_ error: any Error, _ ledger: TransferLedger, _ output: BodyOutput) async throws
    {
        try await showSteps(ledger, output)
        guard let error = error as? HTTPError else { return }
        if let exchange = error.exchange {
            // The redirect that was one too many, or leads where nothing follows.
            ledger.update { report in
                report.head = exchange.rawHead
                report.metrics = exchange.metrics
                report.url = exchange.url
                report.exchange = exchange
            }
            try await show(
                exchange.rawInterim + [exchange.rawHead], behind: ledger.report.passedHeads, exchange.metrics,
                exchange.cacheStatus, ledger, output)
            return
        }
        ledger.update { report in
            report.metrics = error.connection?.metrics
            let heads = (error.underlying as? ProxyError)?.heads ?? error.connection?.tunnelHeads ?? []
            report.noteTunnel(heads)
            if !error.wasSent { report.passedHeads.removeAll { $0.sentBytes != nil } }
        }
        let passed = ledger.report.passedHeads
        try await show([], behind: passed, nil, nil, ledger, output)
    }

    /// The requests that others followed.
    private func showSteps(_ ledger: TransferLedger, _ output: BodyOutput?) async throws {
        for step in ledger.report.steps {
            guard let exchange = step.exchange else { continue }
            try await show(
                exchange.rawInterim + [exchange.rawHead], behind: step.passedHeads, exchange.metrics,
                exchange.cacheStatus, ledger, output)
        }
    }

    /// The heads, wherever they are to go.
    private func show(
        _ received: [ResponseHead], behind passed: [PassedHead], _ metrics: HTTPMetrics?,
        _ cacheStatus: String?, _ ledger: TransferLedger, _ output: BodyOutput?
    ) async throws {
        let heads = received.map(HeadText.bytes)
        let bytes = Array((passed.compactMap(\.receivedBytes) + heads).joined())
        ledger.update { $0.headByteCount += bytes.count }
        if global.isVerbose {
            if let metrics { await Console.complain(VerboseText.connection(metrics)) }
            for head in passed {
                if let sent = head.sentBytes { await Console.complain(HeadText.shown(sent, mark: ">")) }
                if let came = head.receivedBytes { await Console.complain(HeadText.shown(came, mark: "<")) }
            }
            await Console.complain(VerboseText.cache(cacheStatus))
            for head in heads { await Console.complain(HeadText.shown(head, mark: "<")) }
        }
        guard !bytes.isEmpty else { return }
        if let file = options.headsFile { try await HeadsFile(file).write(bytes) }
        if options.includesHeads || options.isHead { try await output?.write(bytes) }
    }

    /// Names the file as the response proposes, where that is wanted.
    private func place(
        _ output: BodyOutput, _ response: DetailedResponse, _ ledger: TransferLedger
    ) async throws {
        guard options.heedsProposedNames, plan.destination == .remoteName else { return }
        guard let proposal = response.head.fields.firstValue(of: "content-disposition") else {
            // Without one the name is that of the URL, which may have none.
            _ = try RemoteName.name(for: plan.url)
            return
        }
        let path = placed(PartNames.proposed(disposition: proposal, url: plan.url))
        await output.place(at: path, mayReplace: false)
        ledger.update { $0.file = path }
    }

    // MARK: The body

    private func receive(
        _ response: DetailedResponse, _ control: TransferControl, _ ledger: TransferLedger,
        _ output: BodyOutput, _ meter: ProgressMeter?
    ) async throws {
        if let condition = options.timeCondition, plan.request.headerFields[.range] == nil,
            (200..<300).contains(response.head.status), !condition.isMet(by: response.head)
        {
            // The server knows no conditions, and what it sends is not wanted.
            ledger.update { $0.isSimulatedNotModified = true }
            if global.isVerbose {
                await Console.complain("* Not as -z wants it: as if the status were 304\n")
            }
            return
        }
        if options.isHead, response.method != .head {
            // Its head alone was asked for, by whatever method.
            response.body.refuse()
            return
        }
        let total = response.body.announcedByteCount
        meter?.note(0, of: total)
        var logged: [UInt8] = []
        defer {
            if log != nil { ledger.update { $0.exchange = response.exchange(with: logged) } }
        }
        var hasBegun = false
        func take(_ piece: [UInt8]) async throws {
            if !hasBegun { try checkCoding(response.head) }
            hasBegun = true
            if log != nil { logged += piece.prefix(max(0, Transfer.loggedByteLimit - logged.count)) }
            try await output.write(piece)
            meter?.note(control.downloadedByteCount, of: total)
        }
        if options.reading == .lines {
            var lines = response.body.lines.makeAsyncIterator()
            while let line = try await lines.nextBytes() { try await take(line + [10]) }
        } else {
            for try await piece in response.body { try await take(piece) }
        }
        // A raw body has them already.
        guard !options.isRaw, let trailers = response.trailers, !trailers.isEmpty else { return }
        let lines = HeadText.lines(of: trailers)
        ledger.update { $0.headByteCount += lines.count }
        if global.isVerbose { await Console.complain(HeadText.shown(lines, mark: "<")) }
        if let file = options.headsFile { try await HeadsFile(file).write(lines) }
        if options.includesHeads { try await output.write(lines) }
    }

    /// Refuses a body whose length is known to be above the limit of `--max-filesize`.
    private func checkSize(_ response: DetailedResponse) throws(Verdict) {
        guard let limit = options.sizeLimit, !options.isHead, response.method != .head,
            let total = response.body.announcedByteCount, total > UInt64(limit)
        else { return }
        throw Verdict(
            status: .tooLarge, message: "the body has \(total) bytes, more than the \(limit) allowed")
    }

    /// Whether the server would be answered by Digest, but what was sent cannot be read once more.
    private func needsRewind(_ control: TransferControl, _ report: TransferReport) -> Bool {
        let wasAnswered = report.passedHeads.contains { passed in
            if case .received(let head) = passed { head.status == 401 } else { false }
        }
        return options.offersDigest && options.user != nil && plan.body.replay == .once
            && control.uploadedByteCount > 0 && !wasAnswered
    }

    /// With `--compressed`, a body in a coding that cannot be undone is not written as if it were the resource.
    private func checkCoding(_ head: ResponseHead) throws(Verdict) {
        guard options.isCompressed, !options.isRaw else { return }
        do throws(ContentDecodingError) {
            _ = try ContentCodingPlan(
                fieldValues: head.fields.values(of: "content-encoding"), unknown: .refused)
        } catch {
            throw Verdict(status: .contentCoding, message: "\(error)")
        }
    }

    /// The events of a stream, each as JSON on a line, until the server has no more.
    private func readEvents(_ ledger: TransferLedger, _ output: BodyOutput) async throws {
        var stream = EventStreamOptions()
        stream.request = plan.options
        // The clock of -m is for the whole, which another connection would start anew.
        stream.reconnects = options.totalTimeout == nil
        for try await event in session.events(for: plan.request, body: plan.body, options: stream) {
            let line = JSONLine.text(
                .members([
                    ("event", .string(event.type)), ("id", .string(event.lastEventID)),
                    ("data", .string(event.data)),
                ]))
            try await output.write(Array((line + "\n").utf8))
        }
    }
}

/// Keeps the method of `-X` through redirects, as curl does: whatever a redirect makes of the request, its body included,
/// the word stays.
struct MethodKeeper: HTTPMiddleware {
    /// The method.
    let method: HTTPRequest.Method

    func handle(
        _ request: HTTPCall.Request, context: CallContext, next: HTTPNext
    ) async throws -> HTTPCall.Response {
        var request = request
        request.head.method = method
        return try await next(request)
    }
}
