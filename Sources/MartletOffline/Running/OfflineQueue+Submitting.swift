public import MartletCore

// The submission of requests.
extension OfflineQueue {
    /// Stores a request until a server accepts it. Returns when it is on disk, before it is sent.
    ///
    /// - Parameters:
    ///   - target: The URL, or a request with a method and header fields. For a URL: GET, or POST with a body.
    ///   - query: Appended to the URL; null for none.
    ///   - body: The body. Bytes and streams are written to the directory; a file stays in place and must be unchanged
    ///     when it is sent, unless the submission has ``OfflineSubmission/FilePolicy/copy``.
    ///   - headers: The header fields, in addition to those of the session.
    /// - Returns: The ticket, which identifies the request in events.
    /// - Throws: An ``HTTPError`` with the code `.limitExceeded` if the queue is full, `.offlineQueueClosed` after
    ///   ``close()``, `.invalidURL`, `.invalidRequest`, `.diskFull` or `.fileFailed`; the errors of reading the body;
    ///   `CancellationError`. After an error nothing is stored.
    @discardableResult public func submit(
        _ target: some HTTPTarget, query: ParameterValue = .null, body: HTTPBody = .none,
        headers: HTTPHeaders = HTTPHeaders(), as submission: OfflineSubmission
    ) async throws -> OfflineTicket {
        try await submit(
            session.request(for: target, query: query, body: body, headers: headers), body: body, as: submission,
            HostPart(target))
    }

    /// Stores a request until a server accepts it, like ``submit(_:query:body:headers:as:)``.
    /// - Parameters:
    ///   - lane: The lane; `nil` for the lane of the URL's origin.
    ///   - tag: A name that the request's events contain.
    @discardableResult public func submit(
        _ target: some HTTPTarget, query: ParameterValue = .null, body: HTTPBody = .none,
        headers: HTTPHeaders = HTTPHeaders(), lane: String? = nil, tag: String? = nil
    ) async throws -> OfflineTicket {
        try await submit(
            target, query: query, body: body, headers: headers, as: OfflineSubmission(lane: lane, tag: tag))
    }

    /// Sends a request; if that is not possible now, the queue stores it and sends it later. Like
    /// ``HTTPSession/send(_:query:body:headers:timeout:options:whenOffline:)`` with this queue.
    public func send(
        _ target: some HTTPTarget, query: ParameterValue = .null, body: HTTPBody = .none,
        headers: HTTPHeaders = HTTPHeaders(), options: RequestOptions = RequestOptions(),
        as submission: OfflineSubmission = OfflineSubmission()
    ) async throws -> OfflineOutcome {
        try await send(
            session.request(for: target, query: query, body: body, headers: headers), body: body, options: options,
            as: submission, HostPart(target))
    }

    /// Stores a request and waits for its first attempt. `host` is held in memory only.
    func send(
        _ request: HTTPRequest, body: HTTPBody, options: RequestOptions, as submission: OfflineSubmission,
        _ host: HostPart
    ) async throws -> OfflineOutcome {
        let watch = Watch()
        let ticket = try await submit(request, body: body, as: submission, host, options: options, watch: watch)
        let outcome = await watch.waitUnlessCancelled()
        guard case .value(let outcome) = outcome else {
            // In a separate task, because this one is cancelled. Returns when the request has left the queue.
            await Task { try? await drop(ticket.id) }.value
            throw CancellationError()
        }
        return try outcome.get()
    }

    func submit(
        _ request: HTTPRequest, body: HTTPBody, as submission: OfflineSubmission, _ host: HostPart,
        options firstOptions: RequestOptions? = nil, watch: Watch? = nil
    ) async throws -> OfflineTicket {
        try checkOpen()
        let url = try HTTPSession.url(of: request).withoutUserInfo
        let body = body.encoded(by: session.configuration.encoder)
        let key = firstOptions?.idempotencyKey ?? host.idempotencyKey
        try OfflineQueue.check(request, url, submission, key)
        guard requestCount < max(1, options.limits.requests) else {
            throw full("\(requestCount) requests are stored")
        }
        // A file with the highest possible number may be in the directory.
        guard lastNumber < .max else { throw full("all request numbers are used") }
        lastNumber += 1
        let id = OfflineID(lastNumber)
        let (open, secret) = secrets.stripped(from: request.headerFields)
        let (kept, hostFields) = SecretFields(host.fieldNames).stripped(from: open)
        let submitted = wallTime()
        let lifetime = submission.timeToLive ?? options.timeToLive
        var queued = QueuedRequest(
            id: id, lane: submission.lane ?? url.origin.description, method: request.method.rawValue, url: url,
            fields: kept, submitted: submitted,
            expires: Int64(clamping: Int128(submitted) + lifetime.attoseconds / 1_000_000_000_000_000))
        let deadline = now().advanced(by: max(.zero, lifetime))
        queued.bootDeadline = BootDeadline(deadline, boot: boot)
        queued.tag = submission.tag
        queued.secretFields = Set((secret + hostFields).map(\.name.rawName)).sorted()
        queued.idempotencyKey = OfflineKey.text(submission.key, key, of: request)
        queued.fields[.idempotencyKey] = nil
        (queued.contentType, queued.compression) = (body.contentType, body.compression)
        // Counted from here on, so that concurrent submissions do not exceed the limit.
        requestCount += 1
        var byteCount: UInt64 = 0
        do {
            queued.body = try await storeBody(body, id, submission.filePolicy, &byteCount)
            try Task.checkCancellation()
            let record = try await store.record(of: queued)
            // The bytes of a body in the record were counted when the body was stored.
            let counted = if case .inline(let bytes) = queued.body { bytes.count } else { 0 }
            try claim(UInt64(max(0, record.count - counted)), &byteCount)
            try await store.add(id, record)
        } catch {
            await store.removeBody(id)
            requestCount -= 1
            storedByteCount -= byteCount
            throw error
        }
        var summary = OfflineSummary(queued, recordByteCount: 0)
        summary.storedByteCount = byteCount
        held[id] = Held(
            summary: summary, secretFields: secret.isEmpty ? nil : secret,
            hostFields: hostFields.isEmpty ? nil : hostFields, hostAuthentication: host.authentication,
            urlCredentials: host.urlCredentials, firstOptions: firstOptions, watch: watch)
        if watch != nil { watched[queued.lane, default: []].insert(id) }
        log.add(.submitted(summary.ticket))
        isDrained.update { false }
        apply(machine.add(id, lane: queued.lane, expires: deadline, now: now()))
        // No attempt starts now if the queue does not send, or while the lane waits after a failed attempt.
        if isClosing || !options.sendsRequests || machine.wait(of: queued.lane) != nil { resumeAsQueued(id) }
        return summary.ticket
    }

