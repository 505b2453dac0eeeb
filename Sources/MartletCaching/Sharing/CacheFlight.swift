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
    struct State {
        var landing: Landing?
        /// The network's answer.
        var network: Answer?
        /// What the cache says of it.
        var status: CacheStatus?
        /// The cookies that came with the word that what is stored is good.
        var setCookies: [[UInt8]] = []
        var isClaimed = false
        /// How far each of those who take part has read.
        var offsets: [UInt64: UInt64] = [:]
        /// Who came before the head.
        var early: Set<UInt64> = []
        var lastMember: UInt64 = 0
        var waiters: [UInt64: OneShot<Void>] = [:]
        /// Who takes the body in one piece, and is not told of parts of it where it is brief.
        var collectors: Set<UInt64> = []
        var isGivenUp = false
        /// The members that were too slow for the others, and take part no longer.
        var detached: Set<UInt64> = []

        /// What was received and not let go, oldest first, and where the first of it stands.
        var chunks: [[UInt8]] = []
        var start: UInt64 = 0
        var received: UInt64 = 0
        /// What waits to be written.
        var pending: [[UInt8]] = []
        var pendingByteCount = 0
        var isWriting = false
        /// How much can be read back.
        var stored: UInt64 = 0
        /// Whether the exchange is over, with all of the body.
        var isOver = false
        /// Whether those who have read all of the body wait no longer until it is stored.
        var isReleased = false
        var writer: ResponseWriter?
        /// The length of a body that is brief: known to be no longer than what may be held, and so held whole until it is
        /// stored, all at once.
        var briefByteCount: Int?
        /// Whether what is held of a brief body is one piece that grows, since somebody takes it as one.
        var isGathering = false
        /// What stores the body once all of it is written, and ends it.
        var finish: (@Sendable () -> Void)?
        /// Whether something could not be read back.
        var isUnreadable = false
        /// Whether what came makes no sense to those who decode it.
        var isWithdrawn = false
        var end: End?
        /// Where the receiving task waits.
        var pump: OneShot<Void>?

        /// Whether all of the body has come. It may not be stored yet.
        var isWhole: Bool { isOver || network?.announcedByteCount == received }
    }

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
        loop: EventLoop, watcher: CallWatcher?, isUnattended: Bool,
        isCurrent: @escaping @Sendable () -> Bool
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
            let isReadable = !state.isUnreadable && state.stored >= state.start
            guard !state.isGivenUp, !state.isWithdrawn, state.start == 0 || isReadable else { return nil }
            if case .failed = state.end { return nil }
            switch state.landing {
            case nil, .transfer: break
            default: return nil
            }
            state.lastMember += 1
            if state.landing == nil { state.early.insert(state.lastMember) }
            state.offsets[state.lastMember] = 0
            return state.lastMember
        }
        return number.map { FlightMember(self, $0) }
    }

    /// Whether one who took part was too slow for the others.
    func hasDetached(_ member: UInt64) -> Bool { state.withLock { $0.detached.contains(member) } }

    /// How many take part.
    var memberCount: Int { state.withLock { $0.offsets.count } }

    /// How many bytes it holds in memory: for readers, and until they are written.
    var heldByteCount: Int { state.withLock { Int($0.received - $0.start) + $0.pendingByteCount } }

    /// No longer takes part. When nobody does, the transfer is given up, unless all of it has come: then it is stored for
    /// those who ask next, and until it is they join it.
    func leave(_ member: UInt64) {
        let (isLast, unclaimed) = state.withLock { state -> (Bool, Answer?) in
            guard state.offsets.removeValue(forKey: member) != nil else { return (false, nil) }
            state.waiters[member] = nil
            state.collectors.remove(member)
            trim(&state)
            guard state.offsets.isEmpty, !isUnattended else { return (false, nil) }
            switch state.landing {
            case .exchange, .error:
                defer { state.isClaimed = true }
                return (false, state.isClaimed ? nil : state.network)
            case nil, .transfer:
                guard state.end == nil, !state.isWhole else { return (false, nil) }
                state.isGivenUp = true
                return (true, nil)
            case .stored, .failed: return (false, nil)
            }
        }
        unclaimed?.finish()
        if isLast { control.cancel() }
        wakePump()
    }

    /// What came of the request; `nil` while it is under way.
    func landing(for member: UInt64, _ waiter: OneShot<Void>) -> Landing? {
        state.withLock { state in
            if state.landing == nil { state.waiters[member] = waiter }
            return state.landing
        }
    }

    /// The network's answer and what the cache says of it.
    var answer: (network: Answer, status: CacheStatus)? {
        state.withLock { state in
            guard let network = state.network, let status = state.status else { return nil }
            return (network, status)
        }
    }

    /// The cookies that came with the word that what is stored is good.
    var setCookies: [[UInt8]] { state.withLock { $0.setCookies } }

    /// Takes the network's answer over, exchange and all; `nil` where another has it, and where the member for whom the
    /// request was made is still there and takes it.
    /// - Parameter isFirst: Whether the request was made for whoever asks.
    func claim(isFirst: Bool = true) -> Answer? {
        state.withLock { state in
            let isFree = isFirst || isUnattended || state.offsets[CacheFlight.firstMember] == nil
            guard !state.isClaimed, isFree else { return nil }
            state.isClaimed = true
            return state.network
        }
    }

    /// Whether one who takes part did before the head came.
    func wasEarly(_ member: UInt64) -> Bool {
        state.withLock { $0.early.contains(member) }
    }

    /// What one who takes part waits for until the exchange is over; `nil` where it is, and where what is left of the body is
    /// too much to be waited for.
    func ending(for member: UInt64) -> OneShot<Void>? {
        state.withLock { state in
            let left =
                state.network?.announcedByteCount.map { $0 - min($0, state.received) } ?? state.received
            guard state.offsets[member] != nil, !state.isOver, state.end == nil,
                left <= CacheFlight.drainLimit
            else { return nil }
            state.collectors.remove(member)
            return state.wait(of: member)
        }
    }

    // MARK: What comes of it

    /// Tells all what came of the request.
    /// - Returns: Whether anybody was there to be told.
    @discardableResult
    func land(
        _ landing: Landing, network: Answer? = nil, status: CacheStatus? = nil, setCookies: [[UInt8]] = []
    ) -> Bool {
        let (waiters, isWanted) = state.withLock { state -> ([OneShot<Void>], Bool) in
            state.landing = landing
            state.network = network
            state.status = status
            state.setCookies = setCookies
            return (state.takeWaiters(), !state.offsets.isEmpty)
        }
        for waiter in waiters { waiter.fulfil(()) }
        return isWanted
    }

    /// The body that was stored; `nil` where none was.
    var representation: UInt64? {
        state.withLock { state in
            if case .complete(let stored) = state.end { stored?.representation } else { nil }
        }
    }
}

