import MartletCache
import Synchronization

/// Who wants to know when a stored body is stored no longer, as long as they are there.
final class BodyEnds: Sendable {
    /// Is told which body; says whether it wants to be told of others.
    typealias Listener = @Sendable (UInt64) -> Bool

    private struct State {
        var listeners: [UInt64: Listener] = [:]
        var last: UInt64 = 0
        var isFollowing = false
    }

    /// Guards the above: those who come, and whoever ends a body.
    private let state = Mutex(State())

    /// Adds one who wants to know.
    func add(_ listener: @escaping Listener, following store: ResponseStore) {
        let isFirst = state.withLock { state in
            state.last += 1
            state.listeners[state.last] = listener
            defer { state.isFollowing = true }
            return !state.isFollowing
        }
        // The store does work for being followed, and so is only where somebody does.
        guard isFirst else { return }
        store.whenRepresentationEnds { [weak self] _, representation in self?.tell(representation) }
    }

    private func tell(_ representation: UInt64) {
        let listeners = state.withLock { $0.listeners }
        for (number, listener) in listeners where !listener(representation) {
            // Ended outside of the lock, since it may hold the last reference to something.
            let gone = state.withLock { $0.listeners.removeValue(forKey: number) }
            withExtendedLifetime(gone) {}
        }
    }
}
