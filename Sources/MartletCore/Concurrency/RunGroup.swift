import MartletTransport
import Synchronization

/// The task in which what an object runs, such as a manager's downloads, runs: all of it its children.
package final class RunGroup: Sendable {
    package typealias Work = @Sendable () async -> Void

    private let work: AsyncStream<Work>.Continuation
    private let task: Task<Void, Never>
    /// How many pieces of work have not ended: those who begin them, and their ends.
    private let count: Mutex<Int>
    private let isEmpty = NewestValue(true)

    /// A group of nothing so far.
    package init() {
        let (stream, continuation) = AsyncStream<Work>.makeStream(bufferingPolicy: .unbounded)
        work = continuation
        count = Mutex(0)
        // Unstructured, since what runs is the owner's and not that of whoever makes it; the one task of an owner.
        task = Task {
            await withDiscardingTaskGroup { group in
                for await work in stream {
                    group.addTask { await work() }
                }
            }
        }
    }

    deinit { cancel() }

    /// Begins a piece of work.
    package func add(_ body: @escaping Work) {
        change(by: 1)
        work.yield { [weak self] in
            await body()
            self?.change(by: -1)
        }
    }

    private func change(by number: Int) {
        count.withLock { $0 += number }
        // Looked at again under the value's own lock: of two changes at once, what both made is what remains.
        isEmpty.update { count.withLock { $0 == 0 } }
    }

    /// Waits for all that was begun, and what that begins. Nothing can be begun any more afterwards.
    package func finish() async {
        await isEmpty.becomesTrue()
        work.finish()
        await task.value
    }

    /// Cancels all that was begun, without waiting.
    package func cancel() {
        work.finish()
        task.cancel()
    }
}
