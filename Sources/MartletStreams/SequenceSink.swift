import MartletCore
import MartletTransport
import Synchronization

/// A sink whose pieces are read as an `AsyncSequence` elsewhere.
///
/// Piece by piece: ``write(_:)`` returns when the piece was taken, so that a slow reader holds the sender. The sequence ends
/// behind the last piece, or throws where the body was not complete. A reader that stops, or is cancelled, should call
/// ``cancel()``: the sink fails then, and holds nobody up any more. One task iterates, once.
public final class SequenceSink: BodySink, AsyncSequence {
    /// A piece of the body; never empty.
    public typealias Element = [UInt8]

    private struct State {
        var piece: [UInt8]?
        /// Whether the reader took the piece that was written last.
        var isTaken = false
        var end: Result<Void, any Error>?
        /// Whether the reader is gone.
        var isCancelled = false
        /// Who waits for the piece to be taken.
        var writer: OneShot<Void>?
        /// Who waits for a piece.
        var reader: OneShot<Void>?

        mutating func takeWaiting() -> [OneShot<Void>] {
            defer { (writer, reader) = (nil, nil) }
            return [writer, reader].compactMap(\.self)
        }
    }

    /// Guards the above: the tee, and the one who reads.
    private let state = Mutex(State())

    /// A sink.
    public init() {}

    /// One pass over the pieces.
    public struct Iterator: AsyncIteratorProtocol {
        let sink: SequenceSink

        /// The next piece; `nil` at the end.
        /// - Throws: `CancellationError` where the body was not complete, or the task is cancelled.
        public mutating func next() async throws -> [UInt8]? { try await sink.next() }

        /// The next piece; `nil` at the end.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> [UInt8]?
        {
            try await sink.next()
        }
    }

    /// The pass over the pieces.
    public func makeAsyncIterator() -> Iterator { Iterator(sink: self) }

    /// Takes no more: the sink fails with `CancellationError`, at once.
    public func cancel() {
        let waiting = state.withLock { state -> [OneShot<Void>] in
            state.isCancelled = true
            state.piece = nil
            return state.takeWaiting()
        }
        for one in waiting { one.fulfil(()) }
    }

    // MARK: The tee

    /// Waits until the piece was taken.
    /// - Throws: `CancellationError` where the reader is gone, or the call is cancelled.
    public func write(_ piece: [UInt8]) async throws {
        let turn = OneShot<Void>()
        let (reader, isCancelled) = state.withLock { state -> (OneShot<Void>?, Bool) in
            guard !state.isCancelled else { return (nil, true) }
            state.piece = piece
            state.isTaken = false
            state.writer = turn
            return (state.reader.take(), false)
        }
        if isCancelled { throw CancellationError() }
        reader?.fulfil(())
        await SequenceSink.wait(turn)
        // A reader that took the piece and then cancelled has it: the sink fails at the next piece.
        let isTaken = state.withLock { $0.isTaken }
        guard isTaken else { throw CancellationError() }
    }

    /// Ends the sequence.
    public func finish() async throws { end(.success(())) }

    /// Lets the sequence throw.
    public func abandon() async { end(.failure(CancellationError())) }

    private func end(_ end: Result<Void, any Error>) {
        let waiting = state.withLock { state -> [OneShot<Void>] in
            state.end = state.end ?? end
            if case .failure = end { state.piece = nil }
            return state.takeWaiting()
        }
        for one in waiting { one.fulfil(()) }
    }

    // MARK: The reader

    private enum Step {
        case piece([UInt8], OneShot<Void>?)
        case end(Result<Void, any Error>)
        case wait(OneShot<Void>)
    }

    private func next() async throws -> [UInt8]? {
        while true {
            try Task.checkCancellation()
            let step = state.withLock { state -> Step in
                if let piece = state.piece.take() {
                    state.isTaken = true
                    return .piece(piece, state.writer.take())
                }
                if let end = state.end { return .end(end) }
                if state.isCancelled { return .end(.failure(CancellationError())) }
                let turn = OneShot<Void>()
                state.reader = turn
                return .wait(turn)
            }
            switch step {
            case .piece(let piece, let writer):
                writer?.fulfil(())
                return piece
            case .end(let end):
                try end.get()
                return nil
            case .wait(let turn): await SequenceSink.wait(turn)
            }
        }
    }

    private static func wait(_ turn: OneShot<Void>) async {
        _ = await turn.waitUnlessCancelled(until: .distantFuture, on: .sharedOrStalled)
    }
}
