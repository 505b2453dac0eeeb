/// The progress of a transfer as an `AsyncSequence` of its latest values.
///
/// The first value is delivered immediately, also to consumers that start late. A slow consumer misses intermediate
/// values. The last value, with ``TransferProgress/isFinished`` set, is always delivered. Any number of tasks may
/// iterate. Cancelling the iterating task ends only its iteration.
public struct ProgressSequence: AsyncSequence, Sendable {
    /// The type of the values.
    public typealias Element = TransferProgress
    /// Iteration does not fail.
    public typealias Failure = Never

    let state: ProgressState
    /// The task that the progress belongs to; `nil` for a call without a task.
    var task: HTTPTask?

    /// One pass over the values.
    public typealias Iterator = LatestValues<TransferProgress>.Iterator

    /// Returns a pass that starts with the current value.
    public func makeAsyncIterator() -> Iterator { LatestValues(state.newest) { $0 }.makeAsyncIterator() }

    /// The latest value, without waiting.
    public var current: TransferProgress { state.value }

    /// Pauses both directions of the task, as ``HTTPTask/pause()``.
    public func pause() async { await task?.pause() }

    /// Resumes the task, as ``HTTPTask/resume()``.
    public func resume() async { await task?.resume() }

    /// Cancels the task, as ``HTTPTask/cancel()``.
    public func cancel() async { await task?.cancel() }
}

/// The latest progress of one direction of a transfer.
package final class ProgressState: Sendable {
    let newest = CurrentValue(TransferProgress())

    var value: TransferProgress { newest.value }

    /// Changes the value, unless it is final.
    package func update(_ change: (inout TransferProgress) -> Void) {
        var isLast = false
        newest.change { progress in
            guard !progress.isFinished else { return }
            change(&progress)
            isLast = progress.isFinished
        }
        if isLast { newest.finish() }
    }

    /// Restarts with a body of the given length, if it is known.
    func restart(of byteCount: UInt64?) { update { ($0.completedByteCount, $0.totalByteCount) = (0, byteCount) } }
}

extension HTTPSession {
    /// Runs a call and reports its progress to a closure.
    package static func reporting(
        _ state: ProgressState?, to progress: ((TransferProgress) -> Void)?,
        _ body: @escaping @Sendable () async throws -> HTTPExchange
    ) async throws -> HTTPExchange {
        guard let progress, let state else { return try await body() }
        return try await reporting(state.newest, to: progress) {
            // Runs also if the call failed before it started: the last state is always reported.
            defer { state.update { $0.isFinished = true } }
            return try await body()
        }
    }

    /// Runs a transfer in a child task, and calls a closure with the latest values of its progress.
    ///
    /// The closure runs in this task, on the caller's actor, so it need not be `Sendable`. The transfer does not wait
    /// for it. The last value is always reported, also after a cancellation.
    /// - Parameter body: Runs the transfer; finishes the progress before it returns.
    package static func reporting<Progress, Value: Sendable>(
        _ newest: CurrentValue<Progress>, to progress: (Progress) -> Void,
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        async let value = body()
        var seen: UInt64 = 0
        while let (version, state) = await newest.next(after: seen) {
            seen = version
            progress(state)
        }
        // If this task is cancelled, the loop ends before the transfer.
        let result: Result<Value, any Error>
        do { result = .success(try await value) } catch { result = .failure(error) }
        if let (_, state) = await newest.next(after: seen) { progress(state) }
        return try result.get()
    }
}

/// The progress of a transfer: a state, not an event.
///
/// In the last value, ``isFinished`` is `true`, also after a failure. An upload has a ``fractionCompleted`` of 1 before
/// its response arrives, so that fraction may be delivered twice. The count restarts at 0 whenever a body is
/// transferred again: after a redirect, a challenge or a retry.
///
/// To receive the progress of a verb as an `AsyncStream`:
///
/// ```swift
/// let (values, continuation) = AsyncStream.makeStream(
///     of: TransferProgress.self, bufferingPolicy: .bufferingNewest(1))
/// async let uploaded = session.upload(body, to: url) { continuation.yield($0) }
/// for await progress in values {
///     show(progress.fractionCompleted)
///     if progress.isFinished { break }
/// }
/// let exchange = try await uploaded
/// ```
///
/// An ``HTTPTask`` has such a sequence: ``HTTPTask/uploadProgress``.
public struct TransferProgress: Hashable, Sendable {
    /// The bytes of the body transferred so far; for downloads before content codings are decoded.
    public var completedByteCount: UInt64
    /// The length of the body in bytes; `nil` while it is not known.
    public var totalByteCount: UInt64?
    /// Whether the transfer has ended: complete, failed or cancelled. No other value follows.
    public var isFinished: Bool

    /// Creates a progress state.
    public init(completedByteCount: UInt64 = 0, totalByteCount: UInt64? = nil, isFinished: Bool = false) {
        (self.completedByteCount, self.totalByteCount) = (completedByteCount, totalByteCount)
        self.isFinished = isFinished
    }

    /// The completed fraction, 0 to 1; `nil` while the length is not known. An empty body is complete from the start.
    public var fractionCompleted: Double? {
        guard let totalByteCount else { return nil }
        return totalByteCount == 0 ? 1 : min(1, Double(completedByteCount) / Double(totalByteCount))
    }
}
