import Synchronization

extension StreamedResponse {
    /// The maximum size in bytes of a body that is read without a ``BodyReader`` if it has already arrived.
    private static let smallByteCount: UInt64 = 64 * 1024

    /// Collects the body: first the received part of a short body, then the rest with a reader.
    ///
    /// Not inlined, so that its variables take no memory in calls that wait for their response.
    /// - Parameter outcome: Receives the head.
    @inline(never) func collected(_ control: TransferControl, head outcome: Promise<HTTPResponse>?) async throws
        -> HTTPExchange
    {
        control.enter(.receiving)
        outcome?.replace(with: HeadConversion.response(head))
        for validator in call.validators { try await validator.admitHead(of: self, control) }
        let limit = (call.options.bodyLimit ?? call.settings.configuration.bufferedBodyLimit).bytes
        var body: [UInt8] = []
        do {
            let smallest = min(UInt64(limit), StreamedResponse.smallByteCount)
            if !control.isExposed, let received = try receivedBody(upTo: smallest) {
                body = received.bytes
                if !body.isEmpty, let observer = call.observer {
                    let bytes = body
                    try await observer.bodyReceived(bytes.count, from: channel) { bytes }
                }
                if received.isWhole { return exchange(with: body, isCollected: true) }
                control.bodyReceived(body.count)
            }
            let reader = BodyReader(self, control: control, byteLimit: limit, received: body.count)
            if let length = reader.expectedByteCount, length > UInt64(limit), control.destination == nil {
                throw reader.tooLarge(limit)
            }
            reader.expectWhole()
            while true {
                // Checked before each piece: here `body` has all delivered bytes, and the rest can go to a file.
                if control.isExposed, let destination = control.pendingDestination {
                    _ = control.claimDestination()
                    do {
                        try await write(reader, after: body, to: destination)
                        return exchange(with: [])
                    } catch let error as HTTPError
                        where [.fileFailed, .fileExists].contains(error.code) && !reader.hasLostBytes
                    {
                        // The file could not be created: the body continues in memory, and another file may be tried.
                        control.rejectDestination(error)
                        continue
                    }
                }
                guard let piece = try await reader.next() else { break }
                reader.gather(piece, after: &body)
            }
        } catch var error as HTTPError {
            // The received part of a truncated body stays available (RFC 9112 §8).
            if body.isEmpty, case .stored(let stored) = channel { body = stored.collected }
            error.exchange = exchange(with: body)
            throw error
        }
        return exchange(with: body, isCollected: true)
    }

    /// Returns the part of a short body that is available without waiting.
    /// - Parameter limit: The maximum size of the body, in bytes.
    /// - Returns: The bytes, and whether they are the whole body; `nil` if no read was attempted.
    /// - Throws: ``HTTPError``, or `CancellationError`.
    private func receivedBody(upTo limit: UInt64) throws -> (bytes: [UInt8], isWhole: Bool)? {
        guard codings.isEmpty, let length = expectedContentLength, length <= limit else { return nil }
        switch channel {
        case .made: return nil
        case .stored(let body): return body.takeWhole().map { ($0, true) }
        case .exchange(let exchange):
            guard !exchange.isHeldBack(.down) else { return nil }
            do throws(ExchangeError) {
                let bytes = try exchange.readBodyAtOnce(upTo: Int(length))
                return (bytes, exchange.isFinished)
            } catch { throw failure(error, of: exchange) }
        }
    }

    /// Ends an exchange that failed while the body was read, and returns the error to throw.
    fileprivate func failure(_ error: ExchangeError, of exchange: Exchange) -> any Error {
        exchange.finish()
        let failure = call.failure(error, attempts: attempts, status: head.status)
        guard var failure = failure as? HTTPError else { return failure }
        failure.connection = FailedConnection(deferredMetrics)
        return failure
    }
}

