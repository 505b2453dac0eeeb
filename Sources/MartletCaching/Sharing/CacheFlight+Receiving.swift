import MartletCore
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
            if let byteCount, byteCount < UInt64(CacheFlight.most) { state.holding = .brief(Int(byteCount)) }
        }
    }

    /// Takes the next bytes.
    func append(_ bytes: [UInt8]) {
        let (waiters, writes) = state.withLock { state -> ([OneShot<Void>], Bool) in
            state.hold(bytes)
            if !state.holding.isBrief, state.writer?.isAlive == true {
                state.pending.gather(bytes)
                state.pendingByteCount += bytes.count
            }
            trim(&state)
            // Small pieces are written together.
            let writes = !state.writing.isUnderWay && state.pendingByteCount >= 128 * 1024
            if writes { state.writing = .busy }
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
                state.dropPending()
                var finish: (@Sendable () -> Void)?
                if pending.isEmpty {
                    if case .last(let closure) = state.writing { finish = closure }
                    state.writing = .idle
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
        var stall: Stall?
        while true {
            let wait = OneShot<Void>()
            let (isWanted, obstacle) = state.withLock { state -> (Bool?, Obstacle) in
                if state.isAbandoned { return (false, .none) }
                if self.isWanted(state) { return (true, .none) }
                state.pump = wait
                return (nil, self.obstacle(state))
            }
            if let isWanted { return isWanted }
            let now = MonotonicTime.now()
            switch obstacle {
            case .none:
                stall = nil
                _ = await wait.wait(until: .distantFuture, on: loop)
            case .disk(let writer):
                // Those who read do not wait for a folder that another process keeps locked.
                let deadline = now.advanced(by: .milliseconds(20))
                if case .timedOut = await wait.wait(until: deadline, on: loop), writer.store.isHeldUp {
                    writer.giveUp()
                    state.withLock { state in
                        state.dropPending()
                        trim(&state)
                    }
                }
            case .reader(let offset):
                if stall?.offset != offset { stall = Stall(offset: offset, since: now) }
                let deadline = (stall?.since ?? now).advanced(by: CacheFlight.patience)
                if case .timedOut = await wait.wait(until: deadline, on: loop) { detach(at: offset) }
            }
        }
    }

    /// The reason why the body is not received though a reader waits for it.
    private enum Obstacle {
        /// Nothing: nobody waits.
        case none
        /// The disk: the bytes that have come are not written yet.
        case disk(ResponseWriter)
        /// Readers that have read up to this offset and no further. The bytes behind it are held for them, and stored nowhere.
        case reader(UInt64)
    }

    /// A reader that keeps others from going on.
    private struct Stall {
        let offset: UInt64
        let since: MonotonicTime
    }

    /// The time for which others wait for a reader that takes nothing.
    private static let patience = Duration.seconds(1)

    private func obstacle(_ state: State) -> Obstacle {
        if state.pendingByteCount >= CacheFlight.most { return state.writer.map { .disk($0) } ?? .none }
        guard state.writer?.isAlive != true, state.received - state.start >= UInt64(CacheFlight.most),
            let slowest = state.slowest,
            state.readers.values.contains(where: { $0.waiter != nil && $0.offset > slowest })
        else { return .none }
        return .reader(slowest)
    }

    /// No longer keeps anything for those who have read up to an offset and no further.
    private func detach(at offset: UInt64) {
        let waiters = state.withLock { state -> [OneShot<Void>] in
            let detached = state.readers.filter { $0.value.offset == offset }
            guard detached.count < state.readers.count else { return [] }
            state.readers = state.readers.filter { $0.value.offset != offset }
            state.detached.formUnion(detached.keys)
            trim(&state)
            return detached.values.compactMap(\.waiter)
        }
        for waiter in waiters { waiter.fulfil(()) }
    }

    private func isWanted(_ state: State) -> Bool {
        guard state.pendingByteCount < CacheFlight.most else { return false }
        guard state.received - state.start < UInt64(CacheFlight.most) else { return false }
        if isUnattended || state.isWhole { return true }
        guard let fastest = state.fastest else { return false }
        if state.holding.isBrief, state.readers.values.contains(where: \.isCollecting) { return true }
        return state.received - min(fastest, state.received) < CacheFlight.readAhead
    }

    /// Notes that the exchange is over, with all of the body: what is left is to write it, and to store it then.
    /// - Parameter finish: Called once all of it is written, where that was done: it is to end the body.
    func noteWhole(_ finish: @escaping @Sendable () -> Void) {
        let (waiters, writes) = state.withLock { state in
            state.advance(to: .whole)
            if state.holding.isBrief, state.start == 0 { state.pending = state.chunks }
            defer { state.writing = .last(finish) }
            return (state.takeReaders(), !state.writing.isUnderWay)
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
            state.advance(to: .ended(end))
            return state.takeWaiters()
        }
        for waiter in waiters { waiter.fulfil(()) }
    }

    /// Lets those who have all of the body go before it is stored. Whoever asks until then joins them.
    func release() {
        let waiters = state.withLock { state in
            if case .landed(.transfer(_, .whole)) = state.stage { state.advance(to: .released) }
            return state.takeWaiters()
        }
        for waiter in waiters { waiter.fulfil(()) }
    }

    /// Has the body not be stored, or no longer, and nobody join any more; those who read it read on.
    /// - Returns: Whether it was stored.
    func withdraw() async -> Bool {
        let writer = state.withLock { state in
            state.admission = .closed
            return state.writer
        }
        guard let writer else { return false }
        return await StoreWork.run(in: writer.store, on: loop) { writer.withdraw() } ?? false
    }
}
