import CMartletOpenSSL
import Glibc
import Synchronization

/// A few threads for calls that block: name resolution, file reads, loading of trust stores. Swift's cooperative pool
/// has one thread per core; one blocking call there would stop half of a small machine. A thread starts if work is
/// queued and no thread is idle, up to the limit, and ends after ten idle seconds.
package final class BlockingThreadPool: Sendable {
    private struct State {
        var work = FIFOQueue<@Sendable () -> Void>()
        var threadCount = 0
        var idleCount = 0
    }

    /// The result of a closure, for the task that waits for it.
    private final class ResultBox<Value: Sendable>: Sendable { let value = Mutex<Value?>(nil) }

    private let state = Mutex(State())
    private let threadLimit: Int
    private let stackByteCount: Int?
    /// Counts the queued closures. Idle threads wait for it.
    private let semaphore = Semaphore()
    /// The pool that all sessions share.
    package static let shared = BlockingThreadPool(threadLimit: 4)

    /// Creates a pool without threads.
    /// - Parameters:
    ///   - threadLimit: The maximum number of threads.
    ///   - stackByteCount: The size of each thread's stack; `nil` for the system's default, mostly 8 MiB.
    package init(threadLimit: Int, stackByteCount: Int? = nil) {
        self.threadLimit = max(1, threadLimit)
        self.stackByteCount = stackByteCount
    }

    package var threadCount: Int { state.withLock { $0.threadCount } }

    /// Runs a blocking closure on a worker and returns its result. Cancelling the task does not stop the closure, since
    /// a blocking call cannot be stopped; callers that must return earlier race it with another event.
    package func run<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
        let box = ResultBox<Value>()
        let resumed = await suspend { (waiter: Waiter<Value>) in
            submit {
                let value = body()
                box.value.withLock { $0 = value }
                waiter.resume(returning: value)
            }
        }
        // Read again under the lock, for the same reason as in OneShot.
        return box.value.withLock { $0 } ?? resumed
    }

    /// Runs a blocking closure that may throw, like ``run(_:)``.
    package func run<Value: Sendable, Failure: Error>(throwing body: @escaping @Sendable () throws(Failure) -> Value)
        async throws(Failure) -> Value
    { try await run { Result(catching: body) }.get() }

    /// Queues a closure to run on a worker, without waiting for its result.
    package func submit(_ body: @escaping @Sendable () -> Void) {
        let mustStart = state.withLock { state in
            state.work.append(body)
            guard state.idleCount < state.work.count, state.threadCount < threadLimit else { return false }
            state.threadCount += 1
            return true
        }
        if mustStart {
            do throws(SystemError) {
                try Thread.start(name: "martlet-worker", stackByteCount: stackByteCount) { self.serve() }
            } catch {
                // If the pool has no other thread, the caller's thread does the work. Otherwise it must not, because
                // callers rely on the limit of threads, and with one thread on the order.
                while let work = state.withLock({ state -> (@Sendable () -> Void)? in
                    let next = state.threadCount == 1 ? state.work.popFirst() : nil
                    if next == nil { state.threadCount -= 1 }
                    return next
                }) { work() }
            }
        }
        semaphore.signal()
    }

    private func serve() {
        while true {
            state.withLock { $0.idleCount += 1 }
            let signaled = semaphore.wait(seconds: 10)
            let (work, ends) = state.withLock { state -> ((@Sendable () -> Void)?, Bool) in
                state.idleCount -= 1
                let work = state.work.popFirst()
                let ends = work == nil && !signaled
                if ends { state.threadCount -= 1 }
                return (work, ends)
            }
            if ends { break }
            work?()
        }
        OPENSSL_thread_stop()
    }
}

/// A counting semaphore of the system. Only Martlet's own threads wait for it, never threads of Swift's pool.
/// `@unchecked Sendable`: the pointer is set once, and the system guards the semaphore.
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

    func signal() { unsafe sem_post(pointer) }

    /// Decrements the count; waits while it is zero.
    /// - Returns: `false` after a timeout.
    func wait(seconds: Int) -> Bool {
        var limit = timespec()
        unsafe clock_gettime(CLOCK_REALTIME, &limit)
        limit.tv_sec += seconds
        while unsafe sem_timedwait(pointer, &limit) != 0 { if errno != EINTR { return false } }
        return true
    }
}
