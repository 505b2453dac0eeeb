import Synchronization

extension StreamedResponse {
    /// The longest body that is expected to come with its head, and first read without a reader, in bytes.
    private static let smallByteCount: UInt64 = 64 * 1024

    /// Collects the body: what has come of a short one first, the rest by a reader.
    ///
    /// It is not inlined, so that calls which wait for their response hold no variable of it.
    /// - Parameter outcome: Receives the head.
    @inline(never) func collected(_ control: TransferControl, head outcome: Outcome<HTTPResponse>?) async throws
        -> HTTPExchange
    {
        control.enter(.receiving)
        outcome?.replace(with: HeadConversion.response(head))
        for validator in call.validators { guard try await validator.admitHead(of: self, control) else { break } }
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
                // Checked before each piece: the bytes that were taken and those that follow are separated only here.
                if control.isExposed, let destination = control.pendingDestination {
                    _ = control.claimDestination()
                    do {
                        try await write(reader, after: body, to: destination)
                        return exchange(with: [])
                    } catch let error as HTTPError
                        where [.fileFailed, .fileExists].contains(error.code) && !reader.hasLostBytes
                    {
                        // The file could not be created: the body continues in memory, and another file may be tried.
                        control.refuseDestination(error)
                        continue
                    }
                }
                guard let piece = try await reader.next() else { break }
                reader.gather(piece, after: &body)
            }
        } catch var error as HTTPError {
            // The part that came of a body that was cut off stays available (RFC 9112 §8).
            if body.isEmpty, case .stored(let stored) = channel { body = stored.collected }
            error.exchange = exchange(with: body)
            throw error
        }
        return exchange(with: body, isCollected: true)
    }

    /// The body, if it is short and all of it is there without waiting; otherwise the part that is there.
    /// - Parameter limit: The longest body that is taken, in bytes.
    /// - Returns: The bytes, and whether they are the whole body; `nil` if nothing was tried.
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

    /// Ends an exchange that failed while the body was read.
    fileprivate func failure(_ error: ExchangeError, of exchange: Exchange) -> any Error {
        exchange.finish()
        return call.failure(error, attempts: attempts, status: head.status)
    }
}

