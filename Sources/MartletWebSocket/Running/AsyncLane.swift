import MartletCore
import Synchronization

/// A lane that one task at a time holds, in the order of the calls. A task that is cancelled while it waits leaves the
/// lane. After ``close()`` no task waits any more.
final class AsyncLane: Sendable {
    private struct State {
        var isHeld = false
        var isClosed = false
        var waiters: [OneShot<Void>] = []
    }

    /// Guards whether the lane is held, and the tasks that wait for it.
    private let state = Mutex(State())

    /// Waits for the lane.
    /// - Throws: `CancellationError` in a cancelled task and after ``close()``; the task then does not hold the lane.
    func acquire() async throws {
        try Task.checkCancellation()
        let (turn, isClosed) = state.withLock { state -> (OneShot<Void>?, Bool) in
            if state.isClosed { return (nil, true) }
            guard state.isHeld else {
                state.isHeld = true
                return (nil, false)
            }
            let turn = OneShot<Void>()
            state.waiters.append(turn)
            return (turn, false)
        }
        if isClosed { throw CancellationError() }
        guard let turn else { return }
        if case .value = await turn.waitUnlessCancelled() { return }
        state.withLock { state in state.waiters.removeAll { $0 === turn } }
        throw CancellationError()
    }

    /// Ends all waits. The task that holds the lane is not interrupted.
    func close() {
        let waiters = state.withLock { state in
            defer { (state.isClosed, state.waiters) = (true, []) }
            return state.waiters
        }
        for waiter in waiters { waiter.interrupt() }
    }

    /// Passes the lane to the next task that waits.
    func release() {
        while true {
            let next = state.withLock { state -> OneShot<Void>? in
                guard !state.waiters.isEmpty else {
                    state.isHeld = false
                    return nil
                }
                return state.waiters.removeFirst()
            }
            guard let next else { return }
            // `false` for a task that was cancelled in the meantime.
            if next.fulfill(()) { return }
        }
    }
}
