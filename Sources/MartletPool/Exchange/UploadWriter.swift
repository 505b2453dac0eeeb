import MartletTransport
import MartletWire
import Synchronization

/// The writer of the rest of a request, while the exchange already reads: the rest of a body too large for one write,
/// or a body whose source is read piece by piece. Reading while writing prevents a deadlock if request and response are
/// both larger than the sockets' buffers, and detects an early rejection (RFC 9112 §9.5).
final class UploadWriter: Sendable {
    /// The outcome of writing. Outcomes other than ``finished`` are thrown.
    enum Outcome: Error {
        /// Everything was written.
        case finished
        /// The writer was stopped, or was not allowed to start.
        case stopped
        /// Writing failed. Indirect, so that the frames of functions that may throw it stay small.
        indirect case failed(ExchangeError.Cause)
    }

    private enum Phase {
        case writing
        /// Waiting for a bandwidth limit.
        case heldBack
        /// Stopping; the task has not ended.
        case stopping
        /// The last byte of the request is sent; the task has not ended.
        case written
        case ended(Outcome)
    }

    private struct State {
        var phase = Phase.writing
        var byteCount: UInt64 = 0
        /// The error of the write that failed.
        var sendError: TransportError?
        var task: Task<Void, Never>?

        var isStopping: Bool { if case .stopping = phase { true } else { false } }
        var isHeldBack: Bool { if case .heldBack = phase { true } else { false } }
    }

    private let connection: HTTP1Connection
    private let request: ExchangeRequest
    private let opening: [UInt8]
    private let sentCount: Int
    private let timeouts: ExchangeTimeouts
    private let loop: EventLoop
    private let onProgress: (@Sendable (Int) -> Void)?
    private let transferGate: (any TransferPauseGate)?
    private let pace: TransferRateLimit?
    /// The wait for a 100: `true` once it arrives, `false` if the body must not be sent.
    private let gate = OneShot<Bool>()
    /// Fulfilled when the writer has ended, or was stopped.
    private let ending = OneShot<Void>()
    /// Shared by the writing task, the exchange, and the thread that cancels.
    private let state = Mutex(State())
    /// Held while bytes are sent and counted, so that the end of the exchange finds the count of all sent bytes.
    private let sending = Mutex(())

    /// Creates a writer that has not started.
    /// - Parameters:
    ///   - opening: The bytes of the first write: the head, and the beginning of a body in memory.
    ///   - sentCount: The number of bytes that the first write has sent.
    init(
        connection: HTTP1Connection, request: ExchangeRequest, opening: [UInt8], sentCount: Int,
        timeouts: ExchangeTimeouts, loop: EventLoop, onProgress: (@Sendable (Int) -> Void)?,
        transferGate: (any TransferPauseGate)?, pace: TransferRateLimit?
    ) {
        (self.connection, self.request, self.opening) = (connection, request, opening)
        (self.sentCount, self.timeouts, self.loop) = (sentCount, timeouts, loop)
        (self.onProgress, self.transferGate, self.pace) = (onProgress, transferGate, pace)
    }

    /// Starts writing in an unstructured task, because the exchange's reader continues in the caller's task, and the
    /// two end in either order. The end of the exchange stops the task.
    func start() {
        let task = Task { await self.run() }
        let isStopping = state.withLock { state in
            state.task = task
            return state.isStopping
        }
        if isStopping { task.cancel() }
    }

    /// Stops writing. The request is then incomplete, and the connection cannot be reused.
    func stop() {
        let task = state.withLock { state in
            switch state.phase {
            case .writing, .heldBack: state.phase = .stopping
            case .stopping, .written, .ended: break
            }
            return state.task
        }
        gate.fulfill(false)
        ending.fulfill(())
        task?.cancel()
        connection.stream.wakeWriter()
    }

    /// Allows the body to be sent, because the server has sent 100.
    func permitBody() { gate.fulfill(true) }

    /// Discards a body that still waits for a 100, because a final head has arrived.
    /// - Returns: Whether the body was still waiting.
    func rejectBody() -> Bool { request.expectsContinue && gate.fulfill(false) }

    /// Waits until the writer has ended, or was stopped.
    /// - Returns: `false` at the deadline.
    func waitUntilEnded(until deadline: MonotonicTime) async -> Bool {
        if case .timedOut = await ending.wait(until: deadline, on: loop) { false } else { true }
    }

    // MARK: Properties