/// The body of a response as it is read: from the connection, through the decoder, up to the limit.
///
/// One task reads at a time. Bytes are received straight into the array that is handed out. Nothing is read ahead, so that
/// a slow consumer slows the sender down by the TCP window.
package final class BodyReader: Sendable {
    private struct State {
        var decoder: ContentDecoder?
        /// Bytes that were received and not decoded.
        var encoded: [UInt8] = []
        var encodedOffset = 0
        var input = Input.open
        var pieceByteCount = 16 * 1024
        var deliveredByteCount: UInt64 = 0
        /// The end of waits for more, if that is sooner than the timeouts have it.
        var patience: MonotonicTime?
        /// The maximum number of bytes that are handed out; `nil` for no limit.
        var byteLimit: Int?
        /// The bytes that were handed out, if they are remembered.
        var memory: BodyReplayBuffer?
        /// Whether bytes of the body are lost, so that no file of it can be complete.
        var hasLostBytes = false
        /// Whether the end of the body was handed out.
        var isAtEnd = false
    }

    /// The input of a decoder.
    private enum Input {
        case open
        /// All of it was received.
        case ended
        /// All of it was decoded.
        case decoded
    }

    let answer: StreamedResponse
    let control: TransferControl
    private let lease: BodyLease?
    /// The announced number of bytes, if no coding is decoded.
    let expectedByteCount: UInt64?
    /// Guards the decoder and its input: the task that reads.
    private let state: Mutex<State>

    var call: Call { answer.call }
    var channel: ResponseBodySource { answer.channel }

    /// A reader of the body of a response.
    /// - Parameters:
    ///   - received: The number of bytes that were received before, and are not handed out here.
    ///   - lease: The hold of an opened response on its call, which the reader ends when it is released.
    package init(
        _ answer: StreamedResponse, control: TransferControl, byteLimit: Int?, received: Int = 0,
        lease: BodyLease? = nil
    ) {
        self.answer = answer
        self.lease = lease
        self.control = control
        expectedByteCount = answer.codings.isEmpty ? answer.expectedContentLength : nil
        state = Mutex(State(deliveredByteCount: UInt64(received), byteLimit: byteLimit))
        if !answer.codings.isEmpty {
            let limits = answer.call.settings.configuration.decompressionLimits
            state.withLock { $0.decoder = ContentDecoder(codings: answer.codings, limits: limits) }
        }
    }

    deinit { lease?.end(.success(())) }

    /// The next bytes; `nil` at the end.
    /// - Throws: ``HTTPError``, or `CancellationError`.
    package func next() async throws -> [UInt8]? {
        let piece = if let lease { try await lease.read { try await read() } } else { try await read() }
        if piece == nil { state.withLock { $0.isAtEnd = true } }
        return piece
    }

    /// Begins a pass over the body, which continues where the one before stopped.
    /// - Throws: An ``HTTPError`` with the code `.bodyAlreadyRead` if that was after bytes of the body, at its end.
    func beginPass() throws(HTTPError) {
        guard state.withLock({ $0.isAtEnd && $0.deliveredByteCount > 0 }) else { return }
        throw bodyError(
            .bodyAlreadyRead,
            "the body was read to its end before, and can be read once; keep the bytes of the first pass, such as those of collect()"
        )
    }

    private func read() async throws -> [UInt8]? {
        var isFruitless = false
        while true {
            let piece: [UInt8]?
            do throws(ContentDecodingError) { piece = try decoded() } catch { throw await refusal(error) }
            if let piece { return piece.isEmpty ? nil : try await deliver(piece) }
            // The decoder needs more, or there is none.
            guard let received = try await receive() else {
                let isPlain = state.withLock { state in
                    state.input = .ended
                    return state.decoder == nil
                }
                if isPlain { return nil }
                continue
            }
            // Input may decode to nothing for ever; other tasks run in between.
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

    /// Counts bytes that are handed out, up to the limit.
    /// - Parameter piece: The bytes; `nil` if they cannot be remembered.
    private func delivered(_ count: Int, _ piece: [UInt8]? = nil) throws {
        let (total, limit) = state.withLock { state in
            state.deliveredByteCount += UInt64(count)
            if let piece { state.memory?.add(piece) } else { state.memory = nil }
            return (state.deliveredByteCount, state.byteLimit)
        }
        if let limit, total > UInt64(limit) { throw tooLarge(limit) }
    }

    /// Decodes received bytes; empty at the end, `nil` if more are needed.
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
                bytes = try await body.next(for: call, control: control, patience: state.withLock(\.patience))
            case .made(let body):
                bytes = try await body.next()
                // Bytes of the network were counted when they were received.
                if body.base != nil { return bytes }
            }
            if let bytes { count(bytes.count) }
            return bytes
        } catch {
            loseBytes()
            throw error
        }
    }

    private func receive(from exchange: Exchange) async throws -> [UInt8]? {
        // A small body gets an array of its size: the array that is handed out may be kept.
        let size = max(1, min(state.withLock(\.pieceByteCount), exchange.payloadByteCountBound))
        while true {
            do throws(ExchangeError) {
                let (allowed, isHeldBack) = try await allowance(of: size, from: exchange)
                let received = try attempt(allowed, exchange)
                if isHeldBack { exchange.giveBack(allowed - (received?.count ?? 0)) }
                if let bytes = received {
                    if bytes.isEmpty { return nil }
                    count(bytes.count)
                    state.withLock { state in
                        if bytes.count == state.pieceByteCount, state.pieceByteCount < 256 * 1024 {
                            state.pieceByteCount *= 4
                        }
                    }
                    return bytes
                }
                if let patience = state.withLock(\.patience) {
                    try await exchange.wait(until: patience, .idle)
                } else {
                    try await exchange.waitForBody()
                }
            } catch { throw answer.failure(error, of: exchange) }
        }
    }

    /// Waits while the transfer is paused, and for its share of the bandwidth.
    /// - Returns: The number of bytes that may be read, and whether what is not read has to be given back.
    private func allowance(of size: Int, from exchange: Exchange) async throws(ExchangeError) -> (Int, isHeldBack: Bool)
    {
        while true {
            try await exchange.waitWhilePaused()
            guard exchange.isHeldBack(.down) else { return (size, false) }
            let allowed = try await exchange.allowance(of: size)
            guard exchange.isPaused else { return (allowed, true) }
            exchange.giveBack(allowed)
        }
    }

    /// Reads once without waiting; empty at the end, `nil` if it would block.
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

    private func count(_ byteCount: Int) { control.bodyReceived(byteCount) }

    /// The exchange that can read straight into a block; `nil` if bytes have to be decoded, or come from elsewhere.
    var plainExchange: Exchange? {
        guard lease == nil, !isCoded, case .exchange(let exchange) = channel else { return nil }
        return exchange
    }

    private var isCoded: Bool { state.withLock { $0.decoder != nil } }

    /// Receives into a block until it is full, or until it holds something and nothing more has come.
    ///
    /// - Parameters:
    ///   - exchange: The ``plainExchange``.
    ///   - mayStop: Called when nothing more has come; returns whether the block is wanted now.
    ///   - untilWanted: Waits until it is. More may come meanwhile, and what came is not held back for it.
    /// - Returns: Whether there may be more.
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
                if isHeldBack { exchange.giveBack(allowed - (block.count - before)) }
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
                self.count(count)
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

    /// Notes that all of the body is wanted and no part of it sooner, unless each part is reported.
    func expectWhole() {
        guard !isCoded, call.observer == nil, !control.isExposed, case .stored(let body) = channel else { return }
        body.collect()
    }

    /// Appends a piece to the part of the body that came before.
    func gather(_ piece: [UInt8], after body: inout [UInt8]) {
        guard !body.isEmpty else {
            body = piece
            return
        }
        // Room for all of the body once some of it has come, but at most for sixteen times that: a length is easily announced.
        if body.capacity < body.count + piece.count, let length = expectedByteCount {
            body.reserveCapacity(Int(min(length, UInt64(body.count) * 16)))
        }
        body += piece
    }

    /// The beginning of a body whose rest is not wanted: as much as comes in a while, up to a limit.
    func beginning(upTo limit: Int, within patience: Duration) async -> [UInt8] {
        let end = min(MonotonicTime.now().advanced(by: patience), call.totalDeadline)
        // The bytes are limited here: the caller's limit for a body does not apply to one that is rejected.
        state.withLock { ($0.patience, $0.byteLimit) = (end, nil) }
        var beginning: [UInt8] = []
        do {
            while beginning.count < limit, MonotonicTime.now() < end, let piece = try await next() {
                beginning += piece.prefix(limit - beginning.count)
            }
        } catch {
            // The part before the failure is kept.
        }
        return beginning
    }

    // MARK: Becoming a file

    /// The maximum number of bytes that are handed out; `nil` for no limit.
    var byteLimit: Int? {
        get { state.withLock { $0.byteLimit } }
        set { state.withLock { $0.byteLimit = newValue } }
    }

    /// Remembers the bytes that are handed out from now on.
    func remember(upTo limit: Int) {
        state.withLock { state in
            guard state.memory == nil else { return }
            state.memory = BodyReplayBuffer(limit: limit, bytes: state.deliveredByteCount == 0 ? [] : nil)
        }
    }

    /// The bytes that were handed out so far; `nil` if a part of them is not known.
    var remembered: [UInt8]? { state.withLock { $0.deliveredByteCount == 0 ? [] : $0.memory?.bytes } }

    /// Notes that the rest of the body goes to a file, from which it cannot be read again.
    func beginWriting() { state.withLock { $0.memory = nil } }

    /// Whether bytes of the body are lost: reading them failed, or a file that they went to did.
    var hasLostBytes: Bool { state.withLock { $0.hasLostBytes } }

    /// Notes that bytes of the body are lost. The bytes after them are never the rest of the body.
    func loseBytes() { state.withLock { $0.hasLostBytes = true } }

    /// Whether the call was cancelled, possibly by its task.
    var isCancelled: Bool { control.isCancelled || Task.isCancelled }

    // MARK: Errors

    /// The error that the call threw because of an error of the body.
    func reason(of error: HTTPError) async -> any Error { await lease?.reason(of: error) ?? error }

    func tooLarge(_ limit: Int) -> HTTPError {
        refusal(.bodyTooLarge, "the body is larger than the limit of \(limit) bytes")
    }

    /// The error of a part of the body that is beyond its limit, after which the connection is not used again.
    package func limitExceeded(_ message: String) -> HTTPError { refusal(.limitExceeded, message) }

    /// The error of an invalid response, after which the connection is not used again.
    package func refusal(_ code: HTTPError.Code, _ message: String, underlying: (any Error)? = nil) -> HTTPError {
        channel.refuse()
        loseBytes()
        let error = bodyError(code, message, underlying: underlying)
        lease?.end(.failure(error))
        return error
    }

    private func bodyError(_ code: HTTPError.Code, _ message: String, underlying: (any Error)? = nil) -> HTTPError {
        HTTPError(
            code, phase: .receivingBody, message: message, wasSent: true, method: call.method, url: call.url,
            status: answer.head.status, attempts: answer.attempts, underlying: underlying)
    }

    /// The error of a body that cannot be decoded. A stored body is removed: the next reader would fail too.
    private func refusal(_ error: ContentDecodingError) async -> HTTPError {
        if error.isOfBody, case .stored(let body) = channel { await body.withdraw() }
        let isTooLarge = if case .tooLarge = error { true } else { false }
        return refusal(isTooLarge ? .bodyTooLarge : .contentDecodingFailed, error.description, underlying: error)
    }
}

/// The bytes that were handed out of a body, up to a limit.
private struct BodyReplayBuffer: Sendable {
    let limit: Int
    /// `nil` if a part of them is not known.
    var bytes: [UInt8]?

    mutating func add(_ piece: [UInt8]) {
        guard let count = bytes?.count else { return }
        if piece.count <= limit - count { bytes?.append(contentsOf: piece) } else { bytes = nil }
    }
}
