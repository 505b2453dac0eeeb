import Synchronization

/// A flag that can be raised once.
final class Flag: Sendable {
    /// The state, shared by the raiser and the observers.
    private let state = Mutex(false)

    /// Whether the flag was raised.
    var isRaised: Bool { state.withLock { $0 } }

    /// Raises the flag permanently.
    func raise() { state.withLock { $0 = true } }
}
