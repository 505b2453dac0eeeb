import MartletCredentials
import MartletContent
import MartletConnections
import MartletTransport
import Synchronization

/// The body of a response as it is read: from the connection, through the decoder, under the limit.
///
/// One task reads at a time. Bytes are received straight into the array that is handed out; nothing is read ahead, so that
/// a slow consumer holds the sender by the TCP window.
package final class BodyReader: Sendable {
    private struct State {
        var decoder: ContentDecoder?
        /// Received and not yet decoded.
        var encoded: [UInt8] = []
        var encodedOffset = 0
        var isEnded = false
        var isDecoded = false
        var pieceByteCount = 16 * 1024
        var deliveredByteCount: UInt64 = 0
        /// When waiting for more is given up, where that is sooner than the clocks have it.
        var patience: MonotonicTime?
        /// The most bytes that are handed out; `nil` for any number.
        var byteLimit: Int?
        /// What was handed out, where it is remembered.
        var memory: BodyMemory?
        /// Whether bytes of the body are lost, so that no file of it can be whole.
        var hasLostBytes = false
    }

    /// The response whose body it is.
    let answer: Answer
    let channel: BodyChannel
    private let call: Call
    let control: TransferControl
    private let attempts: Int
    /// Guards the decoder and what feeds it: whoever reads.
    private let state: Mutex<State>

    /// A reader of an answer's body.
    /// - Parameter received: How much of the body was received before, and is not handed out here.
    package init(_ answer: Answer, control: TransferControl, byteLimit: Int?, received: Int = 0) {
        self.answer = answer
        channel = answer.channel
        call = answer.call
        self.control = control
        attempts = answer.attempts
        expectedByteCount = answer.codings.isEmpty ? answer.announcedByteCount : nil
        state = Mutex(State(deliveredByteCount: UInt64(received), byteLimit: byteLimit))
        if !answer.codings.isEmpty {
            let limits = call.settings.configuration.decompressionLimits
            state.withLock { $0.decoder = ContentDecoder(codings: answer.codings, limits: limits) }
        }
    }

    /// The next bytes; `nil` at the end.
    /// - Throws: ``HTTPError``, or `CancellationError`.
    package func next() async throws -> [UInt8]? {
        var isFruitless = false
        while true {
            switch decoded() {
            case .success(let piece?): return piece.isEmpty ? nil : try await deliver(piece)
            case .success(nil): break
            case .failure(let error): throw await refusal(error)
            }
            // The decoder wants more, or there is none.
            guard let received = try await receive() else {
                let isPlain = state.withLock { state in
                    state.isEnded = true
                    return state.decoder == nil
                }
                if isPlain { return nil }
                continue
            }
            // Bytes that come to nothing may go on for ever; between them others have their turn.
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
        try delivered(piece)
        if let observer = call.observer { try await observer.bodyReceived(piece.count, from: channel) }
        return piece
    }

    /// Counts what is handed out, up to the limit.
    private func delivered(_ count: Int) throws {
        let (total, limit) = state.withLock { state in
            state.deliveredByteCount += UInt64(count)
            state.memory = nil
            return (state.deliveredByteCount, state.byteLimit)
        }
        if let limit, total > UInt64(limit) { throw tooLarge(limit) }
    }

    private func delivered(_ piece: [UInt8]) throws {
        let (total, limit) = state.withLock { state in
            state.deliveredByteCount += UInt64(piece.count)
            state.memory?.add(piece)
            return (state.deliveredByteCount, state.byteLimit)
        }
        if let limit, total > UInt64(limit) { throw tooLarge(limit) }
    }

    /// Hands out any number of bytes from now on: they go to a file.
    /// - Returns: The limit until now.
    func liftLimit() -> Int? {
        state.withLock { state in
            defer { state.byteLimit = nil }
            return state.byteLimit
        }
    }

    /// Hands out so many bytes in all.
    func setLimit(_ limit: Int?) { state.withLock { $0.byteLimit = limit } }

    /// Remembers what is handed out from now on.
    func remember(upTo limit: Int) {
        state.withLock { state in
            guard state.memory == nil else { return }
            state.memory = BodyMemory(limit: limit, isWhole: state.deliveredByteCount == 0)
        }
    }

    /// What was handed out so far; `nil` where that is not all known.
    var remembered: [UInt8]? { state.withLock { $0.deliveredByteCount == 0 ? [] : $0.memory?.bytes } }

    /// Notes that the rest of the body goes to a file, from which it cannot be had again.
    func beginWriting() { state.withLock { $0.memory = nil } }

    /// Whether bytes of the body are lost: reading them failed, or a file that they went to did.
    var hasLostBytes: Bool { state.withLock { $0.hasLostBytes } }

    /// Notes that bytes of the body are lost. What follows them is never the rest of the body.
    func loseBytes() { state.withLock { $0.hasLostBytes = true } }

    func tooLarge(_ limit: Int) -> HTTPError {
        refusal(.bodyTooLarge, "the body is larger than the limit of \(limit) bytes")
    }

    /// The error of a part of the body that is beyond its limit, after which the connection is not used again.
    package func limitExceeded(_ message: String) -> HTTPError { refusal(.limitExceeded, message) }

    /// The error of a response that is not what it should be, after which the connection is not used again.
    package func refusal(_ code: HTTPError.Code, _ message: String) -> HTTPError {
        channel.refuse()
        loseBytes()
        return HTTPError(
            code, phase: .receivingBody, message: message, wasSent: true,
            origin: call.url.origin.description, attempts: attempts)
    }

    /// Decodes what has been received; empty at the end, `nil` when more is needed.
    private func decoded() -> Result<[UInt8]?, ContentDecodingError> {
        state.withLock { state in
            guard let decoder = state.decoder else { return .success(nil) }
            if state.isDecoded { return .success([]) }
            do throws(ContentDecodingError) {
                let input = state.encoded[state.encodedOffset...]
                if input.isEmpty && !state.isEnded && state.deliveredByteCount == 0 && state.encoded.isEmpty {
                    return .success(nil)
                }
                let piece = try decoder.decode(input, endOfInput: state.isEnded, upTo: 64 * 1024)
                state.encodedOffset += piece.consumed
                if piece.isFinished { state.isDecoded = true }
                if !piece.bytes.isEmpty { return .success(piece.bytes) }
                return .success(piece.isFinished ? [] : nil)
            } catch {
                return .failure(error)
            }
        }
    }

    /// The error of a body that cannot be decoded. What is stored of it goes: it would fail whoever asks next.
    private func refusal(_ error: ContentDecodingError) async -> HTTPError {
        if error.isOfBody, case .stored(let body) = channel { await body.withdraw() }
        channel.refuse()
        loseBytes()
        let code: HTTPError.Code
        if case .tooLarge = error { code = .bodyTooLarge } else { code = .contentDecodingFailed }
        return HTTPError(
            code, phase: .receivingBody, message: error.description, wasSent: true,
            origin: call.url.origin.description, attempts: attempts, underlying: error)
    }

    /// Receives bytes as they are on the wire.
    private func receive() async throws -> [UInt8]? {
        switch channel {
        case .exchange(let exchange): return try await receive(from: exchange)
        case .stored(let body):
            let bytes: [UInt8]?
            do {
                bytes = try await body.next(
                    for: call, control: control, patience: state.withLock { $0.patience })
            } catch {
                loseBytes()
                throw error
            }
            if let bytes { control.download?.update { $0.completedByteCount += UInt64(bytes.count) } }
            return bytes
        case .made(let body):
            do {
                let bytes = try await body.next()
                // What came from the network was counted as it came.
                if let bytes, body.base == nil {
                    control.download?.update { $0.completedByteCount += UInt64(bytes.count) }
                }
                return bytes
            } catch {
                loseBytes()
                throw error
            }
        }
    }

    private func receive(from exchange: Exchange) async throws -> [UInt8]? {
        // A small body gets an array of its size: what is handed out may be kept.
        let size = max(1, min(state.withLock { $0.pieceByteCount }, exchange.payloadByteCountBound))
        while true {
            do throws(ExchangeError) {
                try await exchange.waitWhilePaused()
                var allowed = size
                let isHeldBack = exchange.isHeldBack(.down)
                if isHeldBack {
                    allowed = try await exchange.allowance(of: size)
                    if exchange.isPaused {
                        exchange.giveBack(allowed)
                        continue
                    }
                }
                let received = try attempt(allowed, exchange)
                if isHeldBack { exchange.giveBack(allowed - (received?.count ?? 0)) }
                if let bytes = received {
                    if bytes.isEmpty { return nil }
                    control.download?.update { $0.completedByteCount += UInt64(bytes.count) }
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
            } catch {
                exchange.finish()
                loseBytes()
                throw call.failure(error, attempts: attempts)
            }
        }
    }

    /// Where the body comes from.
    var origin: String { call.url.origin.description }

    /// Whether a coding is undone.
    var isCoded: Bool { state.withLock { $0.decoder != nil } }

    /// How many bytes are said to come, where that is known and no coding is undone.
    let expectedByteCount: UInt64?

    /// The exchange that reads straight into whatever it is given; `nil` where bytes have to be decoded, or come from the
    /// cache.
    var plainExchange: Exchange? {
        guard !isCoded, case .exchange(let exchange) = channel else { return nil }
        return exchange
    }

    /// Receives into a block until it is full, or it holds something and nothing more has come.
    ///
    /// - Parameter exchange: That of ``plainExchange``.
    /// - Parameter mayStop: Asked when nothing more has come, whether what is there is wanted now.
    /// - Parameter untilWanted: Waits until it is: more may come meanwhile, and what came is not held back for it.
    /// - Returns: Whether there may be more.
    /// - Throws: ``HTTPError``, or `CancellationError`.
    func fill(
        _ block: FileBlock, from exchange: Exchange, whereNothingCame mayStop: () -> Bool,
        untilWanted: () async -> Void
    ) async throws -> Bool {
        while !block.isFull {
            let attempt: Exchange.BodyAttempt
            do throws(ExchangeError) {
                try await exchange.waitWhilePaused()
                var allowed = Int.max
                let isHeldBack = exchange.isHeldBack(.down)
                if isHeldBack {
                    allowed = try await exchange.allowance(of: block.freeByteCount)
                    if exchange.isPaused {
                        exchange.giveBack(allowed)
                        continue
                    }
                }
                attempt = unsafe try block.fill { free throws(ExchangeError) in
                    let free = unsafe UnsafeMutableRawBufferPointer(rebasing: free.prefix(allowed))
                    let attempt = unsafe try exchange.tryReadBody(into: free)
                    if case .bytes(let count) = attempt { return (count, attempt) }
                    return (0, attempt)
                }
                if isHeldBack {
                    var count = 0
                    if case .bytes(let received) = attempt { count = received }
                    exchange.giveBack(allowed - count)
                }
                if case .wouldBlock = attempt {
                    if block.count > 0 {
                        if mayStop() { return true }
                        await untilWanted()
                    } else {
                        try await exchange.waitForBody()
                    }
                }
            } catch {
                exchange.finish()
                loseBytes()
                throw call.failure(error, attempts: attempts)
            }
            switch attempt {
            case .bytes(let count):
                control.download?.update { $0.completedByteCount += UInt64(count) }
                try delivered(count)
                if let observer = call.observer { try await observer.bodyReceived(count, from: channel) }
            case .end: return false
            case .wouldBlock: continue
            }
        }
        return true
    }

    /// One attempt; empty at the end, `nil` when it would block.
    private func attempt(_ size: Int, _ exchange: Exchange) throws(ExchangeError) -> [UInt8]? {
        var outcome = Result<Exchange.BodyAttempt, ExchangeError>.success(.wouldBlock)
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
            do throws(ExchangeError) {
                let attempt = unsafe try exchange.tryReadBody(into: UnsafeMutableRawBufferPointer(buffer))
                if case .bytes(let received) = attempt { count = received }
                outcome = .success(attempt)
            } catch {
                outcome = .failure(error)
            }
        }
        switch try outcome.get() {
        case .bytes: return bytes
        case .end: return []
        case .wouldBlock: return nil
        }
    }

    /// Notes that all of the body is wanted, and no part of it sooner, unless somebody is told of each.
    func expectWhole() {
        guard !isCoded, call.observer == nil, !control.isExposed, case .stored(let body) = channel else {
            return
        }
        body.collect()
    }

    /// Puts a piece behind what has come of the body.
    func gather(_ piece: [UInt8], behind body: inout [UInt8]) {
        guard !body.isEmpty else {
            body = piece
            return
        }
        // Room for all of it, once some of it has come: but no more than for sixteen times what has, since a length is easily
        // said.
        if body.capacity < body.count + piece.count, let length = expectedByteCount {
            body.reserveCapacity(Int(min(length, UInt64(body.count) * 16)))
        }
        body += piece
    }

    /// Whether its call was cancelled, be it by its task.
    var isCancelled: Bool { control.isCancelled || Task.isCancelled }

    /// The beginning of the body, of which nobody wants the rest: as much as comes in a while, up to a limit.
    func beginning(upTo limit: Int, within patience: Duration) async -> [UInt8] {
        let end = min(MonotonicTime.now().advanced(by: patience), call.totalDeadline)
        // How much is kept is bounded here: what the caller takes of a body says nothing of one that is refused.
        state.withLock { ($0.patience, $0.byteLimit) = (end, nil) }
        var beginning: [UInt8] = []
        do {
            while beginning.count < limit, MonotonicTime.now() < end, let piece = try await next() {
                beginning += piece.prefix(limit - beginning.count)
            }
        } catch {
            // What came before it broke is what there is.
        }
        return beginning
    }
}
