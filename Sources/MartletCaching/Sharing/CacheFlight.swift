import MartletCore
import MartletCache
import Synchronization

/// A request to the network that several calls share, and the transfer of its response into the store.
///
/// A separate task sends the request and receives the body, at the pace of the fastest reader, and stops when no member
/// is left. At most about 1 MiB of the body is held in memory; slower readers read the rest back from the store.
final class CacheFlight: Sendable {
    /// The number of bytes that are received ahead of the fastest reader.
    private static let readAhead: UInt64 = 256 * 1024
    /// The number of the member that has started the flight.
    private static let firstMember: UInt64 = 1
    /// The minimum and the maximum number of bytes that are held for readers.
    private static let (least, most) = (256 * 1024, 1024 * 1024)
    /// The time for which the other readers wait for one that reads nothing.
    private static let gracePeriod = Duration.seconds(1)

    let loop: EventLoop
    let control: TransferControl
    /// Pauses the exchange once a call that may pause has taken it over.
    let gate = FlightGate()
    let state = Mutex(State())
    /// Whether the flight continues without members, as a background validation.
    let isUnattended: Bool
    /// Whether its response may be served to requests that are made now: nothing was invalidated since it was started.
    let isCurrent: @Sendable () -> Bool

    /// Creates a flight, which ``FlightDriver`` runs.
    init(loop: EventLoop, tracer: CallTracer?, isUnattended: Bool, isCurrent: @escaping @Sendable () -> Bool) {
        (self.loop, self.isUnattended, self.isCurrent) = (loop, isUnattended, isCurrent)
        control = TransferControl(reportsProgress: false, tracer: tracer)
    }

    /// The network's response whose body is shared.
    var network: StreamedResponse? { state.withLock { $0.transfer?.0.network } }

    /// The number of the stored body; `nil` if none was stored.
    var representation: UInt64? {
        if case .complete(let stored) = state.withLock({ $0.end }) { stored?.representation } else { nil }
    }

    /// Changes the state, and then resumes the waits that the change returns.
    func update<Result: Sendable>(_ change: (inout State) -> (waiters: [OneShot<Void>], result: Result)) -> Result {
        let (waiters, result) = state.withLock { change(&$0) }
        for waiter in waiters { waiter.fulfill(()) }
        return result
    }

    func wakePump() {
        let pump = state.withLock { $0.pump.take() }
        pump?.fulfill(())
    }

    // MARK: Members

    /// Adds a member; `nil` if all members have left, the first bytes are lost, or the request failed or is outdated.
    func join() -> FlightMember? {
        guard isCurrent() else { return nil }
        let number = state.withLock { state -> UInt64? in
            let isReadable =
                switch state.admission {
                case .open: state.stored >= state.start
                case .whileHeld: state.start == 0
                case .closed: false
                }
            guard isReadable else { return nil }
            let wasEarly: Bool
            switch state.stage {
            case .asking: wasEarly = true
            case .decided(.transfer(_, .coming)), .decided(.transfer(_, .whole)),
                .decided(.transfer(_, .released)), .decided(.transfer(_, .ended(.complete))):
                wasEarly = false
            case .abandoned, .decided: return nil
            }
            state.lastMember += 1
            state.readers[state.lastMember] = Reader(wasEarly: wasEarly)
            return state.lastMember
        }
        return number.map { FlightMember(self, $0) }
    }

    /// Whether the member that started the flight has not left.
    var hasFirstMember: Bool { state.withLock { $0.readers[CacheFlight.firstMember] != nil } }

