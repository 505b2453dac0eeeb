import Synchronization

/// The readiness of one socket: a one-slot latch per direction, and the task that waits on it.
///
/// The loop signals; the connection's tasks try their system call, and only where it would block do they wait here. An
/// edge that comes between the failed call and the wait stays in the latch, so it is never lost. At most one task waits
/// per direction: a connection has one reader and one writer.
package final class Readiness: TimerTarget {
    /// Which way bytes flow.
    package enum Direction: UInt64, Sendable {
        /// From the peer.
        case read = 0
        /// To the peer.
        case write = 1
    }

    /// How a wait ended.
    package enum Outcome: Sendable {
        /// Try the call again.
        case ready
        /// The deadline passed first.
        case timedOut
        /// Someone interrupted the socket for good, as cancelling does.
        case interrupted
        /// The socket was closed on this side.
        case closed
    }

    private struct Latch {
        var isSignalled = false
        /// The last call found nothing (or took all there was), and no edge has come since.
        var isDrained = false
        /// Someone asked the next wait to end at once, when nobody waited yet.
        var isPoked = false
        var waiter: Waiter<Outcome>?
        var deadline = MonotonicTime.distantFuture
        /// When the loop's timer for this direction fires; `.distantFuture` when none is armed.
        var armed = MonotonicTime.distantFuture
    }

    private struct State {
        var read = Latch()
        var write = Latch()
        /// The reader cannot go on before something was written: a write edge is news to it as well.
        var readerNeedsWriting = false
        var isHangup = false
        var isInterrupted = false
        var isClosed = false
        /// Called on the loop's thread for any read edge while the connection idles in the pool.
        var idleWatcher: (any IdleWatcher)?
    }

    /// Guards all of the above; held for a few loads and stores, never while a continuation is resumed.
    private let state = Mutex(State())
    private let loop: EventLoop

    /// What it is registered under; zero where it stands for no socket.
    private let descriptor: Int32
    private let number: UInt32

    init(loop: EventLoop, descriptor: Int32 = -1, number: UInt32 = 0) {
        self.loop = loop
        self.descriptor = descriptor
        self.number = number
    }

    private func arm(_ direction: Direction, at deadline: MonotonicTime) {
        if number != 0 {
            loop.schedule(descriptor: descriptor, number: number, token: direction.rawValue, at: deadline)
        } else {
            loop.schedule(self, token: direction.rawValue, at: deadline)
        }
    }

    // MARK: The connection's side

    /// Notes that a read is about to be tried.
    /// - Returns: Whether it is worth trying: not when the last one took all there was and no edge has come since.
    package func beginRead() -> Bool {
        state.withLock { state in
            if state.isHangup || state.isClosed || state.isInterrupted { return true }
            if state.read.isDrained && !state.read.isSignalled { return false }
            state.read.isSignalled = false
            state.read.isDrained = false
            return true
        }
    }

    /// Whether a read is worth trying: what ``beginRead()`` would say.
    package var isWorthReading: Bool {
        state.withLock { state in
            state.read.isSignalled || !state.read.isDrained || state.isHangup || state.isClosed
                || state.isInterrupted
        }
    }

    /// Notes that there is something to read, as an edge would.
    func noteReadable() { state.withLock { $0.read.isSignalled = true } }

    /// Notes that a read took all there was.
    package func readDrained() { state.withLock { $0.read.isDrained = true } }

    /// Whether ``close()`` has been called.
    package var isClosed: Bool { state.withLock { $0.isClosed } }

    /// Notes that a write is about to be tried.
    package func beginWrite() { state.withLock { $0.write.isSignalled = false } }

    /// Has write edges wake the reader too, or no longer, whoever waits to write (a TLS record to be read may first
    /// have to be answered).
    ///
    /// An edge that came before is not made up for: whoever turns this on tries the call again before waiting.
    package func letWritingWakeReader(_ isOn: Bool) { state.withLock { $0.readerNeedsWriting = isOn } }

    /// Waits until a direction is signalled, or the deadline passes. The instant zero stands for no waiting.
    package func wait(for direction: Direction, until deadline: MonotonicTime) async -> Outcome {
        if deadline.nanoseconds == 0 {
            // No waiting at all: what has come counts, and nothing else.
            return state.withLock { poll(&$0, direction) } ?? .timedOut
        }
        return await suspend { (waiter: Waiter<Outcome>) in
            var arm: MonotonicTime?
            var displaced: Waiter<Outcome>?
            let outcome: Outcome? = state.withLock { state in
                if let outcome = poll(&state, direction) { return outcome }
                switch direction {
                case .read: displaced = state.read.waiter.take()
                case .write: displaced = state.write.waiter.take()
                }
                switch direction {
                case .read: arm = Readiness.park(waiter, in: &state.read, until: deadline)
                case .write: arm = Readiness.park(waiter, in: &state.write, until: deadline)
                }
                return nil
            }
            // A task that overstayed looks again rather than being forgotten.
            displaced?.resume(returning: .ready)
            if let outcome {
                waiter.resume(returning: outcome)
            } else if let arm {
                self.arm(direction, at: arm)
            }
        }
    }

    private func poll(_ state: inout State, _ direction: Direction) -> Outcome? {
        if state.isClosed { return .closed }
        if state.isInterrupted { return .interrupted }
        switch direction {
        case .read:
            let isPoked = state.read.isPoked
            state.read.isPoked = false
            if isPoked || state.read.isSignalled || state.isHangup { return .ready }
        case .write:
            let isReady = state.write.isSignalled || state.write.isPoked
            state.write.isPoked = false
            state.write.isSignalled = false
            if isReady { return .ready }
        }
        return nil
    }

    /// Stores the waiter; the instant for which a timer must be armed, if the one armed would come too late.
    private static func park(
        _ waiter: Waiter<Outcome>, in latch: inout Latch, until deadline: MonotonicTime
    ) -> MonotonicTime? {
        latch.waiter = waiter
        latch.deadline = deadline
        guard deadline < latch.armed else { return nil }
        latch.armed = deadline
        return deadline
    }

    /// Lets a waiting reader look again, as when its deadline has changed.
    ///
    /// Where none waits, the next wait ends at once: a reader may have looked at its deadline just before, and be about to
    /// wait.
    package func wakeReader() {
        let waiter = state.withLock { state in
            state.read.isPoked = state.read.waiter == nil
            return state.read.waiter.take()
        }
        waiter?.resume(returning: .ready)
    }

    /// Lets a waiting writer look again; else as ``wakeReader()``.
    package func wakeWriter() {
        let waiter = state.withLock { state in
            state.write.isPoked = state.write.waiter == nil
            return state.write.waiter.take()
        }
        waiter?.resume(returning: .ready)
    }

    /// Ends every wait, now and later, with ``Outcome/interrupted``. May come from any thread at any time.
    package func interrupt() {
        let waiters = state.withLock { state in
            state.isInterrupted = true
            return (state.read.waiter.take(), state.write.waiter.take())
        }
        waiters.0?.resume(returning: .interrupted)
        waiters.1?.resume(returning: .interrupted)
    }

    /// Ends every wait, now and later, with ``Outcome/closed``, and keeps no watcher from then on.
    package func close() {
        let (reader, writer, watcher) = state.withLock { state in
            state.isClosed = true
            return (state.read.waiter.take(), state.write.waiter.take(), state.idleWatcher.take())
        }
        reader?.resume(returning: .closed)
        writer?.resume(returning: .closed)
        // Released outside of the lock: it may hold the last reference to much.
        _ = watcher
    }

    /// Ends the watch of ``watchWhileIdle(_:)``.
    /// - Returns: Whether there may be something to read: an edge has come that no read has answered, or the last read
    ///   left bytes behind, for which no other edge will come.
    package func endIdleWatch() -> Bool {
        let (watcher, hasEdge) = state.withLock { state in
            (
                state.idleWatcher.take(),
                state.read.isSignalled || !state.read.isDrained || state.isHangup || state.isClosed
                    || state.isInterrupted
            )
        }
        // Released outside of the lock: it may hold the last reference to much.
        _ = watcher
        return hasEdge
    }

    /// Has a watcher told, on the loop's thread, of every read edge from now on, and once right now if there has been
    /// one since the last read; it is retained until ``endIdleWatch()`` or ``close()``, and not at all after ``close()``.
    package func watchWhileIdle(_ watcher: any IdleWatcher) {
        let isSignalled = state.withLock { state in
            // The socket may have been closed since the caller decided to watch it. Watcher and socket refer to each other,
            // and nothing would break that cycle any more.
            guard !state.isClosed else { return false }
            state.idleWatcher = watcher
            return state.isHangup || state.read.isSignalled
        }
        if isSignalled { watcher.idleStreamStirred() }
    }

    // MARK: The loop's side

    /// Takes an event of the poller.
    func signal(_ event: Poller.Event) {
        var reader: Waiter<Outcome>?
        var writer: Waiter<Outcome>?
        var watcher: (any IdleWatcher)?
        state.withLock { state in
            if event.isHangup { state.isHangup = true }
            if event.isReadable {
                reader = state.read.waiter.take()
                state.read.isSignalled = true
                watcher = state.idleWatcher
            }
            if event.isWritable {
                writer = state.write.waiter.take()
                if writer == nil { state.write.isSignalled = true }
                if state.readerNeedsWriting, reader == nil {
                    reader = state.read.waiter.take()
                    state.read.isSignalled = true
                }
            }
        }
        reader?.resume(returning: .ready)
        writer?.resume(returning: .ready)
        watcher?.idleStreamStirred()
    }

    package func timerFired(token: UInt64, now: MonotonicTime) -> MonotonicTime? {
        var expired: Waiter<Outcome>?
        let next = state.withLock { state -> MonotonicTime? in
            if token == Direction.read.rawValue { return Readiness.expire(&state.read, now: now, &expired) }
            return Readiness.expire(&state.write, now: now, &expired)
        }
        expired?.resume(returning: .timedOut)
        return next
    }

    private static func expire(
        _ latch: inout Latch, now: MonotonicTime, _ expired: inout Waiter<Outcome>?
    ) -> MonotonicTime? {
        // A timer that a shorter deadline has overtaken: the earlier one does the work.
        guard latch.armed <= now else { return nil }
        guard latch.waiter != nil, latch.deadline != .distantFuture else {
            latch.armed = .distantFuture
            return nil
        }
        if latch.deadline <= now {
            latch.armed = .distantFuture
            expired = latch.waiter.take()
            return nil
        }
        latch.armed = latch.deadline
        return latch.deadline
    }
}
