import Synchronization

/// A state with a lock, and the tasks that wait until the state changes.
///
/// Each change resumes all waiting tasks, which then check the state again. Closures run under the lock.
final class GuardedState<State: Sendable>: Sendable {
    private struct Content {
        var state: State
        /// The number of changes. A task compares it before it waits, to detect a change since its last check.
        var version: UInt64 = 0
        var waiters: [UInt64: Waiter<Void>] = [:]
        var lastWaiter: UInt64 = 0
    }

    /// The lock on the state and the waiters, used by tasks that change the state, and by those that wait for it.
    private let content: Mutex<Content>

    init(_ state: State) { content = Mutex(Content(state: state)) }

    /// Accesses the state, without resuming the waiting tasks.
    func withLock<Result: Sendable>(_ body: (inout State) -> Result) -> Result { content.withLock { body(&$0.state) } }

    /// Changes the state and resumes the waiting tasks.
    func change<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
        let (result, waiters) = content.withLock { content -> (Result, [UInt64: Waiter<Void>]?) in
            let result = body(&content.state)
            content.version += 1
            guard !content.waiters.isEmpty else { return (result, nil) }
            defer { content.waiters = [:] }
            return (result, content.waiters)
        }
        if let waiters { for waiter in waiters.values { waiter.resume(returning: ()) } }
        return result
    }

    /// Waits until a closure finds a value in the state. The closure may remove the value from the state.
    /// - Returns: The value; `nil` if the task is cancelled first.
    func next<Value: Sendable>(_ take: (inout State) -> Value?) async -> Value? {
        await next(isCancellable: true, take)
    }

    /// Waits for a condition, also in a cancelled task.
    func wait(until isMet: (State) -> Bool) async { _ = await next(isCancellable: false) { isMet($0) ? true : nil } }

    private func next<Value: Sendable>(isCancellable: Bool, _ take: (inout State) -> Value?) async -> Value? {
        while true {
            // Under the lock, because the thread sanitizer does not see that a change precedes the resumption.
            let (value, version, number) = content.withLock { content -> (Value?, UInt64, UInt64) in
                content.lastWaiter += 1
                return (take(&content.state), content.version, content.lastWaiter)
            }
            if let value { return value }
            if isCancellable, Task.isCancelled { return nil }
            await withTaskCancellationHandler {
                await suspend { (waiter: Waiter<Void>) in
                    let isLate = content.withLock { content in
                        if content.version != version || isCancellable && Task.isCancelled { return true }
                        content.waiters[number] = waiter
                        return false
                    }
                    if isLate { waiter.resume(returning: ()) }
                }
            } onCancel: {
                guard isCancellable else { return }
                let waiter = content.withLock { $0.waiters.removeValue(forKey: number) }
                waiter?.resume(returning: ())
            }
        }
    }
}

/// A result that any number of tasks can wait for. Cancelling a waiting task ends only its wait.
///
/// `Task.value` cannot be used, because a cancelled waiter does not return early there.
package final class Promise<Value: Sendable>: Sendable {
    private let state = GuardedState<Result<Value, any Error>?>(nil)

    package init() {}

    /// The result; `nil` until it is set.
    var settled: Result<Value, any Error>? { state.withLock { $0 } }

    /// Sets the result. Only the first call has an effect.
    package func settle(_ result: Result<Value, any Error>) { state.change { $0 = $0 ?? result } }

    /// Sets the value, or replaces an earlier one, for example after another attempt.
    func replace(with value: Value) { state.change { $0 = .success(value) } }

    /// The value; waits for the result. Throws its error, or `CancellationError` if the waiting task is cancelled.
    package var value: Value {
        get async throws {
            guard let result = await state.next({ $0 }) else { throw CancellationError() }
            return try result.get()
        }
    }
}
