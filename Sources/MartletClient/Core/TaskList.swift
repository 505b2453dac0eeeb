import Synchronization

/// The tasks of a session that have not ended.
final class TaskList: Sendable {
    /// Guards them: each task's beginning and end, and those who ask.
    private let running = Mutex<[UInt64: HTTPTask]>([:])

    /// The tasks, in the order they were made.
    var all: [HTTPTask] {
        running.withLock { $0.values.sorted { $0.id < $1.id } }
    }

    func add(_ task: HTTPTask) {
        running.withLock { $0[task.id] = task }
    }

    func remove(_ id: UInt64) {
        // Let go of behind the lock.
        _ = running.withLock { $0.removeValue(forKey: id) }
    }
}
