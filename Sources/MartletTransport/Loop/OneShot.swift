import Synchronization

/// A value that one task waits for and another delivers, once; or a deadline, or an interruption, whichever is first.
///
/// What settles it is decided under a lock; the loser of a race is told that it lost, and can take back what it brought.
package final class OneShot<Value: Sendable>: TimerTarget {
    /// How the wait ended.
    package enum Outcome: Sendable {
        /// The value came.
        case value(Value)
        /// The deadline passed first.
        case timedOut
        /// ``interrupt()`` was called first.
        case interrupted
    }

    private struct State {
        var outcome: Outcome?
        var waiter: Waiter<Outcome>?
    }

    private let state = Mutex(State())

    /// One that is not settled.
    package init() {}

    /// Delivers the value.
    /// - Returns: Whether it came first. If not, nobody will see it.
    @discardableResult
    package func fulfil(_ value: Value) -> Bool {
        settle(.value(value))
    }

    /// Ends the wait with ``Outcome/interrupted``.
    /// - Returns: Whether it came first.
    @discardableResult
    package func interrupt() -> Bool {
        settle(.interrupted)
    }

    private func settle(_ outcome: Outcome) -> Bool {
        let (won, waiter) = state.withLock { state -> (Bool, Waiter<Outcome>?) in
            guard state.outcome == nil else { return (false, nil) }
            state.outcome = outcome
            return (true, state.waiter.take())
        }
        waiter?.resume(returning: outcome)
        return won
    }

    /// Waits for what comes first. One task may wait, once.
    package func wait(until deadline: MonotonicTime, on loop: EventLoop) async -> Outcome {
        let resumed = await suspend { (waiter: Waiter<Outcome>) in
            let outcome = state.withLock { state -> Outcome? in
                if let outcome = state.outcome { return outcome }
                state.waiter = waiter
                return nil
            }
            if let outcome {
                waiter.resume(returning: outcome)
            } else if deadline != .distantFuture {
                loop.schedule(self, token: 0, at: deadline)
            }
        }
        // Read again under the lock: a continuation that is resumed before its task has quite suspended hands its value
        // over in a way that the thread sanitizer does not see.
        return state.withLock { $0.outcome } ?? resumed
    }

    /// Waits as ``wait(until:on:)`` does, and is interrupted when the task is cancelled.
    package func waitUnlessCancelled(until deadline: MonotonicTime, on loop: EventLoop) async -> Outcome {
        await withTaskCancellationHandler {
            await wait(until: deadline, on: loop)
        } onCancel: {
            interrupt()
        }
    }

    package func timerFired(token: UInt64, now: MonotonicTime) -> MonotonicTime? {
        _ = settle(.timedOut)
        return nil
    }
}

/// Runs code of the program in a task of its own, and waits for it until the running task is cancelled.
///
/// The task of the code is cancelled then, and nobody waits for it, since it may never return.
/// - Throws: What the code throws; `CancellationError`.
package func waitUnlessCancelled<Value: Sendable>(
    for code: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    let outcome = OneShot<Result<Value, any Error>>()
    let task = Task {
        do {
            outcome.fulfil(.success(try await code()))
        } catch {
            outcome.fulfil(.failure(error))
        }
    }
    let ended = await outcome.waitUnlessCancelled(until: .distantFuture, on: .sharedOrStalled)
    guard case .value(let result) = ended else {
        task.cancel()
        throw CancellationError()
    }
    return try result.get()
}
