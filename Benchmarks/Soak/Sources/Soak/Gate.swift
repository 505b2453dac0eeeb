import Synchronization

/// A gate that holds tasks until it is opened.
final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var held: [CheckedContinuation<Void, Never>] = []
    }

    /// The held tasks, shared with the code that opens the gate.
    private let state = Mutex(State())

    /// The number of held tasks.
    var heldCount: Int { state.withLock { $0.held.count } }

    /// Returns when the gate is open.
    func pass() async {
        await withCheckedContinuation { continuation in
            let isOpen = state.withLock { state in
                if !state.isOpen { state.held.append(continuation) }
                return state.isOpen
            }
            if isOpen { continuation.resume() }
        }
    }

    /// Releases all held tasks and lets later ones pass.
    func open() {
        let held = state.withLock { state in
            state.isOpen = true
            defer { state.held = [] }
            return state.held
        }
        for continuation in held { continuation.resume() }
    }

    /// Holds the tasks that arrive from now on.
    func shut() {
        state.withLock { $0.isOpen = false }
    }
}
