import MartletCredentials
import MartletCore
import MartletCache
import MartletConnections
import MartletTransport
import MartletWire
import Synchronization

/// One request to the network on behalf of all who ask for the same, and its answer on its way into the store.
///
/// It belongs to none of them: a task of its own makes the request and receives the body, at the pace of the fastest of
/// those who read, and stops when none is left. What was received is kept in memory for a moment, and read back from the
/// store by those who are slower; so that whatever the body's size, about a mebibyte of it is held.
final class CacheFlight: Sendable {
    /// How far the body is received ahead of the fastest reader, in bytes.
    static let readAhead: UInt64 = 256 * 1024
    /// How much of a body that nobody wants is taken, so that its connection can carry another request, in bytes.
    private static let drainLimit: UInt64 = 64 * 1024
    /// The number of the member for whom the request is made.
    private static let firstMember: UInt64 = 1
    /// How much is held for readers at least, and at most, in bytes.
    static let (least, most) = (256 * 1024, 1024 * 1024)

    let loop: EventLoop
    /// The control of the request.
    let control: TransferControl
    /// Pauses the exchange when it belongs to a caller who may.
    let gate = FlightGate()
    let state = Mutex(State())
    /// Whether it goes on though nobody reads.
    let isUnattended: Bool
    /// Whether what it brings may answer requests that are made now: nothing was invalidated since it began.
    let isCurrent: @Sendable () -> Bool

    /// A flight that has not begun.
    /// - Parameter isUnattended: Whether it goes on though nobody waits for it.
    init(
        loop: EventLoop, watcher: CallWatcher?, isUnattended: Bool, isCurrent: @escaping @Sendable () -> Bool
    ) {
        self.loop = loop
        self.isUnattended = isUnattended
        self.isCurrent = isCurrent
        control = TransferControl(tellsProgress: false, watcher: watcher)
    }

    // MARK: Taking part

    /// Takes part; `nil` where it is too late: nobody was left, what came first is gone, what is asked for has changed, or it has
    /// failed: that is no answer to who asks behind it.
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
            case .landed(.transfer(_, .coming)), .landed(.transfer(_, .whole)),
                .landed(.transfer(_, .released)), .landed(.transfer(_, .ended(.complete))):
                wasEarly = false
            case .abandoned, .landed: return nil
            }
            state.lastMember += 1
            state.readers[state.lastMember] = Reader(wasEarly: wasEarly)
            return state.lastMember
        }
        return number.map { FlightMember(self, $0) }
    }

    /// Whether one who took part was too slow for the others.
    func hasDetached(_ member: UInt64) -> Bool { state.withLock { $0.detached.contains(member) } }

    /// How many take part.
    var memberCount: Int { state.withLock { $0.readers.count } }

    /// How many bytes it holds in memory: for readers, and until they are written.
    var heldByteCount: Int { state.withLock { Int($0.received - $0.start) + $0.pendingByteCount } }

    /// No longer takes part. When nobody does, the transfer is given up, unless all of it has come: then it is stored for
    /// those who ask next, and until it is they join it.
    func leave(_ member: UInt64) {
        let (isLast, unclaimed) = state.withLock { state -> (Bool, Answer?) in
            guard state.readers.removeValue(forKey: member) != nil else { return (false, nil) }
            trim(&state)
            guard state.readers.isEmpty, !isUnattended else { return (false, nil) }
            switch state.stage {
            case .asking: state.stage = .abandoned
            case .landed(.transfer(_, .coming)) where !state.isWhole: state.advance(to: .abandoned)
            case .landed(.offer(let offer, isTaken: false)):
                state.stage = .landed(.offer(offer, isTaken: true))
                return (false, offer.network)
            case .abandoned, .landed: return (false, nil)
            }
            return (true, nil)
        }
        unclaimed?.finish()
        if isLast { control.cancel() }
        wakePump()
    }

    /// What came of the request; `nil` while it is under way.
    func landing(for member: UInt64, _ waiter: OneShot<Void>) -> Landing? {
        state.withLock { state in
            if case .landed(let landing) = state.stage { return landing }
            state.readers[member]?.waiter = waiter
            return nil
        }
    }

    /// The network's answer whose body is shared.
    var network: Answer? { state.withLock { $0.transfer?.0.network } }

    /// Takes the network's answer over, exchange and all; `nil` where another has it, and where the member for whom the
    /// request was made is still there and takes it.
    /// - Parameter isFirst: Whether the request was made for whoever asks.
    func claim(isFirst: Bool = true) -> Offer? {
        state.withLock { state in
            let isFree = isFirst || isUnattended || state.readers[CacheFlight.firstMember] == nil
            guard isFree, case .landed(.offer(let offer, isTaken: false)) = state.stage else { return nil }
            state.stage = .landed(.offer(offer, isTaken: true))
            return offer
        }
    }

    /// Whether one who takes part did before the head came.
    func wasEarly(_ member: UInt64) -> Bool { state.withLock { $0.readers[member]?.wasEarly == true } }

    /// What one who takes part waits for until the exchange is over; `nil` where it is, and where what is left of the body is
    /// too much to be waited for.
    func ending(for member: UInt64) -> OneShot<Void>? {
        state.withLock { state in
            let announced = state.transfer?.0.network.announcedByteCount
            let left = announced.map { $0 - min($0, state.received) } ?? state.received
            guard state.readers[member] != nil, !state.isOver, state.end == nil,
                left <= CacheFlight.drainLimit
            else { return nil }
            state.readers[member]?.isCollecting = false
            return state.wait(of: member)
        }
    }

    // MARK: What comes of it

    /// Tells all what came of the request.
    /// - Returns: Whether anybody was there to be told.
    @discardableResult
    func land(_ landing: Landing) -> Bool {
        let (waiters, isWanted) = state.withLock { state in
            state.land(landing)
            return (state.takeWaiters(), !state.readers.isEmpty)
        }
        for waiter in waiters { waiter.fulfil(()) }
        return isWanted
    }

    /// The body that was stored; `nil` where none was.
    var representation: UInt64? {
        if case .complete(let stored) = state.withLock({ $0.end }) { stored?.representation } else { nil }
    }
}

