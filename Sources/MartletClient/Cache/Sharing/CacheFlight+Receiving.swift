import MartletCache
import MartletTransport
import Synchronization

/// What the task does that receives the body: it takes no more than is wanted, and has it written.
extension CacheFlight {
    /// Begins to take a body into the store.
    func begin(_ writer: ResponseWriter) {
        state.withLock { $0.writer = writer }
    }

    /// Takes the next bytes.
    func append(_ bytes: [UInt8]) {
        let (waiters, writes) = state.withLock { state -> ([OneShot<Void>], Bool) in
            state.chunks.gather(bytes)
            state.received += UInt64(bytes.count)
            if state.writer?.isAlive == true {
                state.pending.gather(bytes)
                state.pendingByteCount += bytes.count
            }
            trim(&state)
            // Small pieces are written together.
            let writes = !state.isWriting && state.pendingByteCount >= 128 * 1024
            if writes { state.isWriting = true }
            return (state.takeWaiters(), writes)
        }
        for waiter in waiters { waiter.fulfil(()) }
        if writes { BlockingWorkers.shared.submit { self.writePending() } }
    }

    /// Writes what waits to be written. It blocks.
    private func writePending() {
        while true {
            let (writer, pending) = state.withLock { state -> (ResponseWriter?, [[UInt8]]) in
                let pending = state.pending
                (state.pending, state.pendingByteCount) = ([], 0)
                if pending.isEmpty { state.isWriting = false }
                return (state.writer, pending)
            }
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
            let wait = state.withLock { state -> OneShot<Void>?? in
                if state.isGivenUp { return .some(nil) }
                if isWanted(state) { return nil }
                let wait = OneShot<Void>()
                state.pump = wait
                return wait
            }
            guard let wait else { return true }
            guard let wait else { return false }
            _ = await wait.wait(until: .distantFuture, on: loop)
        }
    }

    private func isWanted(_ state: State) -> Bool {
        guard state.pendingByteCount < CacheFlight.most else { return false }
        guard state.received - state.start < UInt64(CacheFlight.most) else { return false }
        if isUnattended || state.isWhole { return true }
        guard let fastest = state.offsets.values.max() else { return false }
        return state.received - min(fastest, state.received) < CacheFlight.readAhead
    }

    /// Notes that the exchange is over, with all of the body: what is left is to store it.
    func noteWhole() {
        let waiters = state.withLock { state in
            state.isOver = true
            return state.takeWaiters()
        }
        for waiter in waiters { waiter.fulfil(()) }
    }

    /// Waits until nothing is being written.
    func waitForWriter() async {
        while true {
            let wait = state.withLock { state -> OneShot<Void>? in
                guard state.isWriting else { return nil }
                let wait = OneShot<Void>()
                state.pump = wait
                return wait
            }
            guard let wait else { return }
            _ = await wait.wait(until: .distantFuture, on: loop)
        }
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

    /// Has the body not be stored, or no longer, and nobody join any more; those who read it read on.
    /// - Returns: Whether it was stored.
    func withdraw() async -> Bool {
        let writer = state.withLock { state in
            state.isWithdrawn = true
            return state.writer
        }
        guard let writer else { return false }
        return await BlockingWorkers.shared.run { writer.withdraw() }
    }

    /// What is left to be written, which nobody else writes.
    func takePending() -> [[UInt8]] {
        state.withLock { state in
            defer { (state.pending, state.pendingByteCount) = ([], 0) }
            return state.pending
        }
    }
}
