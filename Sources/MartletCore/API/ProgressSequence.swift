import MartletTransport

/// The progress of a transfer as an `AsyncSequence` of newest values.
///
/// The first value comes at once, also to those who come late; a slow consumer skips what it missed and is never queued
/// for; the last value, which has ``TransferProgress/isFinished``, always comes. Any number of tasks may iterate.
/// Cancelling the iterating task ends its iteration and touches nothing else.
public struct ProgressSequence: AsyncSequence, Sendable {
    /// What iteration gives.
    public typealias Element = TransferProgress
    /// Iteration does not fail.
    public typealias Failure = Never

    let state: ProgressState
    /// The task whose progress it is; `nil` where nobody holds one.
    var task: HTTPTask?

    /// One pass over the values.
    public struct Iterator: AsyncIteratorProtocol {
        let state: ProgressState
        var seen: UInt64 = 0

        /// The newest value that this iterator has not given yet; `nil` after the last one, or when cancelled.
        public mutating func next() async -> TransferProgress? { await next(isolation: #isolation) }

        /// The newest value that this iterator has not given yet; `nil` after the last one, or when cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> TransferProgress? {
            guard let (version, value) = await state.next(after: seen) else { return nil }
            seen = version
            return value
        }
    }

    /// A pass that begins with the present value.
    public func makeAsyncIterator() -> Iterator { Iterator(state: state) }

    // MARK: The task

    /// The newest value, without waiting.
    public var current: TransferProgress { state.value }

    /// Pauses the task whose progress this is, both directions of it, as ``HTTPTask/pause()``.
    public func pause() async { await task?.pause() }

    /// Lets the task go on, as ``HTTPTask/resume()``.
    public func resume() async { await task?.resume() }

    /// Cancels the task, as ``HTTPTask/cancel()``.
    public func cancel() async { await task?.cancel() }
}

/// The newest progress of one direction.
package final class ProgressState: Sendable {
    private let newest = NewestValue(TransferProgress())

    var value: TransferProgress { newest.value }

    /// Changes the value; nothing once it is final.
    package func update(_ change: (inout TransferProgress) -> Void) {
        var isLast = false
        newest.change { progress in
            guard !progress.isFinished else { return }
            change(&progress)
            isLast = progress.isFinished
        }
        if isLast { newest.finish() }
    }

    /// Begins anew.
    func restart(of byteCount: UInt64?) {
        update { progress in
            progress.completedByteCount = 0
            progress.totalByteCount = byteCount
        }
    }

    func next(after seen: UInt64) async -> (version: UInt64, value: TransferProgress)? {
        await newest.next(after: seen)
    }
}

/// How far a transfer has come: a state, not an event.
public struct TransferProgress: Hashable, Sendable {
    /// Bytes of the body moved so far; for downloads before content coding is undone.
    public var completedByteCount: UInt64

    /// Bytes of the body in all; `nil` while that is not known.
    public var totalByteCount: UInt64?

    /// Whether the transfer is over: complete, failed or cancelled. No other value follows.
    public var isFinished: Bool

    /// A state.
    public init(completedByteCount: UInt64 = 0, totalByteCount: UInt64? = nil, isFinished: Bool = false) {
        self.completedByteCount = completedByteCount
        self.totalByteCount = totalByteCount
        self.isFinished = isFinished
    }

    /// The part that is done, 0 to 1; `nil` while the whole is not known. An empty body is done from the start.
    public var fractionCompleted: Double? {
        guard let totalByteCount else { return nil }
        return totalByteCount == 0 ? 1 : min(1, Double(completedByteCount) / Double(totalByteCount))
    }
}
