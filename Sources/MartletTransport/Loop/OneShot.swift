import Synchronization

/// A value that one task waits for and another delivers once. A deadline or an interruption may end the wait first. Of
/// these three, the first sets the outcome; the calls for the others return `false`.
package final class OneShot<Value: Sendable>: TimerTarget {
    package enum Outcome: Sendable {
        case value(Value)
        case timedOut
        /// ``interrupt()`` was called first.
        case interrupted

        /// Returns the delivered value.
        /// - Throws: `.timedOut` or `.interrupted` without a value.
        func get() throws(TransportError) -> Value {
            switch self {
            case .value(let value): return value
            case .timedOut: throw .timedOut
            case .interrupted: throw .interrupted
            }
        }
    }

    private let state = Mutex<(outcome: Outcome?, waiter: Waiter<Outcome>?)>((nil, nil))

    package init() {}

    /// Delivers the value.
    /// - Returns: Whether the value came first. If not, it is discarded.
    @discardableResult package func fulfill(_ value: Value) -> Bool { settle(.value(value)) }

    /// Ends the wait with ``Outcome/interrupted``.
    /// - Returns: Whether the interruption came first.
    @discardableResult package func interrupt() -> Bool { settle(.interrupted) }

    private func settle(_ outcome: Outcome) -> Bool {
        let (won, waiter) = state.withLock { state -> (Bool, Waiter<Outcome>?) in
            guard state.outcome == nil else { return (false, nil) }
            state.outcome = outcome
            return (true, state.waiter.take())
        }
        waiter?.resume(returning: outcome)
        return won
    }

    /// Waits for the value, the deadline or an interruption, whatever comes first. One task may wait, once.
    package func wait(until deadline: MonotonicTime, on loop: EventLoop) async -> Outcome {
        let resumed = await suspend { (waiter: Waiter<Outcome>) in
            let outcome = state.withLock { state in
                if state.outcome == nil { state.waiter = waiter }
                return state.outcome
            }
            if let outcome {
                waiter.resume(returning: outcome)
            } else if deadline != .distantFuture {
                loop.schedule(self, token: 0, at: deadline)
            }
        }
        // Read again under the lock: the thread sanitizer does not see how a continuation passes its value if it is
        // resumed before its task has fully suspended.
        return state.withLock { $0.outcome } ?? resumed
    }

    /// Waits like ``wait(until:on:)``, and returns ``Outcome/interrupted`` when the task is cancelled.
    package func waitUnlessCancelled(until deadline: MonotonicTime, on loop: EventLoop) async -> Outcome {
        await withTaskCancellationHandler {
            await wait(until: deadline, on: loop)
        } onCancel: {
            interrupt()
        }
    }

    /// Waits like ``waitUnlessCancelled(until:on:)`` without a deadline, so no loop is involved.
    package func waitUnlessCancelled() async -> Outcome {
        await waitUnlessCancelled(until: .distantFuture, on: .sharedOrStalled)
    }

    package func timerFired(token: UInt64, now: MonotonicTime) -> MonotonicTime? {
        _ = settle(.timedOut)
        return nil
    }
}

extension OneShot {
    /// Runs code in its own task, and waits for its value until the deadline, or until the running task is cancelled.
    /// The code's task is then cancelled and no longer awaited: the code may never return.
    /// - Parameter late: Receives a value that arrives too late.
    static func run(
        until deadline: MonotonicTime, on loop: EventLoop, late: @escaping @Sendable (Value) -> Void = { _ in },
        _ code: @escaping @Sendable () async -> Value
    ) async -> Outcome {
        let shot = OneShot()
        let task = Task {
            let value = await code()
            if !shot.fulfill(value) { late(value) }
        }
        defer { task.cancel() }
        return await shot.waitUnlessCancelled(until: deadline, on: loop)
    }
}

/// Runs user code in its own task, and waits for it until the running task is cancelled. The code's task is then
/// cancelled and no longer awaited, since it may never return.
/// - Throws: The error of the code; `CancellationError`.
package func waitUnlessCancelled<Value: Sendable>(for code: @escaping @Sendable () async throws -> Value) async throws
    -> Value
{
    let ended = await OneShot<Result<Value, any Error>>.run(until: .distantFuture, on: .sharedOrStalled) {
        do { return .success(try await code()) } catch { return .failure(error) }
    }
    guard case .value(let result) = ended else { throw CancellationError() }
    return try result.get()
}