    /// The outcome; `nil` while the writer runs.
    var outcome: Outcome? { state.withLock { if case .ended(let outcome) = $0.phase { outcome } else { nil } } }

    /// Whether everything was written.
    var hasFinished: Bool { if case .finished = outcome { true } else { false } }

    /// Whether the last byte of the request is sent, even if the writer's task has not ended. If the call that sends it
    /// has not returned yet (a server may already respond), this property waits for it.
    var hasWrittenAll: Bool {
        sending.withLock { _ in
            state.withLock { state in
                switch state.phase {
                case .written, .ended(.finished): true
                case .writing, .heldBack, .stopping, .ended: false
                }
            }
        }
    }

    /// The reset that a write encountered. The kernel reports a reset only to the first call: a later reader finds only
    /// the end of the stream, and needs this reason.
    var reset: TransportError? {
        let sendError = sending.withLock { _ in state.withLock { $0.sendError } }
        guard case .system(let error) = sendError, error.isReset else { return nil }
        return sendError
    }

    var byteCount: UInt64 { state.withLock { $0.byteCount } }

    /// Whether the writer waits for a bandwidth limit.
    var isHeldBack: Bool { state.withLock { $0.isHeldBack } }

    private var isStopping: Bool { state.withLock { $0.isStopping } }

    private var isPaced: Bool { pace?.limiter.isActive(.up) ?? false }

    // MARK: Writing

    private func run() async {
        var outcome = Outcome.finished
        do throws(Outcome) { try await write() } catch {
            outcome = error
            connection.requestAborted()
        }
        // The end of the request is not recorded here: another exchange may already own the connection.
        state.withLock { $0.phase = .ended(outcome) }
        ending.fulfill(())
        // The reader's deadline depends on whether the request is completely sent.
        connection.stream.wakeReader()
    }

    private func write() async throws(Outcome) {
        let isWhole = request.isWhole(opening)
        let headCount = request.head.count
        try await write(opening, from: sentCount, payload: headCount..<opening.count, isLast: isWhole)
        if request.expectsContinue {
            let deadline = min(MonotonicTime.now().advanced(by: request.continueWait), timeouts.totalDeadline)
            switch await gate.wait(until: deadline, on: loop) {
            case .value(true), .timedOut: break
            case .value(false), .interrupted: throw .stopped
            }
        }
        switch request.body {
        case .none: break
        case .bytes(let bytes):
            // The rest of the body, from its own memory.
            if !isWhole {
                try await write(bytes, from: opening.count - headCount, payload: 0..<bytes.count, isLast: true)
            }
        case .source(let source, length: nil): try await writeChunks(of: source)
        case .source(let source, let length?): try await write(from: source, length: length)
        }
    }

    private func write(from source: any RequestBodySource, length: UInt64) async throws(Outcome) {
        var total: UInt64 = 0
        while let chunk = try await piece(of: source) {
            total += UInt64(chunk.count)
            if total == length {
                // The last bytes are sent only after the end of the source, so that a source with more bytes than
                // announced never produces a request that looks complete.
                guard let excess = try await piece(of: source) else {
                    return try await write(chunk, payload: 0..<chunk.count, isLast: true)
                }
                total += UInt64(excess.count)
            }
            if total > length { throw .failed(.lengthMismatch(announced: length, actual: total)) }
            try await write(chunk, payload: 0..<chunk.count)
        }
        guard total == length else { throw .failed(.lengthMismatch(announced: length, actual: total)) }
        // The body is empty, so the head was the last part to be sent.
        noteWritten(0, 0..<0, isLast: true)
    }

    private func writeChunks(of source: any RequestBodySource) async throws(Outcome) {
        var encoder = ChunkEncoder()
        while let piece = try await piece(of: source) {
            let (bytes, payload) = encoder.chunk(piece)
            try await write(bytes, payload: payload)
        }
        var trailers = request.trailers
        if let last = request.bodyTrailer, let value = last.value() { trailers.append((last.name, value)) }
        let end: [UInt8]
        do throws(WireError) { end = try encoder.lastChunk(trailers: trailers) } catch {
            throw .failed(.wire(error))
        }
        try await write(end, payload: 0..<0, isLast: true)
    }

    /// The source's next bytes, which are not empty; `nil` after the last.
    private func piece(of source: any RequestBodySource) async throws(Outcome) -> [UInt8]? {
        while true {
            if isStopping { throw .stopped }
            do {
                guard let next = try await source.next() else { return nil }
                if !next.isEmpty { return next }
            } catch { throw isStopping ? .stopped : .failed(.source(error)) }
        }
    }

