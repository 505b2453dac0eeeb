import CLinux
import Glibc
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
    @discardableResult package func fulfil(_ value: Value) -> Bool { settle(.value(value)) }

    /// Ends the wait with ``Outcome/interrupted``.
    /// - Returns: Whether it came first.
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

/// The continuation a waiting task is resumed through, exactly once.
///
/// Debug builds, which the tests run, use the checked one, so that a continuation resumed twice or lost is seen; release
/// builds use the unchecked one, which spares an allocation for every wait.
@safe @usableFromInline
package struct Waiter<Value: Sendable>: Sendable {
    #if DEBUG
        private let continuation: CheckedContinuation<Value, Never>
        fileprivate init(_ continuation: CheckedContinuation<Value, Never>) {
            self.continuation = continuation
        }
    #else
        private let continuation: UnsafeContinuation<Value, Never>
        fileprivate init(_ continuation: UnsafeContinuation<Value, Never>) {
            unsafe self.continuation = continuation
        }
    #endif

    /// Lets the task go on with a value. Never under a lock: the task may start at once.
    @usableFromInline
    package func resume(returning value: Value) {
        #if DEBUG
            continuation.resume(returning: value)
        #else
            unsafe continuation.resume(returning: value)
        #endif
    }
}

/// Suspends the task and hands its continuation to a closure, which must see to it that it is resumed exactly once.
@usableFromInline
package func suspend<Value: Sendable>(
    isolation: isolated (any Actor)? = #isolation, _ body: (Waiter<Value>) -> Void
) async -> Value {
    #if DEBUG
        await withCheckedContinuation(isolation: isolation) { body(Waiter($0)) }
    #else
        await unsafe withUnsafeContinuation(isolation: isolation) { unsafe body(Waiter($0)) }
    #endif
}

/// A counting semaphore of the system's, to block a thread of our own on; never a thread of Swift's pool.
///
/// `@unchecked Sendable`: the pointer is set once, and what it points at is the system's to guard.
@safe final class Semaphore: @unchecked Sendable {
    private let pointer: UnsafeMutablePointer<sem_t>

    init() {
        unsafe pointer = .allocate(capacity: 1)
        unsafe sem_init(pointer, 0, 0)
    }

    deinit {
        unsafe sem_destroy(pointer)
        unsafe pointer.deallocate()
    }

    /// Adds one.
    func signal() { unsafe sem_post(pointer) }

    /// Takes one, waiting for it if need be.
    /// - Returns: Whether there was one before the time was up.
    func wait(seconds: Int) -> Bool {
        var limit = timespec()
        unsafe clock_gettime(CLOCK_REALTIME, &limit)
        limit.tv_sec += seconds
        while unsafe sem_timedwait(pointer, &limit) != 0 {
            if errno != EINTR { return false }
        }
        return true
    }
}
