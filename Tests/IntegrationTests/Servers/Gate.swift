import Synchronization

/// Suspends its callers until a test has observed an expected state.
///
/// A handler that waits here is not cancelled: the test has to open the gate before it stops the origin.
final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var line: [CheckedContinuation<Void, Never>] = []
    }

    /// Changed by the callers, and by the test that opens the gate.
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

    /// Resumes all current and later callers.
    func open() {
        let line = state.withLock { state in
            state.isOpen = true
            defer { state.line = [] }
            return state.line
        }
        for continuation in line { continuation.resume() }
    }
}
