import Synchronization

/// Whether something has come to pass.
final class Flag: Sendable {
    /// Guards it: who raises it, and who looks.
    private let state = Mutex(false)

    /// Whether it has.
    var isRaised: Bool { state.withLock { $0 } }

    /// Says that it has.
    func raise() { state.withLock { $0 = true } }
}
