/// A task that owns the work of an object, such as the downloads of a manager. Each piece of work is a child task.
package final class RunGroup: Sendable {
    package typealias Work = @Sendable () async -> Void

    private let work: AsyncStream<Work>.Continuation
    private let task: Task<Void, Never>
    /// The number of pieces of work that have not ended.
    private let runningCount = CurrentValue(0)

    /// Creates a group without work.
    package init() {
        let (stream, continuation) = AsyncStream<Work>.makeStream(bufferingPolicy: .unbounded)
        work = continuation
        // Unstructured, because the work belongs to the owner of the group, not to the task that creates the group.
        task = Task {
            await withDiscardingTaskGroup { group in for await work in stream { group.addTask { await work() } } }
        }
    }

    deinit { cancel() }

    /// Starts a piece of work as a child task. Does nothing after ``finish()`` or ``cancel()``.
    package func add(_ body: @escaping Work) {
        runningCount.change { $0 += 1 }
        let result = work.yield { [weak self] in
            await body()
            self?.runningCount.change { $0 -= 1 }
        }
        if case .terminated = result { runningCount.change { $0 -= 1 } }
    }

    /// Waits for all work, including work that is started during the wait. No work can be started afterwards.
    package func finish() async {
        _ = await runningCount.next { $0 == 0 }
        work.finish()
        await task.value
    }

    /// Cancels all work without waiting for its end.
    package func cancel() {
        work.finish()
        task.cancel()
    }
}
