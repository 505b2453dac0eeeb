public import Synchronization

/// A changing value, for any number of readers. A new reader receives the current value immediately. Values are not
/// queued, so a slow reader skips some. All readers receive the last value.
@usableFromInline package final class CurrentValue<Value: Sendable & Equatable>: Sendable {
    @usableFromInline struct State {
        @usableFromInline var value: Value
        @usableFromInline var version: UInt64
        @usableFromInline var isFinished: Bool
        @usableFromInline var waiters: [UInt64: Waiter<Void>]
        @usableFromInline var lastWaiter: UInt64

        @inlinable init(value: Value) {
            self.value = value
            (version, isFinished, waiters, lastWaiter) = (1, false, [:], 0)
        }
    }

    /// Guards the state: shared by the writers of the value and the tasks that wait for it.
    @usableFromInline let state: Mutex<State>

    @inlinable package init(_ value: Value) { state = Mutex(State(value: value)) }

    @inlinable package var value: Value { state.withLock { $0.value } }

    /// Changes the value. Does nothing after ``finish()``, or if the value is the same.
    /// - Parameter value: Returns the value. Called under the lock, so that the last of concurrent changes wins.
    @inlinable package func update(_ value: () -> Value) { change { $0 = value() } }

    /// Changes the value in place, under the lock, like ``update(_:)``.
    @inlinable package func change(_ body: (inout Value) -> Void) {
        wake { state in
            var value = state.value
            body(&value)
            guard value != state.value else { return false }
            state.value = value
            state.version += 1
            return true
        }
    }

    /// Ends the changes: every reader receives the last value, and then `nil`.
    @inlinable package func finish() {
        wake { state in
            state.isFinished = true
            return true
        }
    }

    @inlinable func wake(_ change: (inout State) -> Bool) {
        let waiters = state.withLock { state -> [UInt64: Waiter<Void>] in
            guard !state.isFinished, change(&state) else { return [:] }
            defer { if !state.waiters.isEmpty { state.waiters = [:] } }
            return state.waiters
        }
        for waiter in waiters.values { waiter.resume(returning: ()) }
    }

    /// Waits for a value other than the one seen last; `nil` at the end, or when the task is cancelled.
    /// - Parameter seen: The version that was returned with the last value; 0 at first.
    @inlinable package func next(after seen: UInt64) async -> (version: UInt64, value: Value)? {
        while true {
            let (version, value, isFinished, number) = state.withLock { state in
                state.lastWaiter += 1
                return (state.version, state.value, state.isFinished, state.lastWaiter)
            }
            if version != seen { return (version, value) }
            if isFinished || Task.isCancelled { return nil }
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

extension CurrentValue {
    /// Waits for a value that satisfies a condition, like ``next(after:)``.
    package func next(after seen: UInt64 = 0, where isWanted: (Value) -> Bool) async -> (version: UInt64, value: Value)?
    {
        var seen = seen
        while let (version, value) = await next(after: seen) {
            if isWanted(value) { return (version, value) }
            seen = version
        }
        return nil
    }
}

extension CurrentValue<Bool> {
    /// Waits until the value is `true`.
    /// - Returns: `false` if the value ended first, or the task was cancelled.
    @discardableResult package func becomesTrue() async -> Bool { await next { $0 } != nil }
}

/// A queue of values from any number of senders to any number of receiving tasks; each value goes to one task. The size
/// has no limit, so the senders must limit it. A mailbox costs a fraction of an `AsyncStream`, because its code is
/// specialized where it is used. A receiver that is cancelled does not end the mailbox for others.
@usableFromInline package final class Mailbox<Value: Sendable>: Sendable {
    @usableFromInline struct State {
        @usableFromInline var values: FIFOQueue<Value>
        @usableFromInline var isClosed: Bool
        /// The tasks that wait, while there are no values.
        @usableFromInline var waiters: FIFOQueue<(number: UInt64, waiter: Waiter<Value?>)>
        @usableFromInline var lastWaiter: UInt64

        @inlinable init() { (values, isClosed, waiters, lastWaiter) = (FIFOQueue(), false, FIFOQueue(), 0) }

        /// Returns the next value, or an inner `nil` at the end; an outer `nil` if the task has to wait.
        @inlinable mutating func takePresent() -> Value?? {
            if let value = values.popFirst() { return .some(value) }
            return isClosed || Task.isCancelled ? .some(nil) : nil
        }
    }

    /// Guards the state: shared by the senders and the receiving tasks.
    @usableFromInline let state: Mutex<State>

    @inlinable package init() { state = Mutex(State()) }

    /// Appends a value. Does nothing after ``close()``.
    @inlinable package func send(_ value: Value) { post(value)?.resume(returning: value) }

    /// Appends a value like ``send(_:)``, for a sender that holds a lock.
    /// - Returns: The waiter to resume with the value after the lock is released.
    @inlinable package func post(_ value: Value) -> Waiter<Value?>? {
        state.withLock { state in
            guard !state.isClosed else { return nil }
            if let first = state.waiters.popFirst() { return first.waiter }
            state.values.append(value)
            return nil
        }
    }

    /// Closes the mailbox. Queued values are still delivered.
    @inlinable package func close() {
        let waiters = state.withLock { state in
            state.isClosed = true
            defer { state.waiters = FIFOQueue() }
            return state.waiters
        }
        for (_, waiter) in waiters { waiter.resume(returning: nil) }
    }

    /// Waits for the next value. Returns `nil` if no value is left after ``close()``, or when the task is cancelled.
    @inlinable package func next() async -> Value? {
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

/// A subscription to a value that is updated only while it has subscribers.
package final class WatchSubscription<Value: Sendable & Equatable>: Sendable {
    private let newest: CurrentValue<Value?>
    private let end: @Sendable () -> Void

    /// Subscribes to a value, which is `nil` until it is known. Releasing the subscription calls the closure.
    package init(to newest: CurrentValue<Value?>, end: @escaping @Sendable () -> Void) {
        (self.newest, self.end) = (newest, end)
    }

    deinit { end() }

    /// Waits for a value other than the one seen last; `nil` when the task is cancelled.
    package func next(after seen: UInt64) async -> (version: UInt64, value: Value)? {
        let next = await newest.next(after: seen) { $0 != nil }
        return next.flatMap { (version, value) in value.map { (version, $0) } }
    }
}

/// A reader of a changing value: each value differs from the one before.
package struct ValueReader<Value: Sendable & Equatable>: Sendable {
    private let take: @Sendable (UInt64) async -> (version: UInt64, value: Value)?
    private var seen: UInt64 = 0

    /// Reads the values of a subscription, and retains it.
    package init(_ subscription: WatchSubscription<Value>) { take = { await subscription.next(after: $0) } }

    /// Reads the values of a variable.
    package init(_ value: CurrentValue<Value>) { take = { await value.next(after: $0) } }

    /// Waits for a value other than the one before; `nil` at the end, or when the task is cancelled.
    package mutating func next() async -> Value? {
        guard let found = await take(seen) else { return nil }
        seen = found.version
        return found.value
    }
}
