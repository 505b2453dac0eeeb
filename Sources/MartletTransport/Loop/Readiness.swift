import Synchronization

/// The readiness of one socket: a one-slot latch per direction, and the task that waits on it.
///
/// The tasks of the connection make their system calls, and wait here only if a call would block. The loop signals
/// edges. An edge between the failed call and the wait stays in the latch, so it is never lost. At most one task waits
/// per direction: a connection has one reader and one writer.
package final class Readiness: TimerTarget {
    package enum Direction: UInt64, Sendable {
        /// Bytes from the peer.
        case read = 0
        /// Bytes to the peer.
        case write = 1
    }

    package enum Outcome: Sendable {
        /// The call can be retried.
        case ready
        case timedOut
        /// The socket was permanently interrupted, for example by cancellation.
        case interrupted
        /// The socket was closed on this side.
        case closed

        package func check() throws(TransportError) {
            switch self {
            case .ready: return
            case .timedOut: throw .timedOut
            case .interrupted: throw .interrupted
            case .closed: throw .closed
            }
        }
    }

    /// The value with which a waiting task is resumed.
    private struct Wake {
        var outcome: Outcome
        /// Whether the loop has counted the task in its ``PollTurn``.
        var isCounted = false
    }

    private struct Latch {
        var isSignaled = false
        /// Whether the last call read all bytes, or found none. A later edge sets ``isSignaled``.
        var isDrained = false
        /// Whether the next wait ends immediately, because it was woken before it began.
        var wakesNextWait = false
        var waiter: Waiter<Wake>?
        var deadline = MonotonicTime.distantFuture
        /// The time at which the loop's timer for this direction fires; `.distantFuture` if none is armed.
        var armed = MonotonicTime.distantFuture

        /// Takes the waiter, to be resumed outside of the lock. Without a waiter, the next wait ends immediately.
        mutating func wake() -> Waiter<Wake>? {
            wakesNextWait = waiter == nil
            return waiter.take()
        }
    }

    private struct State {
        var read = Latch()
        var write = Latch()
        /// The number of TLS layers whose reader waits for room to write. Then a write edge also wakes the reader.
        var writingReaderCount = 0
        var isHangup = false
        var isInterrupted = false
        var isClosed = false
        /// The object that is notified of read edges while the connection is idle in the pool.
        var idleObserver: (any IdleStreamObserver)?

        var isWorthReading: Bool { read.isSignaled || !read.isDrained || isHangup || isClosed || isInterrupted }

        mutating func withLatch<Value>(_ direction: Direction, _ body: (inout Latch) -> Value) -> Value {
            direction == .read ? body(&read) : body(&write)
        }
    }

    /// Guards the state; held for a few loads and stores, never while a continuation is resumed.
    private let state = Mutex(State())
    private let loop: EventLoop
    private let descriptor: Int32
    /// The number of the registration; zero if it belongs to no socket.
    let number: UInt32

    init(loop: EventLoop, descriptor: Int32 = -1, number: UInt32 = 0) {
        (self.loop, self.descriptor, self.number) = (loop, descriptor, number)
    }

    // MARK: The connection's side

    /// Prepares for an attempt to read.
    /// - Returns: Whether a read may succeed. It cannot if the last read took all bytes and no edge has occurred since.
    package func beginRead() -> Bool {
        state.withLock { state in
            let isOver = state.isHangup || state.isClosed || state.isInterrupted
            if !isOver, state.read.isDrained && !state.read.isSignaled { return false }
            state.read.isSignaled = false
            state.read.isDrained = false
            return true
        }
    }

    /// Whether a read is worth trying: the result of ``beginRead()``.
    package var isWorthReading: Bool { state.withLock { $0.isWorthReading } }

    /// Records that bytes can be read, as an edge does.
    func noteReadable() { state.withLock { $0.read.isSignaled = true } }

    /// Records that a read took all bytes.
    package func readDrained() { state.withLock { $0.read.isDrained = true } }

    package var isClosed: Bool { state.withLock { $0.isClosed } }

    package func beginWrite() { state.withLock { $0.write.isSignaled = false } }

    /// Sets whether write edges wake the reader in addition to a waiting writer. TLS may have to send a reply before it
    /// can read on. Edges before this call do not wake the reader: the caller tries again before it waits. If TLS is
    /// inside of TLS, both layers call this, each only when its own setting changes.
    package func setWakesReaderOnWritable(_ isOn: Bool) { state.withLock { $0.writingReaderCount += isOn ? 1 : -1 } }

    /// Waits until a direction is signaled, or the deadline passes. With the instant zero it does not wait.
    package func wait(for direction: Direction, until deadline: MonotonicTime) async -> Outcome {
        if deadline.nanoseconds == 0 { return state.withLock { poll(&$0, direction) } ?? .timedOut }
        let wake = await suspend { (waiter: Waiter<Wake>) in
            var mustArm = false
            var displaced: Waiter<Wake>?
            let outcome: Outcome? = state.withLock { state in
                if let outcome = poll(&state, direction) { return outcome }
                state.withLatch(direction) { latch in
                    displaced = latch.waiter.take()
                    latch.waiter = waiter
                    latch.deadline = deadline
                    mustArm = deadline < latch.armed
                    if mustArm { latch.armed = deadline }
                }
                return nil
            }
            // Another task that was waiting is resumed and tries again; otherwise it would wait forever.
            displaced?.resume(returning: Wake(outcome: .ready))
            if let outcome {
                waiter.resume(returning: Wake(outcome: outcome))
            } else if mustArm, number != 0 {
                loop.schedule(descriptor: descriptor, number: number, token: direction.rawValue, at: deadline)
            } else if mustArm {
                loop.schedule(self, token: direction.rawValue, at: deadline)
            }
        }
        if wake.isCounted { loop.turn.started { loop.poll() } }
        return wake.outcome
    }

    private func poll(_ state: inout State, _ direction: Direction) -> Outcome? {
        if state.isClosed { return .closed }
        if state.isInterrupted { return .interrupted }
        // A reader that must write first cannot read the end of the stream: it would be woken again and again.
        let isHangup = direction == .read && state.isHangup && state.writingReaderCount == 0
        let isReady = state.withLatch(direction) { latch in
            let isReady = latch.wakesNextWait || latch.isSignaled || isHangup
            latch.wakesNextWait = false
            // The signal for reading is cleared by `beginRead()`.
            if direction == .write { latch.isSignaled = false }
            return isReady
        }
        return isReady ? .ready : nil
    }

    /// Makes a waiting reader try again, for example with a new deadline. Without a waiting reader, the next wait ends
    /// immediately: a reader may have checked its deadline just before, and be about to wait.
    package func wakeReader() {
        let waiter = state.withLock { $0.read.wake() }
        waiter?.resume(returning: Wake(outcome: .ready))
    }

    /// Makes a waiting writer try again, like ``wakeReader()``.
    package func wakeWriter() {
        let waiter = state.withLock { $0.write.wake() }
        waiter?.resume(returning: Wake(outcome: .ready))
    }

    /// Ends every wait, now and later, with ``Outcome/interrupted``. Any thread may call it at any time.
    package func interrupt() {
        let (reader, writer) = state.withLock { state in
            state.isInterrupted = true
            return (state.read.waiter.take(), state.write.waiter.take())
        }
        reader?.resume(returning: Wake(outcome: .interrupted))
        writer?.resume(returning: Wake(outcome: .interrupted))
    }

    /// Ends every wait, now and later, with ``Outcome/closed``, and releases the observer.
    package func close() {
        let (reader, writer, observer) = state.withLock { state in
            state.isClosed = true
            return (state.read.waiter.take(), state.write.waiter.take(), state.idleObserver.take())
        }
        reader?.resume(returning: Wake(outcome: .closed))
        writer?.resume(returning: Wake(outcome: .closed))
        // Released outside of the lock: this may release many other objects.
        _ = observer
    }

    /// Ends the observation that ``observeIdle(_:)`` started.
    /// - Returns: Whether there may be something to read: an edge has occurred after the last read, or that read left
    ///   bytes, which cause no other edge.
    package func stopObservingIdle() -> Bool {
        let (observer, mayHaveBytes) = state.withLock { ($0.idleObserver.take(), $0.isWorthReading) }
        // Released outside of the lock: this may release many other objects.
        _ = observer
        return mayHaveBytes
    }

    /// Notifies an observer, on the loop's thread, of every later read edge, and immediately if there was one since the
    /// last read. The observer is retained until ``stopObservingIdle()`` or ``close()``.
    package func observeIdle(_ observer: any IdleStreamObserver) {
        let isSignaled = state.withLock { state in
            // Observer and socket retain each other. If the socket is already closed, nothing breaks that cycle.
            guard !state.isClosed else { return false }
            state.idleObserver = observer
            return state.isHangup || state.read.isSignaled
        }
        if isSignaled { observer.idleStreamBecameReadable() }
    }

    // MARK: The loop's side

    /// Resumes the tasks that wait for an event.
    /// - Parameter isFromLoop: Whether the loop's sockets were polled, and not a stream in memory written.
    /// - Returns: The observer to call; for an event of a socket, on the loop's thread.
    func signal(_ event: Poller.Event, isFromLoop: Bool) -> (any IdleStreamObserver)? {
        var reader: Waiter<Wake>?
        var writer: Waiter<Wake>?
        var observer: (any IdleStreamObserver)?
        state.withLock { state in
            if event.isHangup { state.isHangup = true }
            if event.isReadable {
                reader = state.read.waiter.take()
                state.read.isSignaled = true
                observer = state.idleObserver
            }
            if event.isWritable {
                writer = state.write.waiter.take()
                if writer == nil { state.write.isSignaled = true }
                if state.writingReaderCount > 0, reader == nil {
                    reader = state.read.waiter.take()
                    state.read.isSignaled = true
                }
            }
        }
        if let reader { resume(reader, isCounted: isFromLoop) }
        if let writer { resume(writer, isCounted: isFromLoop) }
        return observer
    }

    private func resume(_ waiter: Waiter<Wake>, isCounted: Bool) {
        if isCounted { loop.turn.willResume() }
        waiter.resume(returning: Wake(outcome: .ready, isCounted: isCounted))
    }

    package func timerFired(token: UInt64, now: MonotonicTime) -> MonotonicTime? {
        var expired: Waiter<Wake>?
        let next = state.withLock { state in
            state.withLatch(Direction(rawValue: token) ?? .write) { latch -> MonotonicTime? in
                // A timer for a later time, which an earlier one has replaced, does nothing.
                guard latch.armed <= now else { return nil }
                latch.armed = .distantFuture
                guard latch.waiter != nil, latch.deadline != .distantFuture else { return nil }
                if latch.deadline <= now {
                    expired = latch.waiter.take()
                    return nil
                }
                latch.armed = latch.deadline
                return latch.deadline
            }
        }
        expired?.resume(returning: Wake(outcome: .timedOut))
        return next
    }
}

