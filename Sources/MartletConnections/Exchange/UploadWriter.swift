import MartletTransport
import MartletWire
import Synchronization

/// Writes what is left of a request while the exchange already reads: the rest of a body too large for one write, or one
/// whose source is asked piece by piece.
///
/// Reading while writing is what keeps a request and an answer that are both larger than the sockets' buffers from
/// waiting for each other, and what lets an early refusal be seen (RFC 9112 §9.5).
final class UploadWriter: Sendable {
    /// How the writing ended.
    package enum Outcome: Sendable {
        /// Everything was written.
        case finished
        /// Told to stop, or not to begin.
        case stopped
        /// It failed.
        case failed(ExchangeError.Cause)
    }

    private struct State {
        var isStopped = false
        var outcome: Outcome?
        var byteCount: UInt64 = 0
        /// The last byte of the request is out.
        var isWritten = false
        /// What the failing write threw.
        var fault: TransportError?
        var task: Task<Void, Never>?
        /// Whether it waits for its turn under a limit.
        var isHeldBack = false
    }

    private let connection: HTTP1Connection
    private let request: ExchangeRequest
    private let rest: [UInt8]
    private let restPayload: Range<Int>
    private let clocks: ExchangeClocks
    private let loop: EventLoop
    private let onProgress: (@Sendable (Int) -> Void)?
    private let transferGate: (any TransferGate)?
    private let pace: TransferPace?
    /// Opened by the 100, or by a final head (then nothing is sent), or by time.
    private let gate = OneShot<Bool>()
    /// Guards the outcome and the count: the writing task, the exchange, and whoever cancels.
    private let state = Mutex(State())
    /// Held while bytes are given to the socket and counted: so that whoever ends the exchange knows of all that are out.
    private let sending = Mutex(())

    /// A writer that has not started.
    /// - Parameters:
    ///   - rest: What of the head, and of a body in memory, the first write did not take.
    ///   - restPayload: Which of those bytes are the body's.
    init(
        connection: HTTP1Connection, request: ExchangeRequest, rest: [UInt8], restPayload: Range<Int>,
        clocks: ExchangeClocks, loop: EventLoop, onProgress: (@Sendable (Int) -> Void)?,
        transferGate: (any TransferGate)?, pace: TransferPace?
    ) {
        self.connection = connection
        self.request = request
        self.rest = rest
        self.restPayload = restPayload
        self.clocks = clocks
        self.loop = loop
        self.onProgress = onProgress
        self.transferGate = transferGate
        self.pace = pace
    }

    /// Starts writing.
    ///
    /// In a task of its own, unstructured, because the exchange's reader goes on in the caller's and the two end in
    /// either order; the exchange stops it when it ends.
    func start() {
        let task = Task { await self.run() }
        let isStopped = state.withLock { state in
            state.task = task
            return state.isStopped
        }
        if isStopped { task.cancel() }
    }

    /// How it ended; `nil` while it goes on.
    var outcome: Outcome? { state.withLock { $0.outcome } }

    /// Whether everything was written.
    var hasFinished: Bool { if case .finished = outcome { true } else { false } }

    /// What the stream threw at a write; known to whoever asks from the moment that the call returned.
    ///
    /// A reset is told once, by whichever call comes first: a reader that finds no more than the end of the stream looks
    /// here for the reason.
    var fault: TransportError? {
        sending.withLock { _ in state.withLock { $0.fault } }
    }

    /// The reset that a write was told of.
    var reset: TransportError? {
        guard let fault, case .system(let error) = fault, error.isReset else { return nil }
        return fault
    }

    /// Bytes written so far.
    var byteCount: UInt64 { state.withLock { $0.byteCount } }

    /// Whether it is silent because a limit asks it to be.
    var isHeldBack: Bool { state.withLock { $0.isHeldBack } }

    /// The server has said 100: the body may go.
    func permitBody() { gate.fulfil(true) }

    /// A final head has come: a body that still waits for the 100 stays unsent.
    /// - Returns: Whether it was still waiting.
    func refuseBody() -> Bool { request.expectsContinue && gate.fulfil(false) }

