import Synchronization

/// A flag for whether an operation has reached a point.
final class Reached: Sendable {
    private let state = Mutex(false)

    var isReached: Bool { state.withLock { $0 } }

    func note() { state.withLock { $0 = true } }
}