/// The continuation through which a waiting task is resumed, exactly once. Debug builds, which the tests run, use the
/// checked one, so that a continuation that is resumed twice or lost is reported. Release builds use the unchecked one,
/// which saves an allocation per wait.
@safe @usableFromInline package struct Waiter<Value: Sendable>: Sendable {
    #if DEBUG
        private let continuation: CheckedContinuation<Value, Never>
        fileprivate init(_ continuation: CheckedContinuation<Value, Never>) { self.continuation = continuation }
    #else
        private let continuation: UnsafeContinuation<Value, Never>
        fileprivate init(_ continuation: UnsafeContinuation<Value, Never>) { unsafe self.continuation = continuation }
    #endif

    /// Resumes the task with a value. Never called under a lock: the task may start immediately.
    @usableFromInline package func resume(returning value: Value) {
        #if DEBUG
            continuation.resume(returning: value)
        #else
            unsafe continuation.resume(returning: value)
        #endif
    }
}

/// Suspends the task and passes its continuation to a closure, which must ensure that it is resumed exactly once.
@usableFromInline package func suspend<Value: Sendable>(
    isolation: isolated (any Actor)? = #isolation, _ body: (Waiter<Value>) -> Void
) async -> Value {
    #if DEBUG
        await withCheckedContinuation(isolation: isolation) { body(Waiter($0)) }
    #else
        await unsafe withUnsafeContinuation(isolation: isolation) { unsafe body(Waiter($0)) }
    #endif
}