extension CacheFlight.State {
    /// All who wait, who wait no longer.
    mutating func takeWaiters() -> [OneShot<Void>] {
        guard !waiters.isEmpty else { return [] }
        defer { waiters = [:] }
        return Array(waiters.values)
    }

    /// Those who wait for more of the body, who wait no longer.
    mutating func takeReaders() -> [OneShot<Void>] {
        guard briefByteCount != nil, !collectors.isEmpty, !waiters.isEmpty else { return takeWaiters() }
        let readers = waiters.filter { !collectors.contains($0.key) }
        for member in readers.keys { waiters[member] = nil }
        return Array(readers.values)
    }

    /// What a member waits by from now on.
    mutating func wait(of member: UInt64) -> OneShot<Void> {
        let wait = OneShot<Void>()
        waiters[member] = wait
        return wait
    }

    /// Keeps what was received for those who read.
    mutating func hold(_ bytes: [UInt8]) {
        received += UInt64(bytes.count)
        guard isGathering, let briefByteCount else { return chunks.gather(bytes) }
        if chunks.count != 1 || chunks[0].capacity < briefByteCount {
            // Room for all of it, which costs nothing before it is written; a brief body's length may be believed.
            var whole: [UInt8] = []
            whole.reserveCapacity(briefByteCount)
            for chunk in chunks { whole += chunk }
            chunks = [whole]
        }
        chunks[0] += bytes
    }
}