    /// Writes all of the bytes from an offset on.
    /// - Parameters:
    ///   - payload: The range of the body's own bytes, whose progress is reported.
    ///   - isLast: Whether these bytes complete the request.
    private func write(_ bytes: [UInt8], from start: Int = 0, payload: Range<Int>, isLast: Bool = false)
        async throws(Outcome)
    {
        var offset = start
        /// The end of the bytes that may be written: all of them, unless there is a limit.
        var end = isPaced ? start : bytes.count
        var isGranted = false
        if bytes.isEmpty, isLast { noteWritten(0, 0..<0, isLast: true) }
        while offset < bytes.count {
            if let transferGate, transferGate.isPaused {
                await transferGate.waitWhilePaused(until: timeouts.totalDeadline, on: loop)
                if MonotonicTime.now() >= timeouts.totalDeadline { throw .failed(.timedOut(.total)) }
            }
            if isStopping { throw .stopped }
            if offset == end {
                end = try await allowance(from: offset, of: bytes.count, payload: payload)
                isGranted = isPaced
                continue
            }
            let count: Int
            do throws(TransportError) {
                count = try tryWriting(bytes, from: offset, upTo: end, payload: payload, isLast: isLast)
            } catch { throw .failed(.transport(error)) }
            if count == 0 {
                try await waitUntilWritable()
                continue
            }
            offset += count
            // A limit may have been set during the write.
            if !isGranted, isPaced { end = offset }
        }
    }

    /// Waits until more may be written; framing is sent together with the payload after it.
    /// - Returns: The end of the bytes that may be written.
    private func allowance(from offset: Int, of count: Int, payload: Range<Int>) async throws(Outcome) -> Int {
        let begin = max(offset, payload.lowerBound)
        guard let pace, isPaced, begin < payload.upperBound else { return count }
        let turn = BandwidthLimiter.Wait()
        state.withLock { state in if case .writing = state.phase { state.phase = .heldBack } }
        defer { state.withLock { state in if state.isHeldBack { state.phase = .writing } } }
        // Stopping the writer cancels its task.
        let outcome = await withTaskCancellationHandler {
            await pace.limiter.acquire(
                payload.upperBound - begin, .up, in: pace.scope, by: turn, until: timeouts.totalDeadline)
        } onCancel: {
            turn.interrupt()
        }
        switch outcome {
        case .value(let granted):
            let end = begin + granted
            return end == payload.upperBound ? count : end
        case .timedOut: throw .failed(.timedOut(.total))
        case .interrupted: throw .stopped
        }
    }

    /// Writes as much as the socket accepts without waiting. The lock is held during the call, so that its result is
    /// recorded before others use its effects, such as the response. Not inlined, because the compiler would copy the
    /// code into each part of the caller.
    @inline(never) private func tryWriting(
        _ bytes: [UInt8], from offset: Int, upTo limit: Int, payload: Range<Int>, isLast: Bool
    ) throws(TransportError) -> Int {
        try sending.withLock { _ throws(TransportError) in
            do throws(TransportError) {
                let count =
                    limit == bytes.count
                    ? try connection.stream.write(bytes, from: offset)
                    : try connection.stream.write(Array(bytes[offset..<limit]), from: 0)
                let end = offset + count
                noteWritten(count, (offset..<end).clamped(to: payload), isLast: isLast && end == bytes.count)
                return count
            } catch {
                state.withLock { $0.sendError = error }
                throw error
            }
        }
    }

    private func noteWritten(_ count: Int, _ payload: Range<Int>, isLast: Bool) {
        state.withLock { state in
            state.byteCount += UInt64(count)
            if isLast { state.phase = .written }
        }
        if isLast { connection.requestFinished() }
        if !payload.isEmpty { onProgress?(payload.count) }
    }

    private func waitUntilWritable() async throws(Outcome) {
        let (deadline, timeout) = timeouts.deadline(timeouts.idle, .idle)
        do throws(TransportError) { try await connection.stream.waitUntilWritable(until: deadline) } catch {
            switch error {
            case .timedOut:
                if timeout == .idle, transferGate?.isPaused == true { return }
                throw .failed(.timedOut(timeout))
            case .interrupted: throw .failed(.cancelled)
            default: throw .failed(.transport(error))
            }
        }
    }
}