/// What those do who read the body, each at its own pace.
extension CacheFlight {
    /// What a reader gets.
    enum Piece {
        /// Bytes.
        case bytes([UInt8])
        /// What is there has to be read back from the store, from this offset on.
        case stored(ResponseWriter, at: UInt64)
        /// The end.
        case end
        /// The transfer failed.
        case failed(any Error)
        /// Nothing yet.
        case wait(OneShot<Void>)
    }

    /// What a reader gets next.
    func next(_ member: UInt64) -> Piece {
        let piece = state.withLock { state -> Piece in
            guard let reader = state.readers[member] else {
                return .failed(state.detached.contains(member) ? CacheFlight.tooSlow : CancellationError())
            }
            let offset = reader.offset
            if reader.isCollecting, state.holding.isBrief, state.continues {
                return .wait(state.wait(of: member))
            }
            if offset < state.start {
                guard let writer = state.writer, offset < state.stored else {
                    return .failed(CacheFlight.lost)
                }
                return .stored(writer, at: offset)
            }
            if offset < state.received {
                var position = state.start
                for chunk in state.chunks {
                    let end = position + UInt64(chunk.count)
                    if offset < end {
                        state.readers[member]?.offset = end
                        trim(&state)
                        let skipped = Int(offset - position)
                        // What still grows is not handed out itself: whoever held it would make the growing copy it.
                        let isSettled = !state.holding.isGathered || state.end != nil
                        return .bytes(skipped == 0 && isSettled ? chunk : Array(chunk[skipped...]))
                    }
                    position = end
                }
            }
            switch state.end {
            case .complete: return .end
            case .failed(let error): return .failed(error)
            case nil: return state.continues ? .wait(state.wait(of: member)) : .end
            }
        }
        wakePump()
        return piece
    }

    /// Notes that a reader takes all of the body, and no part of it sooner where it is brief.
    func collect(_ member: UInt64) {
        state.withLock { state in
            guard state.readers[member] != nil else { return }
            state.readers[member]?.isCollecting = true
            if case .brief(let byteCount) = state.holding, !state.isWhole {
                state.holding = .gathered(byteCount)
            }
        }
        wakePump()
    }

    /// What is held of a brief body for a reader who takes all of it and was given nothing.
    func collected(_ member: UInt64) -> [UInt8] {
        state.withLock { state in
            guard let reader = state.readers[member], reader.isCollecting, reader.offset == 0,
                state.holding.isBrief, state.start == 0
            else { return [] }
            return Array(state.chunks.joined())
        }
    }

    /// Notes what a reader has read back from the store.
    func advance(_ member: UInt64, by count: Int) {
        state.withLock { state in
            state.readers[member]?.offset += UInt64(count)
            trim(&state)
        }
        wakePump()
    }

    /// Notes that what is stored cannot be read back: nobody begins with that any more.
    func noteUnreadable() {
        state.withLock { if $0.admission == .open { $0.admission = .whileHeld } }
    }

    /// Lets go of what no reader needs, or what can be read back.
    func trim(_ state: inout State) {
        guard state.received - state.start > UInt64(CacheFlight.least) else { return }
        let slowest = state.slowest ?? state.received
        // As long as it is being stored, nothing goes that has not been written: whoever joins has to find it there.
        let isStoring = state.writer?.isAlive == true
        if isStoring, state.holding.isBrief { return }
        var dispensable = isStoring ? state.stored : max(state.stored, slowest)
        // Whoever reads first does not depend on the disk: not much is received ahead of it.
        if !isUnattended, let fastest = state.fastest { dispensable = min(dispensable, fastest) }
        while let first = state.chunks.first, state.received - state.start > UInt64(CacheFlight.least),
            state.start + UInt64(first.count) <= dispensable
        {
            state.start += UInt64(first.count)
            state.chunks.removeFirst()
        }
    }

    /// The error of a reader for whom the others could not wait. A call that has handed nothing on yet asks again.
    private static let tooSlow = HTTPError(
        .storedBodyDamaged, phase: .receivingBody,
        message:
            "the body was read too slowly: other requests share its transfer, and what they are ahead by cannot be stored"
    )

    /// What a reader is told for whom the store has lost what it had.
    private static let lost = HTTPError(
        .storedBodyDamaged, phase: .receivingBody, message: "what was stored of the body cannot be read back")
}