    /// Removes a member. The last one cancels the transfer, unless all of the body was received and can be stored. An
    /// unattended transfer continues; an offer that no member has taken is finished.
    func leave(_ member: UInt64) {
        let (isLast, unclaimed) = state.withLock { state -> (Bool, StreamedResponse?) in
            guard state.readers.removeValue(forKey: member) != nil else { return (false, nil) }
            trim(&state)
            guard state.readers.isEmpty else { return (false, nil) }
            switch state.stage {
            case .asking where !isUnattended: state.stage = .abandoned
            case .decided(.transfer(_, .coming)) where !isUnattended && !state.isWhole: state.advance(to: .abandoned)
            case .decided(.offer(let offer, isTaken: false)):
                state.stage = .decided(.offer(offer, isTaken: true))
                return (false, offer.network)
            case .asking, .abandoned, .decided: return (false, nil)
            }
            return (true, nil)
        }
        unclaimed?.finish()
        if isLast { control.cancel() }
        wakePump()
    }

    /// Removes the members that have stopped reading at an offset, if there are others.
    private func detach(at offset: UInt64) {
        update { state in
            let detached = state.readers.filter { $0.value.offset == offset }
            guard detached.count < state.readers.count else { return ([], ()) }
            state.readers = state.readers.filter { $0.value.offset != offset }
            state.detached.formUnion(detached.keys)
            trim(&state)
            return (detached.values.compactMap(\.waiter), ())
        }
    }

    // MARK: Outcome

    /// Sets the outcome of the request, and notifies the members.
    /// - Returns: Whether the flight has members.
    @discardableResult func decide(_ outcome: Outcome) -> Bool {
        update { state in
            state.decide(outcome)
            return (state.takeWaiters(), !state.readers.isEmpty)
        }
    }

    /// Takes the network's response with its exchange; `nil` if another member has it, or the first one will take it.
    func claim(isFirst: Bool = true) -> Offer? {
        state.withLock { state in
            let isFree = isFirst || isUnattended || state.readers[CacheFlight.firstMember] == nil
            guard isFree, case .decided(.offer(let offer, isTaken: false)) = state.stage else { return nil }
            state.stage = .decided(.offer(offer, isTaken: true))
            return offer
        }
    }

    /// Records that the body is complete. The closure is called when all bytes are written, and must call ``end(_:)``.
    func noteWhole(_ finish: @escaping @Sendable () -> Void) {
        let writes = update { state in
            state.advance(to: .whole)
            if state.holding.isBrief, state.start == 0 { state.pending = state.chunks }
            defer { state.writing = .last(finish) }
            return (state.takeReaders(), !state.writing.isUnderWay)
        }
        if writes { write() }
    }

    func end(_ end: BodyOutcome) {
        update { state in
            state.advance(to: .ended(end))
            return (state.takeWaiters(), ())
        }
    }

    /// Ends the body for readers that have read all of it, although it is not stored yet. Requests can still join.
    func release() {
        update { state in
            if case .decided(.transfer(_, .whole)) = state.stage { state.advance(to: .released) }
            return (state.takeWaiters(), ())
        }
    }

    /// Prevents requests from joining, and removes the body from the store; readers continue.
    /// - Returns: Whether it was stored.
    func withdraw() async -> Bool {
        let writer = state.withLock { state in
            state.admission = .closed
            return state.writer
        }
        guard let writer else { return false }
        return await StoreWork.run(in: writer.store, on: loop) { writer.withdraw() } ?? false
    }

    // MARK: Receiving

    /// Starts to store a body. A body whose length is known and brief is written when it is complete: passing a piece
    /// to a worker costs as much as writing a hundred kilobytes.
    func begin(_ writer: ResponseWriter, byteCount: UInt64?) {
        state.withLock { state in
            state.writer = writer
            if let byteCount, byteCount < UInt64(CacheFlight.most) { state.holding = .brief(Int(byteCount)) }
        }
    }