    private static func check(
        _ request: HTTPRequest, _ url: HTTPURL, _ submission: OfflineSubmission, _ option: IdempotencyKey?
    ) throws(HTTPError) {
        func makeError(_ message: String) -> HTTPError {
            HTTPError(.invalidRequest, phase: .preparing, message: message, method: request.method, url: url)
        }
        if request.method == .connect || request.path == "*" {
            throw makeError("CONNECT and “OPTIONS *” requests cannot be queued")
        }
        if (submission.lane?.utf8.count ?? 0) > OfflineSubmission.laneByteLimit {
            throw makeError("the lane's name is longer than \(OfflineSubmission.laneByteLimit) bytes")
        }
        let key: String? =
            switch submission.key {
            case .value(let text): text
            case .automatic: option?.text
            case .none: nil
            }
        if let key, key.isEmpty || !key.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) {
            throw makeError("an Idempotency-Key must be printable ASCII, and not empty (RFC 8941 §3.3.3)")
        }
        if (submission.tag?.utf8.count ?? 0) > OfflineSubmission.tagByteLimit {
            throw makeError("the tag is longer than \(OfflineSubmission.tagByteLimit) bytes")
        }
        guard request.headerFields.count <= 1000, request.headerFields.allSatisfy({ $0.value.utf8.count <= 1 << 16 })
        else { throw makeError("the request has more than 1000 header fields, or a field value longer than 64 KiB") }
    }

    private func full(_ words: String) -> HTTPError {
        HTTPError(.limitExceeded, phase: .preparing, message: "the offline queue is full: \(words)")
    }

    private func storeBody(
        _ body: HTTPBody, _ id: OfflineID, _ policy: OfflineSubmission.FilePolicy, _ byteCount: inout UInt64
    ) async throws -> QueuedBody {
        if let path = body.file, policy == .reference {
            let reader = QueuedBodyVerifier(files: store.files)
            return try await BlockingThreadPool.shared.run { () throws(HTTPError) in
                let resolved = try HTTPError.storing { () throws(StorageError) in
                    try WorkingDirectory.resolved(path.string)
                }
                return .file(resolved, try reader.mark(of: resolved).mark)
            }
        }
        if case .success(let bytes)? = body.bytesInMemory,
            bytes.count <= min(options.limits.inlineBodyLimit.bytes, 8 << 20)
        {
            guard body.isPresent else { return .none }
            try claim(UInt64(bytes.count), &byteCount)
            return .inline(bytes)
        }
        let (source, length) = try await body.open()
        if let length, length > 0 { try checkRoom(for: length) }
        let writer = try await store.createBody(id)
        var written: UInt64 = 0
        while let piece = try await source.next() {
            try Task.checkCancellation()
            written += UInt64(piece.count)
            if let length, written > length { break }
            try claim(UInt64(piece.count), &byteCount)
            try await writer.write(piece)
        }
        if let length, length != written {
            throw HTTPError(
                .bodyLengthMismatch, phase: .preparing,
                message: "the given length of the body is \(length) bytes, but its source returned \(written)")
        }
        return .own(try await writer.finish())
    }

    private func checkRoom(for more: UInt64) throws(HTTPError) {
        let limit = UInt64(max(1, options.limits.bytes.bytes))
        let (sum, overflows) = storedByteCount.addingReportingOverflow(more)
        guard !overflows, sum <= limit else {
            throw full("\(storedByteCount) of \(limit) bytes are used, and \(more) more are needed")
        }
    }

    private func claim(_ more: UInt64, _ byteCount: inout UInt64) throws(HTTPError) {
        try checkRoom(for: more)
        storedByteCount += more
        byteCount += more
    }
}