    /// Stops writing; what was begun stays unfinished and the connection cannot be used again.
    func stop() {
        let task = state.withLock { state in
            state.isStopped = true
            return state.task
        }
        gate.fulfil(false)
        task?.cancel()
        connection.stream.wakeWriter()
    }

    private var isStopped: Bool { state.withLock { $0.isStopped } }

    private func run() async {
        let outcome = await write()
        // A request that is out has been noted as such with its last byte: by now the connection may be another's.
        if case .finished = outcome {} else { connection.requestAborted() }
        state.withLock { $0.outcome = outcome }
        // The reader's deadline depends on whether the request is out.
        connection.stream.wakeReader()
    }

    private func write() async -> Outcome {
        let isWhole: Bool
        switch request.body {
        case .none: isWhole = true
        case .bytes: isWhole = !request.expectsContinue
        case .source: isWhole = false
        }
        if let outcome = await write(rest, payload: restPayload, isLast: isWhole) { return outcome }
        if request.expectsContinue {
            let deadline = min(MonotonicTime.now().advanced(by: request.continueWait), clocks.totalDeadline)
            switch await gate.wait(until: deadline, on: loop) {
            case .value(true), .timedOut: break
            case .value(false), .interrupted: return .stopped
            }
        }
        switch request.body {
        case .none: return .finished
        case .bytes(let bytes):
            // Without the wait for a 100 these bytes were part of the first write.
            guard request.expectsContinue else { return .finished }
            return await write(bytes, payload: 0..<bytes.count, isLast: true) ?? .finished
        case .source(let source, let length): return await write(from: source, length: length)
        }
    }

    private func write(from source: any BodySource, length: UInt64?) async -> Outcome {
        var encoder = ChunkEncoder()
        var total: UInt64 = 0
        while true {
            let chunk: [UInt8]?
            switch await piece(of: source) {
            case .success(let next): chunk = next
            case .failure(let end): return end.outcome
            }
            guard let chunk else { break }
            total += UInt64(chunk.count)
            if let length {
                if total == length {
                    // The source's end is seen before its last bytes go out: one that has more than it said never
                    // becomes a request that looks whole, and with the last byte the request is out.
                    switch await piece(of: source) {
                    case .success(nil):
                        return await write(chunk, payload: 0..<chunk.count, isLast: true) ?? .finished
                    case .success(let excess?): total += UInt64(excess.count)
                    case .failure(let end): return end.outcome
                    }
                }
                if total > length { return .failed(.lengthMismatch(announced: length, actual: total)) }
                if let outcome = await write(chunk, payload: 0..<chunk.count) { return outcome }
            } else {
                let (bytes, payload) = encoder.chunk(chunk)
                if let outcome = await write(bytes, payload: payload) { return outcome }
            }
        }
        if let length {
            guard total == length else { return .failed(.lengthMismatch(announced: length, actual: total)) }
            // A body of no bytes: its head was the last to go.
            noteWritten(0, 0..<0, isLast: true)
            return .finished
        }
        do throws(WireError) {
            let end = try encoder.lastChunk(trailers: request.trailers)
            return await write(end, payload: 0..<0, isLast: true) ?? .finished
        } catch {
            return .failed(.wire(error))
        }
    }

    /// An end of the writing, as an error.
    private struct End: Error { var outcome: Outcome }

    /// The source's next bytes, which are not empty; `nil` after the last.
    private func piece(of source: any BodySource) async -> Result<[UInt8]?, End> {
        while true {
            if isStopped { return .failure(End(outcome: .stopped)) }
            do {
                guard let next = try await source.next() else { return .success(nil) }
                if !next.isEmpty { return .success(next) }
            } catch {
                return .failure(End(outcome: isStopped ? .stopped : .failed(.source(error))))
            }
        }
    }

