import Synchronization

/// Holds tasks until it is opened.
final class Turnstile: Sendable {
    private struct State {
        var isOpen = false
        var held: [CheckedContinuation<Void, Never>] = []
    }

    /// Guards who is held: handlers' tasks, and the test.
    private let state = Mutex(State())

    /// How many are held.
    var heldCount: Int { state.withLock { $0.held.count } }

    /// Returns when it is open.
    func pass() async {
        await withCheckedContinuation { continuation in
            let isOpen = state.withLock { state in
                if !state.isOpen { state.held.append(continuation) }
                return state.isOpen
            }
            if isOpen { continuation.resume() }
        }
    }

    /// Lets all pass, those that come later too.
    func open() {
        let held = state.withLock { state in
            state.isOpen = true
            defer { state.held = [] }
            return state.held
        }
        for continuation in held { continuation.resume() }
    }
}
