import MartletCore

/// A sink whose pieces another task reads as an `AsyncSequence`.
///
/// ``write(_:)`` returns once the reader has the piece, so that a slow reader slows the sender down. The sequence ends
/// after the last piece; it throws an error if the body was incomplete. A reader that stops or is cancelled should call
/// ``cancel()``: the sink then fails and no longer blocks the sender. Only one task may iterate, once.
public final class SequenceSink: BodySink, AsyncSequence {
    /// A piece of the body; never empty.
    public typealias Element = [UInt8]

    private let pieces = Handoff<[UInt8]>()

    /// Creates a sink without pieces.
    public init() {}

    /// One pass over the pieces.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let pieces: Handoff<[UInt8]>

        /// Returns the next piece; `nil` at the end.
        /// - Throws: `CancellationError` if the body was incomplete, or the task is cancelled.
        public mutating func next() async throws -> [UInt8]? { try await pieces.take() }

        /// Returns the next piece; `nil` at the end.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> [UInt8]? {
            try await next()
        }
    }

    /// Returns the only pass over the pieces.
    public func makeAsyncIterator() -> Iterator { Iterator(pieces: pieces) }

    /// Stops reading: the sink fails with `CancellationError` immediately.
    public func cancel() { pieces.cancel() }

    /// Waits until the piece was read.
    /// - Throws: `CancellationError` if the reader has cancelled, or the call is cancelled.
    public func write(_ piece: [UInt8]) async throws {
        // A reader that took the piece and then cancelled still has it: the sink fails at the next piece.
        guard await pieces.give(piece), await pieces.isTaken() else { throw CancellationError() }
    }

    /// Ends the sequence after the last piece.
    public func finish() async throws { pieces.finish() }

    /// Makes the sequence throw `CancellationError`.
    public func abandon() async { pieces.abandon() }
}