    /// Writes bytes whole; `nil` when that went well.
    /// - Parameters:
    ///   - payload: Which of them are the body's own, of which progress is told.
    ///   - isLast: Whether the request is out with them.
    private func write(_ bytes: [UInt8], payload: Range<Int>, isLast: Bool = false) async -> Outcome? {
        var offset = 0
        /// Up to where bytes may be written: all of them, unless there is a limit.
        var end = isPaced ? 0 : bytes.count
        var isGranted = false
        if bytes.isEmpty, isLast { noteWritten(0, 0..<0, isLast: true) }
        while offset < bytes.count {
            if let transferGate, transferGate.isPaused {
                await transferGate.waitWhilePaused(until: clocks.totalDeadline, on: loop)
                if MonotonicTime.now() >= clocks.totalDeadline { return .failed(.timedOut(.total)) }
            }
            if isStopped { return .stopped }
            if offset == end {
                switch await allowance(from: offset, of: bytes.count, payload: payload) {
                case .success(let next): (end, isGranted) = (next, isPaced)
                case .failure(let outcome): return outcome.outcome
                }
                continue
            }
            let count: Int
            do throws(TransportError) {
                count = try tryWriting(
                    bytes, from: offset, upTo: end, payload: payload, isLast: isLast)
            } catch {
                return .failed(.transport(error))
            }
            if count == 0 {
                if let outcome = await waitUntilWritable() { return outcome }
                continue
            }
            offset += count
            // A limit may have come since the last look.
            if !isGranted, isPaced { end = offset }
        }
        return nil
    }

    private var isPaced: Bool { pace?.isActive(.up) ?? false }

    /// Waits until some more may be written; what is framing goes along with the payload behind it.
    /// - Returns: Up to where.
    private func allowance(from offset: Int, of count: Int, payload: Range<Int>) async -> Result<Int, End> {
        let begin = max(offset, payload.lowerBound)
        guard let pace, isPaced, begin < payload.upperBound else { return .success(count) }
        let turn = BandwidthGovernor.Wait()
        state.withLock { $0.isHeldBack = true }
        defer { state.withLock { $0.isHeldBack = false } }
        // Stopping the writer cancels its task.
        let outcome = await withTaskCancellationHandler {
            await pace.governor.take(
                payload.upperBound - begin, .up, in: pace.lane, by: turn, until: clocks.totalDeadline)
        } onCancel: {
            turn.interrupt()
        }
        switch outcome {
        case .value(let granted):
            let end = begin + granted
            return .success(end == payload.upperBound ? count : end)
        case .timedOut: return .failure(End(outcome: .failed(.timedOut(.total))))
        case .interrupted: return .failure(End(outcome: .stopped))
        }
    }

    /// Writes what can be written at once.
    ///
    /// The lock is held meanwhile, which is one call that does not wait, so that nobody sees its effect on the stream, or
    /// the peer's answer to it, before what it did is noted.
    private func tryWriting(
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
                state.withLock { $0.fault = error }
                throw error
            }
        }
    }

    private func noteWritten(_ count: Int, _ payload: Range<Int>, isLast: Bool) {
        state.withLock { state in
            state.byteCount += UInt64(count)
            if isLast { state.isWritten = true }
        }
        if isLast { connection.requestFinished() }
        if !payload.isEmpty { onProgress?(payload.count) }
    }

    /// Whether the last byte of the request is out, though the writer's task may not have come to its end.
    ///
    /// A server may answer before the call that gave it the last bytes has returned here; that call is waited for.
    var hasWrittenAll: Bool {
        sending.withLock { _ in state.withLock { $0.isWritten } }
    }

    private func waitUntilWritable() async -> Outcome? {
        let (deadline, clock) = clocks.deadline(clocks.idle, .idle)
        do throws(TransportError) {
            try await connection.stream.waitUntilWritable(until: deadline)
            return nil
        } catch {
            switch error {
            case .timedOut:
                if clock == .idle, transferGate?.isPaused == true { return nil }
                return .failed(.timedOut(clock))
            case .interrupted: return .failed(.cancelled)
            default: return .failed(.transport(error))
            }
        }
    }
}
