public import Synchronization

/// A value that changes, of which everybody who looks sees the newest: state, not events.
///
/// Who comes late gets the present value at once; who is slow skips what it missed and is never queued for; the last value
/// is seen by all before the end. Any number of tasks may wait.
@usableFromInline
package final class NewestValue<Value: Sendable & Equatable>: Sendable {
    @usableFromInline
    struct State {
        @usableFromInline var value: Value
        @usableFromInline var version: UInt64
        @usableFromInline var isFinished: Bool
        @usableFromInline var waiters: [UInt64: Waiter<Void>]
        @usableFromInline var lastWaiter: UInt64

        @inlinable
        init(value: Value) {
            self.value = value
            (version, isFinished, waiters, lastWaiter) = (1, false, [:], 0)
        }
    }

    /// Guards the above: whoever changes the value, and who waits for it.
    @usableFromInline let state: Mutex<State>

    /// A value to begin with.
    @inlinable
    package init(_ value: Value) {
        state = Mutex(State(value: value))
    }

    /// The present value.
    @inlinable package var value: Value { state.withLock { $0.value } }

    /// Changes the value; nothing after the end, or where it is what it was.
    /// - Parameter value: Called under the lock, so that of several changes at once the last has the last word.
    @inlinable
    package func update(_ value: () -> Value) {
        wake { state in
            let value = value()
            guard value != state.value else { return false }
            state.value = value
            state.version += 1
            return true
        }
    }

    /// Ends all waits, once they have seen the last value.
    @inlinable
    package func finish() {
        wake { state in
            state.isFinished = true
            return true
        }
    }

    @inlinable
    func wake(_ change: (inout State) -> Bool) {
        let waiters = state.withLock { state -> [UInt64: Waiter<Void>] in
            guard !state.isFinished else { return [:] }
            guard change(&state) else { return [:] }
            defer { if !state.waiters.isEmpty { state.waiters = [:] } }
            return state.waiters
        }
        for waiter in waiters.values { waiter.resume(returning: ()) }
    }

    /// The newest value, once there is another than the one seen last; `nil` at the end, or when the task is cancelled.
    /// - Parameter seen: The version that was returned with the last value; 0 at first.
    @inlinable
    package func next(after seen: UInt64) async -> (version: UInt64, value: Value)? {
        while true {
            let (version, value, isFinished) = state.withLock { ($0.version, $0.value, $0.isFinished) }
            if version != seen { return (version, value) }
            if isFinished || Task.isCancelled { return nil }
            let number = state.withLock { state in
                state.lastWaiter += 1
                return state.lastWaiter
            }
            await withTaskCancellationHandler {
                await suspend { (waiter: Waiter<Void>) in
                    let isLate = state.withLock { state in
                        if state.version != seen || state.isFinished || Task.isCancelled { return true }
                        state.waiters[number] = waiter
                        return false
                    }
                    if isLate { waiter.resume(returning: ()) }
                }
            } onCancel: {
                let waiter = state.withLock { $0.waiters.removeValue(forKey: number) }
                waiter?.resume(returning: ())
            }
        }
    }
}
