import MartletAuthentication
import MartletCore
import MartletDigests
import MartletDownloads

/// One run of an upload: sends the requests of its ``UploadMachine``, and records the checkpoints.
actor UploadRun {
    /// The inputs of a run.
    struct Order: Sendable {
        let item: UploadItem
        let session: HTTPSession
        let status: UploadStatus
        /// Adds fields that are not stored to each request.
        let prepare: (@Sendable (inout HTTPHeaders, HTTPURL) async throws -> Void)?
        /// Receives each checkpoint with its number, in any order. Returns when it, or a later one, is on disk, if the
        /// last argument is `true`.
        let record: @Sendable (UploadMachine.Checkpoint, UInt64, Bool) async throws -> Void
    }

    /// The interval at which acknowledged offsets are written to disk. A new process asks the server for the offset.
    private static let recordInterval = Duration.seconds(1)
    private let order: Order
    private var machine: UploadMachine
    private var recorded: UploadMachine.Checkpoint
    /// Whether an urgent checkpoint could not be written.
    private var isOverdue = false
    private var recordNumber: UInt64 = 0
    private var nextRecord = MonotonicTime.now()

    init(_ order: Order) {
        self.order = order
        machine = UploadMachine(order.item.plan, from: order.item.checkpoint)
        recorded = order.item.checkpoint
    }

    private var item: UploadItem { order.item }

    /// Runs until the server has accepted the file. Cancelling the task throws `CancellationError`.
    /// - Throws: An `HTTPError`; `CancellationError`; errors of `record`.
    func run() async throws -> UploadResult {
        var step = machine.start()
        var exchange: HTTPExchange?
        while true {
            try await record()
            order.status.change { progress in
                progress.totalByteCount = item.file.byteCount
                progress.acknowledgedByteCount = machine.checkpoint.offset
                progress.completedByteCount = machine.checkpoint.offset
            }
            switch step {
            case .fail(var error):
                error.exchange = error.exchange ?? exchange
                throw error.about(item.options.method, item.url, status: exchange?.statusCode)
            case .finish(let isResponseLost):
                guard let exchange else { throw CancellationError() }
                return UploadResult(
                    statusCode: exchange.statusCode, headers: exchange.headers, body: exchange.body,
                    byteCount: item.file.byteCount, uploadURL: machine.checkpoint.url, isResponseLost: isResponseLost)
            case .send(let request, let delay):
                if delay > .zero { try await Task.sleep(for: delay) }
                do {
                    let received = try await send(request)
                    exchange = received
                    step = machine.received(UploadReply(received), random: .random(in: 0...1))
                } catch let error as HTTPError {
                    try Task.checkCancellation()
                    exchange = nil
                    step = machine.failed(error, random: .random(in: 0...1))
                }
            }
        }
    }

    /// Writes the checkpoint if a later process could otherwise do harm, or not resume.
    private func record() async throws {
        let checkpoint = machine.checkpoint
        var important = checkpoint
        important.offset = recorded.offset
        let isUrgent = isOverdue || important != recorded || checkpoint != recorded && MonotonicTime.now() >= nextRecord
        if isUrgent {
            (recorded, isOverdue) = (checkpoint, false)
            nextRecord = MonotonicTime.now().advanced(by: UploadRun.recordInterval)
        }
        recordNumber += 1
        do { try await order.record(checkpoint, recordNumber, isUrgent) } catch {
            if isUrgent { isOverdue = true }
            throw error
        }
    }

    // MARK: Requests

    private func send(_ request: UploadMachine.Request) async throws -> HTTPExchange {
        let checkpoint = machine.checkpoint
        let url = checkpoint.url ?? item.url
        var (fields, options) = try await head(to: url)
        if checkpoint.url != nil || request == .discover {
            for name in UploadFields.ofContent { fields[name] = nil }
        }
        let method = UploadFields.add(to: &fields, for: request, of: item, checkpoint)
        let body: HTTPBody
        switch request {
        case .discover, .query: return try await exchange(method, url, fields, .none, options)
        case .create: body = .bytes([], contentType: nil)
        case .append(let range, _): body = self.body(range)
        case .whole: body = self.body(0..<item.file.byteCount)
        }
        try await checkFile()
        machine.sending()
        if case .append(let range, isLast: true) = request, range.isEmpty { machine.lastBytesRead() }
        try await record()
        return try await exchange(method, url, fields, body, options)
    }

    /// Deletes the upload on the server. Failures are ignored: servers discard abandoned uploads after some time.
    func discard() async {
        guard let url = item.checkpoint.url, var (fields, options) = try? await head(to: url) else { return }
        for name in UploadFields.ofContent { fields[name] = nil }
        if item.checkpoint.protocol == .tus { fields[UploadFields.tusResumable] = "1.0.0" }
        options.timeouts.total = .seconds(10)
        _ = try? await exchange(.delete, url, fields, .none, options)
    }

    /// Returns the caller's fields of a request, and its options. Another origin receives no credentials.
    private func head(to url: HTTPURL) async throws -> (HTTPFields, RequestOptions) {
        var redirects = order.session.configuration.redirects
        // After a 301 or 302 the method is preserved: a GET would upload nothing.
        redirects.methodPreservingStatuses.formUnion([301, 302])
        redirects.secretFields.formUnion(item.options.secretFields)
        var options = RequestOptions()
        // The total timeout of the session is meant for a request, not for a file.
        options.timeouts.total = nil
        options.retry = .never
        options.validator = .anything
        // The head decides. A rejected body would hide it.
        options.digestVerification = .off
        options.redirects = redirects
        options.bandwidth.upload = item.options.bandwidth
        options.bodyLimit = ByteCount(UploadItemCodec.bodyLimit)
        var headers = item.options.headers
        // With HSTS the request is sent to https, and the upload URL is there.
        let own = [item.url.origin, order.session.settings.effective(item.url, options).origin]
        if own.contains(url.origin) || redirects.sendsCredentialsCrossOrigin {
            headers[.authorization] = headers[.authorization] ?? UploadFields.authorization(of: item.url)
        } else {
            for name in redirects.fieldsOfOrigin { headers[name] = nil }
            options.withholdCredentials(of: order.session, redirects)
        }
        if let prepare = order.prepare {
            let prepared = try await headers.prepared(for: url.withoutUserInfo, by: prepare)
            // A redirect does not send the secrets of the closure to another origin.
            redirects.secretFields.formUnion(
                prepared.fields.secretNames(addedTo: headers.fields).subtracting(UploadFields.ofContent))
            options.redirects = redirects
            headers = prepared
        }
        return (try headers.checked(url), options)
    }

    private func exchange(
        _ method: HTTPRequest.Method, _ url: HTTPURL, _ fields: HTTPFields, _ body: HTTPBody, _ options: RequestOptions
    ) async throws -> HTTPExchange {
        var options = options
        // The first interim response, which has the upload URL, and the latest one.
        let interim = CurrentValue<[HTTPResponse]>([])
        options.onInterimResponse = { response in
            guard response.status.code == 104 else { return }
            interim.change { $0 = $0.prefix(1) + [response] }
        }
        async let following: Void = follow(interim, at: url)
        let result: Result<HTTPExchange, any Error>
        do {
            let session = order.session
            let target = HTTPRequest(method: method, url: url.withoutUserInfo, headers: fields)
            result = .success(try await session.send(target, body: body, options: options))
        } catch { result = .failure(error) }
        interim.finish()
        await following
        do { return try result.get() } catch let error as HTTPError {
            // The head decides, not a failure of the body, such as one that is larger than its limit.
            if error.phase == .receivingBody || error.code == .bodyTooLarge, let exchange = error.exchange {
                return exchange
            }
            // An error of this file is thrown by the source of the body.
            throw error.code == .bodySourceFailed ? error.underlying ?? error : error
        }
    }

    /// Passes interim responses to the machine until their end.
    private func follow(_ interim: CurrentValue<[HTTPResponse]>, at url: HTTPURL) async {
        var seen: UInt64 = 0
        while let (version, responses) = await interim.next(after: seen) {
            seen = version
            for response in responses where response.headerFields[UploadFields.interopVersion] == "8" {
                machine.interimReceived(
                    UploadReply(status: response.status.code, fields: response.headerFields, url: url))
            }
            let offset = machine.checkpoint.offset
            order.status.change { $0.acknowledgedByteCount = max($0.acknowledgedByteCount, offset) }
            // A failure is thrown when the next step is recorded.
            try? await record()
        }
    }

    // MARK: The file

    private func body(_ range: Range<UInt64>) -> HTTPBody {
        guard !range.isEmpty else { return .bytes([], contentType: nil) }
        let (path, status) = (item.path, order.status)
        return HTTPBody(
            .stream(
                length: range.upperBound - range.lowerBound,
                open: {
                    status.change { $0.completedByteCount = range.lowerBound }
                    return FileRangeSource(path: path, range: range) { [weak self] count, isLast in
                        if isLast { try await self?.lastBytesRead() }
                        status.change { progress in
                            progress.completedByteCount = progress.completedByteCount.clampedSum(UInt64(count))
                            progress.sentByteCount = progress.sentByteCount.clampedSum(UInt64(count))
                        }
                    }
                }), contentType: nil)
    }

    /// Handles the read of the last bytes of a request: records that the upload may be complete before they are sent.
    private func lastBytesRead() async throws {
        try await checkFile()
        machine.lastBytesRead()
        try await record()
    }

    private func checkFile() async throws {
        guard try await UploadFileIdentity.of(item.path) == item.file else { throw FileRangeSource.changed(item.path) }
    }
}

