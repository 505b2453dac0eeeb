import Martlet

extension Transfer {
    /// The maximum number of bytes of a body in the log.
    private static let loggedByteLimit = HAROptions().bodyLimit.bytes

    /// Sends the request and receives its response, once.
    func tryOnce() async throws {
        guard options.reading != .events else { return try await readEvents() }
        let control = TransferControl(tracer: builder.tracer(isVerbose: global.isVerbose))
        try await watchingSpeed(of: control) { try await exchange(control) }
    }

    private func exchange(_ control: TransferControl) async throws {
        defer { builder.update { $0.uploadedByteCount = control.uploadedByteCount } }
        do {
            try await session.streamDetailed(
                plan.request, to: plan.url, body: plan.body, options: plan.options, control: control
            ) { response in
                if response.isUnsatisfied {
                    await verbose(VerboseText.cache(response.cacheStatus))
                    throw ExitError(status: .notInCache, message: "the response is not in the cache")
                }
                builder.update { report in
                    (report.source, report.head, report.metrics) = (response.source, response.head, response.metrics)
                    (report.url, report.method) = (response.url, response.method.rawValue)
                    if log != nil { report.exchange = response.exchange(with: []) }
                }
                defer { builder.update { $0.metrics = response.metrics } }
                try await place(response)
                let resumption = offset.map { ResumeResponse(response.head, at: $0, response.method) }
                // Heads must not be appended to a file to which the body must not be appended.
                let isShown = resumption?.isRejection != true || output.path == nil
                try await showSteps(to: isShown ? output : nil)
                let cacheStatus = response.cacheStatus
                try await show(
                    response.interim + [response.head], response.metrics, cacheStatus, to: isShown ? output : nil)
                try await EntityTagFile.show(response.head, options)
                let isFailure =
                    options.failsOnStatus && response.head.status >= 400
                    && !(offset != nil && response.head.status == 416)
                let statusError = ExitError(status: .rejectedByStatus, message: "the status is \(response.head.status)")
                if isFailure, !options.keepsBodyOnFailure || offset != nil { throw statusError }
                if response.head.status == 401, needsRewind(control, builder.report) {
                    let message = "the server requires credentials, but the body cannot be read twice; send a file"
                    throw ExitError(status: .rewindFailed, message: message)
                }
                try checkSize(response)
                switch resumption {
                case .rejection(let reason):
                    throw ExitError(
                        status: .rangeRejected, message: "\(reason): cannot resume; omit -C to fetch the whole body")
                case .complete: return await verbose("* The file is complete\n")
                case .rest, nil: break
                }
                try await receive(response, control)
                // The end of the body has shown whether the response is stored.
                if response.cacheStatus != cacheStatus { await verbose(VerboseText.cache(response.cacheStatus)) }
                if isFailure { throw statusError }
            }
        } catch {
            guard builder.report.head == nil else { throw error }
            try await showFailure(error)
            throw error
        }
    }

    private func verbose(_ text: @autoclosure () -> String) async {
        if global.isVerbose { await Console.printError(text()) }
    }

    // MARK: Heads

    private func showFailure(_ error: any Error) async throws {
        try await showSteps(to: output)
        guard let error = error as? HTTPError else { return }
        if let exchange = error.exchange {
            // The response is a redirect beyond the limit, or one that must not be followed.
            builder.update { report in
                (report.head, report.metrics) = (exchange.rawHead, exchange.metrics)
                (report.url, report.exchange) = (exchange.url, exchange)
            }
            return try await show(exchange.rawHeads, exchange.metrics, exchange.cacheStatus, to: output)
        }
        builder.update { report in
            report.metrics = error.connection?.metrics
            let heads = (error.underlying as? ProxyError)?.heads ?? error.connection?.tunnelHeads ?? []
            report.noteTunnel(heads)
            if !error.wasSent { report.passedHeads.removeAll { $0.sentBytes != nil } }
        }
        try await show([], nil, nil, to: output)
    }

    /// Shows the heads of all requests before the last one, and of their responses.
    private func showSteps(to output: BodyOutput?) async throws {
        for step in builder.report.steps {
            guard let exchange = step.exchange else { continue }
            await verbose(step.text)
            try await write(step.passedHeads, exchange.rawHeads, to: output)
        }
    }

    /// Writes the heads of the last request to all outputs that the options select: `-v`, `-D`, `-i`, `-I`.
    private func show(
        _ received: [ResponseHead], _ metrics: HTTPMetrics?, _ cacheStatus: String?, to output: BodyOutput?
    ) async throws {
        let report = builder.report
        await verbose(
            VerboseText.heads(
                report.passedHeads, received, after: report.shownHeadCount,
                metrics.map { VerboseText.connection($0) } ?? "", cacheStatus))
        try await write(report.passedHeads, received, to: output)
    }

