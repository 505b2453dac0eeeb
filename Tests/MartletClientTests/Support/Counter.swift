import Synchronization

/// A counter that several tasks may increment.
final class Counter: Sendable {
    private let value = Mutex(0)

    /// The current count.
    var count: Int { value.withLock { $0 } }

    /// Increments the count and returns it.
    func next() -> Int {
        value.withLock {
            $0 += 1
            return $0
        }
    }

    /// Increments the count.
    func add() { value.withLock { $0 += 1 } }
}
