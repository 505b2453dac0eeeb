import MartletTransport
import Synchronization

/// A connection of a ``ScriptedPeer``. It responds to each request with the next turn of its script, without real
/// waits. If a reader would have to wait, the next turn begins, and after the last turn the stream ends.
final class ScriptedStream: ByteStream {
    private struct State {
        /// The index of the current turn; -1 before the first request.
        var turn = -1
        /// The number of bytes of the turn that were read.
        var position = 0
        /// The number of pieces that were read so far, which selects the size of the next piece.
        var pieceCount = 0
        /// Whether the reader must wait before the next piece. It waits once between two pieces, and a writer once
        /// between two writes.
        var readerMustWait = false
        var writerMustWait = false
        var written: [UInt8] = []
        var isInterrupted = false
        var isClosed = false
    }

    private let turns: [[UInt8]]
    private let conduct: ScriptedPeer.Conduct
    /// The state, locked for no longer than a copy takes.
    private let state = Mutex(State())
    let information = ConnectionInformation(remoteAddress: "script", localAddress: "script")

    init(turns: [[UInt8]], conduct: ScriptedPeer.Conduct) {
        self.turns = turns
        self.conduct = conduct
    }

    /// Whether the client closed the stream.
    var isClosed: Bool { state.withLock { $0.isClosed } }

    /// The bytes that the client sent.
    var written: [UInt8] { state.withLock { $0.written } }

    func read(into buffer: UnsafeMutableRawBufferPointer) throws(TransportError) -> ReadOutcome {
        let outcome = state.withLock { state -> Result<ReadOutcome, TransportError> in
            if state.isClosed { return .failure(.closed) }
            guard state.turn >= 0 else { return .success(.wouldBlock) }
            if conduct.isPiecemeal, state.readerMustWait { return .success(.wouldBlock) }
            let turn = state.turn < turns.count ? turns[state.turn] : []
            let left = turn.count - state.position
            guard left > 0 else {
                return state.turn + 1 < turns.count ? .success(.wouldBlock) : end
            }
            var count = min(left, buffer.count)
            if conduct.isPiecemeal {
                count = min(count, conduct.pieceSizes[state.pieceCount % conduct.pieceSizes.count])
                state.pieceCount += 1
                state.readerMustWait = true
            }
            unsafe buffer.copyBytes(from: turn[state.position..<state.position + count])
            state.position += count
            return .success(.bytes(count))
        }
        return try outcome.get()
    }

    /// The outcome of a read at the end of the stream.
    private var end: Result<ReadOutcome, TransportError> {
        switch conduct.end {
        case .clean: .success(.endOfStream(isClean: true))
        case .cut: .success(.endOfStream(isClean: false))
        case .reset: .failure(.system(SystemError(operation: "recv", code: 104)))
        }
    }

    func write(_ buffer: UnsafeRawBufferPointer) throws(TransportError) -> Int {
        let count = state.withLock { state -> Int? in
            if state.isClosed { return nil }
            if conduct.takesPieces, state.writerMustWait { return 0 }
            let count = conduct.takesPieces ? min(buffer.count, 7) : buffer.count
            unsafe state.written.append(contentsOf: UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            state.writerMustWait = true
            if isTurnOver(state) { beginNextTurn(&state) }
            return count
        }
        guard let count else { throw .closed }
        return count
    }

    private func isTurnOver(_ state: borrowing State) -> Bool {
        state.turn < 0 || state.turn < turns.count && state.position == turns[state.turn].count
    }

    private func beginNextTurn(_ state: inout State) {
        guard state.turn + 1 < turns.count else { return }
        state.turn += 1
        state.position = 0
    }

    func waitUntilReadable(until deadline: MonotonicTime) async throws(TransportError) {
        let error = state.withLock { state -> TransportError? in
            state.readerMustWait = false
            if isTurnOver(state) { beginNextTurn(&state) }
            return state.isClosed ? .closed : state.isInterrupted ? .interrupted : nil
        }
        if let error { throw error }
    }

    func waitUntilWritable(until deadline: MonotonicTime) async throws(TransportError) {
        let error = state.withLock { state -> TransportError? in
            state.writerMustWait = false
            return state.isClosed ? .closed : state.isInterrupted ? .interrupted : nil
        }
        if let error { throw error }
    }

    func wakeReader() {}
    func wakeWriter() {}
    func interrupt() { state.withLock { $0.isInterrupted = true } }
    func close() { state.withLock { $0.isClosed = true } }
    func reset() { close() }
    func shutdownWriting() {}
    func observeIdle(_ watcher: any IdleStreamObserver) {}
    func stopObservingIdle() -> Bool { true }

    func probe() -> IdleState {
        state.withLock { state in
            !state.isClosed && isTurnOver(state) && state.turn + 1 < turns.count ? .quiet : .unusable
        }
    }
}