    /// Writes received heads to the outputs of `-D`, `-i` and `-I`.
    private func write(_ passed: [IntermediateHead], _ received: [ResponseHead], to output: BodyOutput?) async throws {
        let bytes = Array((passed.compactMap(\.receivedBytes) + received.map(HeadText.bytes)).joined())
        builder.update { $0.headByteCount += bytes.count }
        guard !bytes.isEmpty else { return }
        if let file = options.headsFile { try await Console.write(bytes, toFile: file, .append) }
        if options.includesHeads || options.isHead { try await output?.write(bytes) }
    }

    /// With `-J`, names the output file as the response proposes.
    private func place(_ response: DetailedResponse) async throws {
        guard options.usesRemoteHeaderName, plan.destination == .remoteName else { return }
        guard let proposal = response.head.fields.firstValue(of: "content-disposition") else {
            // Without a proposal the name comes from the URL; if that has none, the transfer fails.
            _ = try RemoteName.name(for: plan.url)
            return
        }
        let path = placed(PartNames.proposed(disposition: proposal, url: plan.url))
        await output.place(at: path)
        builder.update { $0.file = path }
    }

    // MARK: The body

    private func receive(_ response: DetailedResponse, _ control: TransferControl) async throws {
        if let condition = options.timeCondition, plan.request.headerFields[.range] == nil,
            (200..<300).contains(response.head.status), !condition.isMet(by: response.head)
        {
            // The server ignored the condition.
            builder.update { $0.isSimulatedNotModified = true }
            return await verbose("* The response does not meet -z: treated as status 304\n")
        }
        // With -I only the head is read, even if -X sets another method than HEAD.
        if options.isHead, response.method != .head { return response.body.reject() }
        let total = response.body.expectedContentLength
        meter?.note(0, of: total)
        var logged: [UInt8] = []
        defer { if log != nil { builder.update { $0.exchange = response.exchange(with: logged) } } }
        var hasStarted = false
        func take(_ piece: [UInt8]) async throws {
            if !hasStarted { try checkCoding(response.head) }
            hasStarted = true
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
        // A raw body contains the trailers.
        guard !options.isRaw, let trailers = response.trailers, !trailers.isEmpty else { return }
        let lines = HeadText.lines(of: trailers)
        builder.update { $0.headByteCount += lines.count }
        await verbose(HeadText.shown(lines, mark: "<"))
        if let file = options.headsFile { try await Console.write(lines, toFile: file, .append) }
        if options.includesHeads { try await output.write(lines) }
    }

    /// Rejects a body with a known length above the limit of `--max-filesize`.
    private func checkSize(_ response: DetailedResponse) throws(ExitError) {
        guard let limit = options.sizeLimit, !options.isHead, response.method != .head,
            let total = response.body.expectedContentLength, total > UInt64(limit)
        else { return }
        throw ExitError(
            status: .tooLarge, message: "the body has \(total) bytes, more than the \(limit) of --max-filesize")
    }

    /// Whether the request must be sent again with Digest credentials, but its body cannot be read again.
    private func needsRewind(_ control: TransferControl, _ report: TransferReport) -> Bool {
        let wasChallenged = report.passedHeads.contains { passed in
            if case .received(let head) = passed { head.status == 401 } else { false }
        }
        return options.offersDigest && options.user != nil && plan.body.replay == .once && control.uploadedByteCount > 0
            && !wasChallenged
    }

    /// With `--compressed`, rejects a body in an unknown coding, which would be written without being decoded.
    private func checkCoding(_ head: ResponseHead) throws(ExitError) {
        guard options.isCompressed, !options.isRaw else { return }
        do throws(ContentDecodingError) {
            _ = try ContentCodingPlan(fieldValues: head.fields.values(of: "content-encoding"), unknown: .rejected)
        } catch { throw ExitError(status: .contentCoding, message: "\(error)") }
    }

    /// Writes the events of a stream, each as JSON on a line, until the stream ends.
    private func readEvents() async throws {
        var stream = EventStreamOptions()
        stream.request = plan.options
        // A busy server is retried only a few times, because the program prints nothing until it accepts.
        stream.failureLimit = 3
        // -m limits all connections together, but each new connection would restart the timeout.
        stream.reconnects = options.totalTimeout == nil
        var byteCount: UInt64 = 0
        do {
            for try await event in session.events(plan.request, body: plan.body, options: stream) {
                let members: JSONMembers = ["event": event.event, "id": event.id, "data": event.data]
                let line = Array((members.jsonLine + "\n").utf8)
                try await output.write(line)
                byteCount += UInt64(line.count)
                meter?.note(byteCount, of: nil)
            }
        } catch let error as HTTPError {
            // --retry depends on the status. After an event, a retry could repeat or lose events.
            if byteCount == 0, let exchange = error.exchange { builder.update { $0.head = exchange.rawHead } }
            throw error
        }
    }
}

/// Keeps the method of `-X` through redirects, as curl does, even if a redirect drops the body.
struct MethodPreservingInterceptor: HTTPMiddleware {
    let method: HTTPRequest.Method

    func handle(_ request: HTTPCall.Request, context: CallContext, next: HTTPNext) async throws -> HTTPCall.Response {
        var request = request
        request.head.method = method
        return try await next(request)
    }
}
