import CLinux
import COpenSSL
import DequeModule
import Glibc
import Synchronization

/// A few threads for calls that block: name resolution, file reads, loading of trust stores.
///
/// Swift's cooperative pool has as many threads as the machine has cores; one blocking call there would stop half of a
/// small machine. Threads start when work waits and none is free, up to the limit, and end after ten idle seconds.
package final class BlockingWorkers: Sendable {
    private struct State {
        var work = Deque<@Sendable () -> Void>()
        var threadCount = 0
        var idleCount = 0
    }

    /// A value on its way from a worker to the task that waits for it.
    private final class Parcel<Value: Sendable>: Sendable { let value = Mutex<Value?>(nil) }

    private let state = Mutex(State())
    private let threadLimit: Int
    private let stackByteCount: Int?
    /// Counts the pieces of work not yet taken: idle threads wait on it.
    private let semaphore: Semaphore

    /// The workers that all sessions share.
    package static let shared = BlockingWorkers(threadLimit: 4)

    /// Workers of at most so many threads.
    /// - Parameter stackByteCount: The size of each thread's stack; `nil` for the system's default, mostly 8 MiB.
    package init(threadLimit: Int, stackByteCount: Int? = nil) {
        self.threadLimit = max(1, threadLimit)
        self.stackByteCount = stackByteCount
        semaphore = Semaphore()
    }

    /// How many threads there are now.
    package var threadCount: Int { state.withLock { $0.threadCount } }

    /// Runs a blocking closure on a worker and returns what it returns.
    ///
    /// The closure is not stopped when the task is cancelled, since a blocking call cannot be; callers that must return
    /// earlier race it with an event of their own.
    package func run<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
        let parcel = Parcel<Value>()
        let resumed = await suspend { (waiter: Waiter<Value>) in
            submit {
                let value = body()
                parcel.value.withLock { $0 = value }
                waiter.resume(returning: value)
            }
        }
        // Read again under the lock, as OneShot does and for the same reason.
        return parcel.value.withLock { $0 } ?? resumed
    }

    /// As ``run(_:)``, for a closure that may fail.
    package func run<Value: Sendable, Failure: Error>(
        throwing body: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let result = await run { () -> Result<Value, Failure> in
            do throws(Failure) {
                return .success(try body())
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    /// Queues a closure that resumes its caller by itself.
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
                // No thread to be had. With others about, one of them comes to it; else it runs here, late but surely.
                let orphan = state.withLock { state -> (@Sendable () -> Void)? in
                    state.threadCount -= 1
                    return state.threadCount == 0 ? state.work.popFirst() : nil
                }
                if let orphan {
                    orphan()
                    return
                }
            }
        }
        semaphore.signal()
    }

    private func serve() {
        while true {
            state.withLock { $0.idleCount += 1 }
            let signalled = semaphore.wait(seconds: 10)
            let (work, ends) = state.withLock { state -> ((@Sendable () -> Void)?, Bool) in
                state.idleCount -= 1
                let work = state.work.popFirst()
                let ends = work == nil && !signalled
                if ends { state.threadCount -= 1 }
                return (work, ends)
            }
            if ends { break }
            work?()
        }
        OPENSSL_thread_stop()
    }
}

/// A detached thread of the system, for what must not run on Swift's cooperative pool.
enum Thread {
    private final class Body: Sendable {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// Starts a thread that ends with its closure. All signals are blocked on it: they are the program's business.
    /// - Parameters:
    ///   - name: At most 15 bytes are shown by the system's tools.
    ///   - stackByteCount: The size of the stack; `nil`, or a size that the system refuses, for the system's default.
    static func start(
        name: String, stackByteCount: Int? = nil, _ body: @escaping @Sendable () -> Void
    ) throws(SystemError) {
        var blocked = sigset_t()
        var previous = sigset_t()
        unsafe sigfillset(&blocked)
        unsafe pthread_sigmask(SIG_BLOCK, &blocked, &previous)
        defer { unsafe pthread_sigmask(SIG_SETMASK, &previous, nil) }
        var attributes = pthread_attr_t()
        unsafe pthread_attr_init(&attributes)
        defer { unsafe pthread_attr_destroy(&attributes) }
        if let stackByteCount { unsafe pthread_attr_setstacksize(&attributes, stackByteCount) }
        var thread = pthread_t()
        let argument = unsafe Unmanaged.passRetained(
            Body {
                unsafe name.withCString { _ = unsafe martlet_set_thread_name($0) }
                body()
            })
        let code = unsafe pthread_create(
            &thread, &attributes,
            { argument in
                guard let argument = unsafe argument else { return nil }
                let body = unsafe Unmanaged<Body>.fromOpaque(argument).takeRetainedValue()
                body.run()
                return nil
            }, argument.toOpaque())
        guard code == 0 else {
            unsafe argument.release()
            throw SystemError(operation: "pthread_create", code: code)
        }
        pthread_detach(thread)
    }
}
