import MartletTransport
import Synchronization

/// A result that any number of tasks wait for, each of which may be cancelled by itself.
///
/// Awaiting `Task.value` would not do: there a cancelled waiter neither returns early nor leaves the others in peace.
final class Outcome<Value: Sendable>: Sendable {
    private struct State {
        var result: Result<Value, any Error>?
        var waiters: [UInt64: Waiter<Result<Value, any Error>>] = [:]
        var lastWaiter: UInt64 = 0
    }

    /// Guards the above: the one that settles it, and those that wait.
    private let state = Mutex(State())

    /// The result, once there is one.
    var settled: Result<Value, any Error>? {
        state.withLock { $0.result }
    }

    /// Settles it; the first result counts.
    func settle(_ result: Result<Value, any Error>) {
        let waiters = state.withLock { state -> [UInt64: Waiter<Result<Value, any Error>>] in
            guard state.result == nil else { return [:] }
            state.result = result
            let waiters = state.waiters
            state.waiters = [:]
            return waiters
        }
        for waiter in waiters.values { waiter.resume(returning: result) }
    }

    /// Settles it, or changes the value that it was settled with: a later attempt has another.
    func replace(with value: Value) {
        let waiters = state.withLock { state -> [UInt64: Waiter<Result<Value, any Error>>] in
            state.result = .success(value)
            defer { state.waiters = [:] }
            return state.waiters
        }
        for waiter in waiters.values { waiter.resume(returning: .success(value)) }
    }

    /// The value; throws `CancellationError` when the waiting task is cancelled first.
    var value: Value {
        get async throws {
            let number = state.withLock { state in
                state.lastWaiter += 1
                return state.lastWaiter
            }
            let result = await withTaskCancellationHandler {
                await suspend { (waiter: Waiter<Result<Value, any Error>>) in
                    let early = state.withLock { state -> Result<Value, any Error>? in
                        if let result = state.result { return result }
                        if Task.isCancelled { return .failure(CancellationError()) }
                        state.waiters[number] = waiter
                        return nil
                    }
                    if let early { waiter.resume(returning: early) }
                }
            } onCancel: {
                let waiter = state.withLock { $0.waiters.removeValue(forKey: number) }
                waiter?.resume(returning: .failure(CancellationError()))
            }
            // Read again under the lock, as OneShot does and for the same reason.
            return try (state.withLock { $0.result } ?? result).get()
        }
    }
}