/// A source of a range of a file's bytes, which reads 256 KiB at a time on a worker.
actor FileRangeSource: RequestBodySource {
    private static let pieceByteCount: UInt64 = 256 << 10
    private let path: String
    private let end: UInt64
    private var offset: UInt64
    private var file: FileReader?
    /// Called before each piece is sent, with its length, and whether it is the last one.
    private let onRead: @Sendable (Int, Bool) async throws -> Void

    init(path: String, range: Range<UInt64>, onRead: @escaping @Sendable (Int, Bool) async throws -> Void) {
        (self.path, offset, end, self.onRead) = (path, range.lowerBound, range.upperBound, onRead)
    }

    func next() async throws -> [UInt8]? {
        guard offset < end else { return nil }
        let count = Int(min(end - offset, FileRangeSource.pieceByteCount))
        let bytes: [UInt8]
        do throws(StorageError) {
            let (opened, path, offset) = (file, path, offset)
            let read = try await BlockingThreadPool.shared.run { () throws(StorageError) in
                let file = if let opened { opened } else { try FileReader(path: path) }
                return (file, try file.read(at: offset, limit: count))
            }
            (file, bytes) = read
        } catch { throw HTTPError(storing: error) }
        guard bytes.count == count else { throw FileRangeSource.changed(path) }
        offset += UInt64(count)
        try await onRead(count, offset == end)
        return bytes
    }

    static func changed(_ path: String) -> HTTPError {
        HTTPError(
            .uploadFileChanged, phase: .sending,
            message: "\(path) changed after it was added; resume the upload to send the new file from its start")
    }
}

extension UploadReply {
    /// Reads a final response.
    init(_ exchange: HTTPExchange) {
        self.init(
            status: exchange.statusCode, fields: exchange.headers, url: exchange.url,
            retryAfter: exchange.rawHead.retryAfter?.delay)
    }
}