    func append(_ bytes: [UInt8]) {
        let writes = update { state in
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
        if writes { write() }
    }

    /// Writes the pending bytes, on a worker if that may block.
    private func write() {
        guard state.withLock({ $0.writer?.store.hasDisk ?? false }) else { return writePending() }
        BlockingThreadPool.shared.submit { self.writePending() }
    }

    /// Writes the pending bytes, and ends the body after the last of them. It blocks.
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

    /// Waits until more of the body is needed and fits in memory; false if the transfer is abandoned.
    func waitForDemand() async -> Bool {
        // The readers at this offset prevent the others from continuing.
        var stall: (offset: UInt64, since: MonotonicTime)?
        while true {
            let wait = OneShot<Void>()
            let (isWanted, obstacle) = state.withLock { state -> (Bool?, Obstacle) in
                // A body without readers that cannot be stored might never end.
                if isUnattended, state.readers.isEmpty, state.writer?.isAlive != true, !state.isWhole {
                    state.advance(to: .abandoned)
                }
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
                // Readers do not wait for a directory that another process has locked.
                let deadline = now.advanced(by: .milliseconds(20))
                if case .timedOut = await wait.wait(until: deadline, on: loop), writer.store.isHeldUp {
                    writer.abandonNonBlocking()
                    state.withLock { state in
                        state.dropPending()
                        trim(&state)
                    }
                }
            case .reader(let offset):
                if stall?.offset != offset { stall = (offset, now) }
                let deadline = (stall?.since ?? now).advanced(by: CacheFlight.gracePeriod)
                if case .timedOut = await wait.wait(until: deadline, on: loop) { detach(at: offset) }
            }
        }
    }

    /// The reason why the body is not received though a reader waits for it.
    private enum Obstacle {
        /// No obstacle: no reader waits.
        case none
        /// The disk: the received bytes are not written yet.
        case disk(ResponseWriter)
        /// Readers that have read up to this offset. The bytes after it are held for them, and stored nowhere.
        case reader(UInt64)
    }

    private func obstacle(_ state: State) -> Obstacle {
        if state.pendingByteCount >= CacheFlight.most { return state.writer.map { .disk($0) } ?? .none }
        guard state.writer?.isAlive != true, state.received - state.start >= UInt64(CacheFlight.most),
            let slowest = state.slowest,
            state.readers.values.contains(where: { $0.waiter != nil && $0.offset > slowest })
        else { return .none }
        return .reader(slowest)
    }

    private func isWanted(_ state: State) -> Bool {
        guard state.pendingByteCount < CacheFlight.most, state.received - state.start < UInt64(CacheFlight.most) else {
            return false
        }
        if isUnattended || state.isWhole { return true }
        guard let fastest = state.fastest else { return false }
        if state.holding.isBrief, state.readers.values.contains(where: \.isCollecting) { return true }
        return state.received - min(fastest, state.received) < CacheFlight.readAhead
    }

    /// Releases bytes that no reader needs, or that can be read back.
    func trim(_ state: inout State) {
        guard state.received - state.start > UInt64(CacheFlight.least) else { return }
        let slowest = state.slowest ?? state.received
        // While the body is being stored, bytes are held until they are written: later members must find them there.
        let isStoring = state.writer?.isAlive == true
        if isStoring, state.holding.isBrief { return }
        var dispensable = isStoring ? state.stored : max(state.stored, slowest)
        // The fastest reader does not depend on the disk: not much is received ahead of it.
        if !isUnattended, let fastest = state.fastest { dispensable = min(dispensable, fastest) }
        while let first = state.chunks.first, state.received - state.start > UInt64(CacheFlight.least),
            state.start + UInt64(first.count) <= dispensable
        {
            state.start += UInt64(first.count)
            state.chunks.removeFirst()
        }
    }
}

/// A gate through which the call that takes over an exchange pauses it.
final class FlightGate: TransferPauseGate {
    /// Set when the exchange is taken over, read by its tasks.
    private let holder = Mutex<TransferControl?>(nil)

    /// Passes the exchange to a call.
    func pass(to control: TransferControl) { holder.withLock { $0 = control } }

    var isPaused: Bool { holder.withLock { $0 }?.isPaused ?? false }

    func waitWhilePaused(until deadline: MonotonicTime, on loop: EventLoop) async {
        await holder.withLock { $0 }?.waitWhilePaused(until: deadline, on: loop)
    }
}
