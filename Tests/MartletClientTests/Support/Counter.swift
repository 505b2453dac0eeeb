import Synchronization

/// A count that several tasks add to.
final class Counter: Sendable {
    private let value = Mutex(0)

    /// The count.
    var count: Int { value.withLock { $0 } }

    /// Adds one, and returns the count.
    func next() -> Int {
        value.withLock {
            $0 += 1
            return $0
        }
    }

    /// Adds one.
    func add() { value.withLock { $0 += 1 } }
}
