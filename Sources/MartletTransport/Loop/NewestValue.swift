public import DequeModule
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
    @inlinable package init(_ value: Value) { state = Mutex(State(value: value)) }

    /// The present value.
    @inlinable package var value: Value { state.withLock { $0.value } }

    /// Changes the value; nothing after the end, or where it is what it was.
    /// - Parameter value: Called under the lock, so that of several changes at once the last has the last word.
    @inlinable package func update(_ value: () -> Value) { change { $0 = value() } }

    /// Changes the value in place, under the lock; else as ``update(_:)``.
    @inlinable
    package func change(_ body: (inout Value) -> Void) {
        wake { state in
            var value = state.value
            body(&value)
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

extension NewestValue {
    /// The newest value once it is one that is wanted; else as ``next(after:)``.
    package func next(
        after seen: UInt64 = 0, where isWanted: (Value) -> Bool
    ) async -> (version: UInt64, value: Value)? {
        var seen = seen
        while let (version, value) = await next(after: seen) {
            if isWanted(value) { return (version, value) }
            seen = version
        }
        return nil
    }
}

extension NewestValue<Bool> {
    /// Waits until it is true.
    /// - Returns: Whether it is; `false` when it has ended before, or the task was cancelled.
    @discardableResult package func becomesTrue() async -> Bool { await next { $0 } != nil }
}

/// Values from any number of senders for tasks that take them, each in its turn. It holds as many as are sent: whoever sends
/// sees to it that they are few.
///
/// It does what an `AsyncStream` does, at a part of its cost, since its code is specialized where it is used. Any number of
/// tasks may wait, and one that is cancelled ends it for none of the others.
@usableFromInline
package final class Mailbox<Value: Sendable>: Sendable {
    @usableFromInline
    struct State {
        @usableFromInline var values: Deque<Value>
        @usableFromInline var isClosed: Bool
        /// Those who wait, while there are no values.
        @usableFromInline var waiters: Deque<(number: UInt64, waiter: Waiter<Value?>)>
        @usableFromInline var lastWaiter: UInt64

        @inlinable init() { (values, isClosed, waiters, lastWaiter) = (Deque(), false, Deque(), 0) }

        /// What a task gets that does not wait; nil where it has to.
        @inlinable
        mutating func takePresent() -> Value?? {
            if let value = values.popFirst() { return .some(value) }
            return isClosed || Task.isCancelled ? .some(nil) : nil
        }
    }

    /// Guards the above: senders, and the tasks that take.
    @usableFromInline let state: Mutex<State>

    /// An empty one.
    @inlinable package init() { state = Mutex(State()) }

    /// Adds a value behind those that are there; nothing after the end.
    @inlinable package func send(_ value: Value) { post(value)?.resume(returning: value) }

    /// As ``send(_:)``, for a sender that holds a lock.
    /// - Returns: Who is to be resumed with the value, once it does not.
    @inlinable
    package func post(_ value: Value) -> Waiter<Value?>? {
        state.withLock { state in
            guard !state.isClosed else { return nil }
            if let first = state.waiters.popFirst() { return first.waiter }
            state.values.append(value)
            return nil
        }
    }

    /// No value comes any more behind those that are there.
    @inlinable
    package func close() {
        let waiters = state.withLock { state in
            state.isClosed = true
            defer { state.waiters = Deque() }
            return state.waiters
        }
        for (_, waiter) in waiters { waiter.resume(returning: nil) }
    }

    /// The next value.
    /// - Returns: Where none is there, `nil` at the end, and when the task is cancelled.
    @inlinable
    package func next() async -> Value? {
        let (present, number) = state.withLock { state -> (Value??, UInt64) in
            if let present = state.takePresent() { return (present, 0) }
            state.lastWaiter += 1
            return (nil, state.lastWaiter)
        }
        if let present { return present }
        return await withTaskCancellationHandler {
            await suspend { (waiter: Waiter<Value?>) in
                let present = state.withLock { state -> Value?? in
                    if let present = state.takePresent() { return present }
                    state.waiters.append((number, waiter))
                    return nil
                }
                if let present { waiter.resume(returning: present) }
            }
        } onCancel: {
            let waiter = state.withLock { state in
                state.waiters.firstIndex { $0.number == number }.map { state.waiters.remove(at: $0).waiter }
            }
            waiter?.resume(returning: nil)
        }
    }
}
