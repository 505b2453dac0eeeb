import Synchronization

/// Holds up whoever comes until a test has seen what it waits for.
///
/// A handler that waits here is not cancelled: whoever makes a gate opens it before the origin is stopped.
final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var line: [CheckedContinuation<Void, Never>] = []
    }

    /// Changed by those who come, and by the one who opens.
    private let state = Mutex(State())

    /// Returns when the gate is open.
    func pass() async {
        await withCheckedContinuation { continuation in
            let isOpen = state.withLock { state in
                if !state.isOpen { state.line.append(continuation) }
                return state.isOpen
            }
            if isOpen { continuation.resume() }
        }
    }

    /// Lets through who waits, and whoever comes later.
    func open() {
        let line = state.withLock { state in
            state.isOpen = true
            defer { state.line = [] }
            return state.line
        }
        for continuation in line { continuation.resume() }
    }
}