extension CacheFlight {
    /// What came of the request.
    enum Landing: Sendable {
        /// An answer that is not stored: it belongs to whoever takes it first, and the others ask for themselves.
        case exchange
        /// An answer that is stored as its body comes, for all.
        case transfer(StoredVariant)
        /// What was stored is still good.
        case stored(StoredResponse, CachedAnswer)
        /// An error that something stored can stand in for: it belongs to whoever takes it first, and the others have what
        /// is stored.
        case error
        /// There was no answer.
        case failed(any Error)
    }

    /// How the body ended.
    enum End: Sendable {
        /// It came whole, and was stored, if it could be.
        case complete(StoredResponse?)
        /// It did not.
        case failed(any Error)
    }

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
}

/// What those do who read the body, each at its own pace.
extension CacheFlight {
    /// What a reader gets next.
    func next(_ member: UInt64) -> Piece {
        let piece = state.withLock { state -> Piece in
            guard let offset = state.offsets[member] else {
                return .failed(
                    state.detached.contains(member) ? CacheFlight.tooSlow : CancellationError())
            }
            if state.end == nil, !state.isReleased, state.briefByteCount != nil,
                state.collectors.contains(member)
            {
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
                        state.offsets[member] = end
                        trim(&state)
                        let skipped = Int(offset - position)
                        // What still grows is not handed out itself: whoever held it would make the growing copy it.
                        let isSettled = !state.isGathering || state.end != nil
                        return .bytes(skipped == 0 && isSettled ? chunk : Array(chunk[skipped...]))
                    }
                    position = end
                }
            }
            switch state.end {
            case .complete: return .end
            case .failed(let error): return .failed(error)
            case nil: return state.isReleased ? .end : .wait(state.wait(of: member))
            }
        }
        wakePump()
        return piece
    }

    /// Notes that a reader takes all of the body, and no part of it sooner where it is brief.
    func collect(_ member: UInt64) {
        state.withLock { state in
            guard state.offsets[member] != nil else { return }
            state.collectors.insert(member)
            if state.briefByteCount != nil, !state.isWhole { state.isGathering = true }
        }
        wakePump()
    }

    /// What is held of a brief body for a reader who takes all of it and was given nothing.
    func collected(_ member: UInt64) -> [UInt8] {
        state.withLock { state in
            guard state.briefByteCount != nil, state.collectors.contains(member), state.offsets[member] == 0,
                state.start == 0
            else { return [] }
            return Array(state.chunks.joined())
        }
    }

    /// Notes what a reader has read back from the store.
    func advance(_ member: UInt64, by count: Int) {
        state.withLock { state in
            if let offset = state.offsets[member] { state.offsets[member] = offset + UInt64(count) }
            trim(&state)
        }
        wakePump()
    }

    /// Notes that what is stored cannot be read back: nobody begins with that any more.
    func noteUnreadable() {
        state.withLock { $0.isUnreadable = true }
    }

    /// Lets go of what no reader needs, or what can be read back.
    func trim(_ state: inout State) {
        guard state.received - state.start > UInt64(CacheFlight.least) else { return }
        let slowest = state.offsets.values.min() ?? state.received
        // As long as it is being stored, nothing goes that has not been written: whoever joins has to find it there.
        let isStoring = state.writer?.isAlive == true
        if isStoring, state.briefByteCount != nil { return }
        var dispensable = isStoring ? state.stored : max(state.stored, slowest)
        // Whoever reads first does not depend on the disk: not much is received ahead of it.
        if !isUnattended, let fastest = state.offsets.values.max() {
            dispensable = min(dispensable, fastest)
        }
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