/// A reader of the body of a response: from the connection, through the decoder, up to the limit.
///
/// Only one task reads at a time. Bytes are received directly into the array that is delivered. Nothing is read ahead,
/// so that the TCP window makes the sender as slow as the consumer.
package final class BodyReader: Sendable {
    private struct State {
        var decoder: ContentDecoder?
        /// The bytes that were received and not decoded.
        var encoded: [UInt8] = []
        var encodedOffset = 0
        var input = Input.open
        var pieceByteCount = 16 * 1024
        var deliveredByteCount: UInt64 = 0
        /// The deadline of waits for more bytes, if it is earlier than those of the timeouts.
        var deadline: MonotonicTime?
        /// The maximum number of bytes to deliver; `nil` for no limit.
        var byteLimit: Int?
        /// The buffer of the delivered bytes; `nil` if they are not buffered.
        var memory: BodyReplayBuffer?
        /// Whether bytes of the body are lost, so that a file of it would be incomplete.
        var hasLostBytes = false
        /// Whether the end of the body was delivered.
        var isAtEnd = false
    }

    /// The input of a decoder.
    private enum Input {
        case open
        /// All input was received.
        case ended
        /// All input was decoded.
        case decoded
    }

    let answer: StreamedResponse
    let control: TransferControl
    private let lease: BodyLease?
    /// The number of bytes in `Content-Length`, if no coding is decoded.
    let expectedByteCount: UInt64?
    /// The lock on the decoder and its input. Only the reading task uses it.
    private let state: Mutex<State>

    var call: Call { answer.call }
    var channel: ResponseBodySource { answer.channel }

    /// Creates a reader of the body of a response.
    /// - Parameters:
    ///   - received: The number of bytes that were received before and are not delivered here.
    ///   - lease: The lease of an opened response on its call. The reader ends it when it is released.
    package init(
        _ answer: StreamedResponse, control: TransferControl, byteLimit: Int?, received: Int = 0,
        lease: BodyLease? = nil
    ) {
        (self.answer, self.lease, self.control) = (answer, lease, control)
        expectedByteCount = answer.codings.isEmpty ? answer.expectedContentLength : nil
        state = Mutex(State(deliveredByteCount: UInt64(received), byteLimit: byteLimit))
        if !answer.codings.isEmpty {
            let limits = answer.call.settings.configuration.decompressionLimits
            state.withLock { $0.decoder = ContentDecoder(codings: answer.codings, limits: limits) }
        }
    }

    deinit { lease?.end(.success(())) }

    /// Returns the next bytes; `nil` at the end.
    /// - Throws: ``HTTPError``, or `CancellationError`.
    package func next() async throws -> [UInt8]? {
        let piece = if let lease { try await lease.read { try await read() } } else { try await read() }
        if piece == nil { state.withLock { $0.isAtEnd = true } }
        return piece
    }

    /// Starts a pass over the body, which continues where the previous pass stopped.
    /// - Throws: An ``HTTPError`` with the code `.bodyAlreadyRead` if the previous pass read bytes and reached the end.
    func beginPass() throws(HTTPError) {
        guard state.withLock({ $0.isAtEnd && $0.deliveredByteCount > 0 }) else { return }
        throw bodyError(
            .bodyAlreadyRead,
            "the body was already read to its end, and can be read only once; store the bytes of the first pass, for example with collect()"
        )
    }

    private func read() async throws -> [UInt8]? {
        var isFruitless = false
        while true {
            let piece: [UInt8]?
            do throws(ContentDecodingError) { piece = try decoded() } catch { throw await rejection(error) }
            if let piece { return piece.isEmpty ? nil : try await deliver(piece) }
            // The decoder needs more input, or the body has no decoder.
            guard let received = try await receive() else {
                let isPlain = state.withLock { state in
                    state.input = .ended
                    return state.decoder == nil
                }
                if isPlain { return nil }
                continue
            }
            // Endless input may decode to nothing; other tasks must be able to run.
            if isFruitless { await Task.yield() }
            isFruitless = true
            let isPlain = state.withLock { state in
                guard state.decoder != nil else { return true }
                state.encoded = received
                state.encodedOffset = 0
                return false
            }
            if isPlain { return try await deliver(received) }
        }
    }

    private func deliver(_ piece: [UInt8]) async throws -> [UInt8] {
        try delivered(piece.count, piece)
        if let observer = call.observer { try await observer.bodyReceived(piece.count, from: channel) { piece } }
        return piece
    }

    /// Counts delivered bytes. Throws an error if they exceed the limit.
    /// - Parameter piece: The bytes to buffer; `nil` if they went directly into a block.
    private func delivered(_ count: Int, _ piece: [UInt8]? = nil) throws {
        let (total, limit) = state.withLock { state in
            state.deliveredByteCount += UInt64(count)
            if let piece { state.memory?.add(piece) } else { state.memory = nil }
            return (state.deliveredByteCount, state.byteLimit)
        }
        if let limit, total > UInt64(limit) { throw tooLarge(limit) }
    }

    /// Decodes received bytes. Returns an empty array at the end, `nil` if more input is needed.
    private func decoded() throws(ContentDecodingError) -> [UInt8]? {
        try state.withLock { state throws(ContentDecodingError) in
            guard let decoder = state.decoder else { return nil }
            if state.input == .decoded { return [] }
            let input = state.encoded[state.encodedOffset...]
            if state.input == .open && state.deliveredByteCount == 0 && state.encoded.isEmpty { return nil }
            let piece = try decoder.decode(input, endOfInput: state.input == .ended, upTo: 64 * 1024)
            state.encodedOffset += piece.consumed
            if piece.isFinished { state.input = .decoded }
            if !piece.bytes.isEmpty { return piece.bytes }
            return piece.isFinished ? [] : nil
        }
    }

    // MARK: Receiving

    private func receive() async throws -> [UInt8]? {
        do {
            let bytes: [UInt8]?
            switch channel {
            case .exchange(let exchange): return try await receive(from: exchange)
            case .stored(let body):
                bytes = try await body.next(for: call, control: control, deadline: state.withLock(\.deadline))
            case .made(let body):
                bytes = try await body.next(until: state.withLock(\.deadline))
                if body.isCounted { return bytes }
            }
            if let bytes { control.bodyReceived(bytes.count) }
            return bytes
        } catch {
            loseBytes()
            throw error
        }
    }

    private func receive(from exchange: Exchange) async throws -> [UInt8]? {
        // The array for a small body has no spare capacity, because the caller may store the array.
        let size = max(1, min(state.withLock(\.pieceByteCount), exchange.payloadByteCountBound))
        while true {
            do throws(ExchangeError) {
                let (allowed, isHeldBack) = try await allowance(of: size, from: exchange)
                let received = try attempt(allowed, exchange)
                if isHeldBack { exchange.refund(allowed - (received?.count ?? 0)) }
                if let bytes = received {
                    if bytes.isEmpty { return nil }
                    control.bodyReceived(bytes.count)
                    state.withLock { state in
                        if bytes.count == state.pieceByteCount, state.pieceByteCount < 256 * 1024 {
                            state.pieceByteCount *= 4
                        }
                    }
                    return bytes
                }
                if let deadline = state.withLock(\.deadline) {
                    try await exchange.wait(until: deadline, .idle)
                } else {
                    try await exchange.waitForBody()
                }
            } catch { throw answer.failure(error, of: exchange) }
        }
    }

    /// Waits while the transfer is paused, and for its share of the bandwidth.
    /// - Returns: The number of bytes that may be read, and whether the unused part has to be returned.
    private func allowance(of size: Int, from exchange: Exchange) async throws(ExchangeError) -> (Int, isHeldBack: Bool)
    {
        while true {
            try await exchange.waitWhilePaused()
            guard exchange.isHeldBack(.down) else { return (size, false) }
            let allowed = try await exchange.allowance(of: size)
            guard exchange.isPaused else { return (allowed, true) }
            exchange.refund(allowed)
        }
    }

    /// Reads once without waiting. Returns an empty array at the end, `nil` if the read would block.
    private func attempt(_ size: Int, _ exchange: Exchange) throws(ExchangeError) -> [UInt8]? {
        var outcome = Result<Exchange.BodyAttempt, ExchangeError>.success(.wouldBlock)
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
            do throws(ExchangeError) {
                let attempt = unsafe try exchange.tryReadBody(into: UnsafeMutableRawBufferPointer(buffer))
                if case .bytes(let received) = attempt { count = received }
                outcome = .success(attempt)
            } catch { outcome = .failure(error) }
        }
        switch try outcome.get() {
        case .bytes: return bytes
        case .end: return []
        case .wouldBlock: return nil
        }
    }

    /// The exchange that can read directly into a block; `nil` if bytes must be decoded or have another source.
    var plainExchange: Exchange? {
        guard lease == nil, !isCoded, case .exchange(let exchange) = channel else { return nil }
        return exchange
    }

    private var isCoded: Bool { state.withLock { $0.decoder != nil } }

    /// Receives into a block until it is full, or until it holds bytes and no more are available.
    ///
    /// - Parameters:
    ///   - exchange: The ``plainExchange``.
    ///   - mayStop: Called when no more bytes are available; returns whether the block can be written now.
    ///   - untilWanted: Waits until the block can be written. More bytes may arrive in that time.
    /// - Returns: Whether more bytes may follow.
    /// - Throws: ``HTTPError``, or `CancellationError`.
    func fill(
        _ block: FileBlock, from exchange: Exchange, whereNothingCame mayStop: () -> Bool, untilWanted: () async -> Void
    ) async throws -> Bool {
        while !block.isFull {
            let attempt: Exchange.BodyAttempt
            do throws(ExchangeError) {
                let (allowed, isHeldBack) = try await allowance(of: block.freeByteCount, from: exchange)
                let before = block.count
                attempt = unsafe try block.fill { free throws(ExchangeError) in
                    let free = unsafe UnsafeMutableRawBufferPointer(rebasing: free.prefix(allowed))
                    let attempt = unsafe try exchange.tryReadBody(into: free)
                    if case .bytes(let count) = attempt { return (count, attempt) }
                    return (0, attempt)
                }
                if isHeldBack { exchange.refund(allowed - (block.count - before)) }
                if case .wouldBlock = attempt {
                    if block.count == 0 {
                        try await exchange.waitForBody()
                    } else if mayStop() {
                        return true
                    } else {
                        await untilWanted()
                    }
                }
            } catch {
                loseBytes()
                throw answer.failure(error, of: exchange)
            }
            switch attempt {
            case .bytes(let count):
                control.bodyReceived(count)
                try delivered(count)
                if let observer = call.observer {
                    try await observer.bodyReceived(count, from: channel) { block.last(count) }
                }
            case .end:
                state.withLock { $0.isAtEnd = true }
                return false
            case .wouldBlock: continue
            }
        }
        return true
    }

    /// Lets a stored body be delivered in one piece, because the caller collects it. No effect if pieces are reported.
    func expectWhole() {
        guard !isCoded, call.observer == nil, !control.isExposed, case .stored(let body) = channel else { return }
        body.collect()
    }

    /// Appends a piece to the preceding part of the body.
    func gather(_ piece: [UInt8], after body: inout [UInt8]) {
        guard !body.isEmpty else {
            body = piece
            return
        }
        // At most sixteen times the received size is reserved, because the server's length may be wrong.
        if body.capacity < body.count + piece.count, let length = expectedByteCount {
            body.reserveCapacity(Int(min(length, UInt64(body.count) * 16)))
        }
        body += piece
    }

    /// Limits each later wait for bytes.
    func end(by deadline: MonotonicTime) { state.withLock { $0.deadline = deadline } }

    /// Returns the beginning of a body whose rest is not needed: at most `limit` bytes, as far as they arrive in time.
    func beginning(upTo limit: Int, within timeout: Duration) async -> [UInt8] {
        let end = min(MonotonicTime.now().advanced(by: timeout), call.totalDeadline)
        // `limit` replaces the caller's limit, which does not apply to a rejected body.
        state.withLock { ($0.deadline, $0.byteLimit) = (end, nil) }
        var beginning: [UInt8] = []
        do {
            while beginning.count < limit, MonotonicTime.now() < end, let piece = try await next() {
                beginning += piece.prefix(limit - beginning.count)
            }
        } catch {
            // The part before the failure is returned.
        }
        return beginning
    }

    // MARK: Becoming a file

    /// The maximum number of bytes to deliver; `nil` for no limit.
    var byteLimit: Int? {
        get { state.withLock { $0.byteLimit } }
        set { state.withLock { $0.byteLimit = newValue } }
    }

    /// Buffers the bytes that are delivered from now on.
    func remember(upTo limit: Int) {
        state.withLock { state in
            guard state.memory == nil else { return }
            state.memory = BodyReplayBuffer(limit: limit, bytes: state.deliveredByteCount == 0 ? [] : nil)
        }
    }

    /// The delivered bytes; `nil` if a part of them was not buffered.
    var remembered: [UInt8]? { state.withLock { $0.deliveredByteCount == 0 ? [] : $0.memory?.bytes } }

    /// Discards the buffer, because the rest of the body is written to a file.
    func beginWriting() { state.withLock { $0.memory = nil } }

    /// Whether bytes of the body are lost, because reading them or writing them to a file failed.
    var hasLostBytes: Bool { state.withLock { $0.hasLostBytes } }

    /// Records that bytes of the body are lost. The bytes after them are never returned as the rest of the body.
    func loseBytes() { state.withLock { $0.hasLostBytes = true } }

    /// Whether the call, or the current task, was cancelled.
    var isCancelled: Bool { control.isCancelled || Task.isCancelled }

    // MARK: Errors

    /// Returns the error that the call ended with because of an error of the body.
    func reason(of error: HTTPError) async -> any Error { await lease?.reason(of: error) ?? error }

    func tooLarge(_ limit: Int) -> HTTPError {
        rejection(.bodyTooLarge, "the body is larger than the limit of \(limit) bytes")
    }

    /// Rejects the body, so that its connection is not reused, and returns the error.
    package func rejection(_ code: HTTPError.Code, _ message: String, underlying: (any Error)? = nil) -> HTTPError {
        channel.reject()
        loseBytes()
        let error = bodyError(code, message, underlying: underlying)
        lease?.end(.failure(error))
        return error
    }

    private func bodyError(_ code: HTTPError.Code, _ message: String, underlying: (any Error)? = nil) -> HTTPError {
        var error = HTTPError(
            code, phase: .receivingBody, message: message, wasSent: true, method: call.method, url: call.url,
            status: answer.head.status, attempts: answer.attempts, underlying: underlying)
        error.connection = FailedConnection(answer.deferredMetrics)
        return error
    }

    /// Returns the error of a body that cannot be decoded. A stored body is removed: the next reader would fail too.
    private func rejection(_ error: ContentDecodingError) async -> HTTPError {
        if error.appliesToBody, case .stored(let body) = channel { await body.withdraw() }
        let isTooLarge = if case .tooLarge = error { true } else { false }
        return rejection(isTooLarge ? .bodyTooLarge : .contentDecodingFailed, error.description, underlying: error)
    }
}

/// A buffer of the delivered bytes of a body, up to a limit.
private struct BodyReplayBuffer: Sendable {
    let limit: Int
    /// The bytes; `nil` if a part of them was not buffered.
    var bytes: [UInt8]?

    mutating func add(_ piece: [UInt8]) {
        guard let count = bytes?.count else { return }
        if piece.count <= limit - count { bytes?.append(contentsOf: piece) } else { bytes = nil }
    }
}
