public import DequeModule
public import Synchronization

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

        @inlinable
        init() {
            (values, isClosed, waiters, lastWaiter) = (Deque(), false, Deque(), 0)
        }

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
    @inlinable
    package init() {
        state = Mutex(State())
    }

    /// Adds a value behind those that are there; nothing after the end.
    @inlinable
    package func send(_ value: Value) {
        post(value)?.resume(returning: value)
    }

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
