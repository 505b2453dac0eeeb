import MartletCache
import MartletTransport
import Synchronization

/// What the task does that receives the body: it takes no more than is wanted, and has it written.
extension CacheFlight {
    /// Begins to take a body into the store.
    /// - Parameter byteCount: Its length, where that is known. A brief one is written when it is whole: handing a piece to a
    ///   worker costs as much as writing a hundred kilobytes.
    func begin(_ writer: ResponseWriter, byteCount: UInt64?) {
        state.withLock { state in
            state.writer = writer
            state.briefByteCount = byteCount.flatMap { $0 < UInt64(CacheFlight.most) ? Int($0) : nil }
        }
    }

    /// Takes the next bytes.
    func append(_ bytes: [UInt8]) {
        let (waiters, writes) = state.withLock { state -> ([OneShot<Void>], Bool) in
            state.hold(bytes)
            if state.briefByteCount == nil, state.writer?.isAlive == true {
                state.pending.gather(bytes)
                state.pendingByteCount += bytes.count
            }
            trim(&state)
            // Small pieces are written together.
            let writes = !state.isWriting && state.pendingByteCount >= 128 * 1024
            if writes { state.isWriting = true }
            return (state.takeReaders(), writes)
        }
        for waiter in waiters { waiter.fulfil(()) }
        if writes { write() }
    }

    /// Has what waits to be written be written: by a worker, where that may take its time.
    private func write() {
        guard state.withLock({ $0.writer?.isBlocking ?? false }) else { return writePending() }
        BlockingWorkers.shared.submit { self.writePending() }
    }

    /// Writes what waits to be written, and ends the body when that was all. It blocks.
    private func writePending() {
        while true {
            let (writer, pending, finish) = state.withLock { state in
                let pending = state.pending
                (state.pending, state.pendingByteCount) = ([], 0)
                var finish: (@Sendable () -> Void)?
                if pending.isEmpty {
                    finish = state.finish.take()
                    state.isWriting = false
                }
                return (state.writer, pending, finish)
            }
            finish?()
            guard let writer, !pending.isEmpty else { break }
            for bytes in pending { writer.append(bytes) }
            let count = writer.readableByteCount
            state.withLock { state in
                state.stored = count
                trim(&state)
            }
            wakePump()
        }
        wakePump()
    }

    /// Waits until more of the body is wanted, and there is room for it.
    /// - Returns: Whether that is so; not when nobody is left.
    func waitForDemand() async -> Bool {
        while true {
            let (wait, writer) = state.withLock { state -> (OneShot<Void>??, ResponseWriter?) in
                if state.isGivenUp { return (.some(nil), nil) }
                if isWanted(state) { return (nil, nil) }
                let wait = OneShot<Void>()
                state.pump = wait
                return (wait, state.pendingByteCount < CacheFlight.most ? nil : state.writer)
            }
            guard let wait else { return true }
            guard let wait else { return false }
            // Those who read do not wait for a folder that another process keeps locked.
            let deadline =
                writer == nil ? .distantFuture : MonotonicTime.now().advanced(by: .milliseconds(20))
            if case .timedOut = await wait.wait(until: deadline, on: loop), let writer, writer.store.isHeldUp
            {
                writer.giveUp()
                state.withLock { state in
                    (state.pending, state.pendingByteCount) = ([], 0)
                    trim(&state)
                }
            }
        }
    }

    private func isWanted(_ state: State) -> Bool {
        guard state.pendingByteCount < CacheFlight.most else { return false }
        guard state.received - state.start < UInt64(CacheFlight.most) else { return false }
        if isUnattended || state.isWhole { return true }
        guard let fastest = state.offsets.values.max() else { return false }
        if state.briefByteCount != nil, !state.collectors.isEmpty { return true }
        return state.received - min(fastest, state.received) < CacheFlight.readAhead
    }

    /// Notes that the exchange is over, with all of the body: what is left is to write it, and to store it then.
    /// - Parameter finish: Called once all of it is written, where that was done: it is to end the body.
    func noteWhole(_ finish: @escaping @Sendable () -> Void) {
        let (waiters, writes) = state.withLock { state in
            state.isOver = true
            state.finish = finish
            if state.briefByteCount != nil, state.start == 0 { state.pending = state.chunks }
            defer { state.isWriting = true }
            return (state.takeReaders(), !state.isWriting)
        }
        for waiter in waiters { waiter.fulfil(()) }
        if writes { write() }
    }

    func wakePump() {
        let pump = state.withLock { $0.pump.take() }
        pump?.fulfil(())
    }

    /// Ends the body.
    func end(_ end: End) {
        let waiters = state.withLock { state in
            state.end = end
            return state.takeWaiters()
        }
        for waiter in waiters { waiter.fulfil(()) }
    }

    /// Lets those who have all of the body go before it is stored. Whoever asks until then joins them.
    func release() {
        let waiters = state.withLock { state in
            state.isReleased = true
            return state.takeWaiters()
        }
        for waiter in waiters { waiter.fulfil(()) }
    }

    /// Has the body not be stored, or no longer, and nobody join any more; those who read it read on.
    /// - Returns: Whether it was stored.
    func withdraw() async -> Bool {
        let writer = state.withLock { state in
            state.isWithdrawn = true
            return state.writer
        }
        guard let writer else { return false }
        return await StoreWork.run(in: writer.store, on: loop) { writer.withdraw() } ?? false
    }
}
