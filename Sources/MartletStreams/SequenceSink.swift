import MartletCore

/// A sink whose pieces are read as an `AsyncSequence` elsewhere.
///
/// ``write(_:)`` returns once the piece was taken, so that a slow reader holds the sender. The sequence ends after the last
/// piece; it throws if the body was incomplete. A reader that stops or is cancelled should call ``cancel()``: the sink then
/// fails and no longer holds the sender. One task iterates, once.
public final class SequenceSink: BodySink, AsyncSequence {
    /// A piece of the body; never empty.
    public typealias Element = [UInt8]

    private let pieces = Handoff<[UInt8]>()

    /// Creates a sink.
    public init() {}

    /// One pass over the pieces.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let pieces: Handoff<[UInt8]>

        /// The next piece; `nil` at the end.
        /// - Throws: `CancellationError` if the body was incomplete, or the task is cancelled.
        public mutating func next() async throws -> [UInt8]? { try await pieces.take() }

        /// The next piece; `nil` at the end.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> [UInt8]? {
            try await next()
        }
    }

    /// The pass over the pieces.
    public func makeAsyncIterator() -> Iterator { Iterator(pieces: pieces) }

    /// Takes no more pieces: the sink fails with `CancellationError` immediately.
    public func cancel() { pieces.cancel() }

    /// Waits until the piece was taken.
    /// - Throws: `CancellationError` if the reader has cancelled, or the call is cancelled.
    public func write(_ piece: [UInt8]) async throws {
        // A reader that took the piece and then cancelled has it: the sink fails at the next piece.
        guard await pieces.give(piece), await pieces.isTaken() else { throw CancellationError() }
    }

    /// Ends the sequence.
    public func finish() async throws { pieces.finish() }

    /// Makes the sequence throw.
    public func abandon() async { pieces.abandon() }
}
