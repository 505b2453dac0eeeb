import MartletCache
import MartletCore
import MartletTransport

extension CacheFlight {
    /// The state of a flight: the stage of its request, its members, and the part of the body that is held.
    struct State {
        var stage = Stage.asking

        /// The members, by number.
        var readers: [UInt64: Reader] = [:]
        /// The members that were too slow for the others, and take part no longer.
        var detached: Set<UInt64> = []
        var lastMember: UInt64 = 0

        /// What was received and not let go, oldest first, and where the first of it stands.
        var chunks: [[UInt8]] = []
        var start: UInt64 = 0
        var received: UInt64 = 0
        var holding = Holding.pieces

        var writer: ResponseWriter?
        /// What waits to be written.
        var pending: [[UInt8]] = []
        var pendingByteCount = 0
        var writing = Writing.idle
        /// How much can be read back.
        var stored: UInt64 = 0

        var admission = Admission.open
        /// Where the receiving task waits.
        var pump: OneShot<Void>?
    }

    /// The stage of the request.
    enum Stage {
        /// The head has not come.
        case asking
        /// The head has not come, and nobody is left who wants it.
        case abandoned
        /// Something came of the request.
        case landed(Landing)
    }

    /// The outcome of the request.
    enum Landing {
        /// An answer that is not stored: it belongs to whoever takes it first.
        case offer(Offer, isTaken: Bool)
        /// An answer that is stored as its body comes, for all.
        case transfer(Transfer, Progress)
        /// What was stored is still good. With that word came cookies.
        case stored(StoredResponse, CachedAnswer, setCookies: [[UInt8]])
        /// There was no answer.
        case failed(any Error)
    }

    /// An answer that one member gets, exchange and all.
    struct Offer {
        let network: Answer
        /// What the cache says of it.
        let status: CacheStatus
        /// Whether it is an error that something stored can stand in for: the other members have that. Else they ask for
        /// themselves.
        let hasStandIn: Bool
    }

    /// An answer that all members get.
    struct Transfer {
        let variant: StoredVariant
        let network: Answer
        /// What the cache says of it.
        let status: CacheStatus
    }

    /// The progress of a transfer's body.
    enum Progress {
        /// More is to come.
        case coming
        /// Nobody was left before all of it had come: no more of it is received.
        case abandoned
        /// The exchange is over, with all of the body. It is being stored.
        case whole
        /// The same; and those who have read all of it wait no longer until it is stored.
        case released
        /// The body has ended.
        case ended(End)
    }

    /// The end of a body.
    enum End {
        /// It came whole, and was stored, if it could be.
        case complete(StoredResponse?)
        /// It did not.
        case failed(any Error)
    }

    /// A member that was not too slow for the others.
    struct Reader {
        /// Whether it came before the head.
        let wasEarly: Bool
        /// The end of what it has read.
        var offset: UInt64 = 0
        /// Whether it takes the body in one piece, and is not told of parts of it where it is brief.
        var isCollecting = false
        var waiter: OneShot<Void>?
    }

    /// The way in which the body is held.
    enum Holding {
        /// In pieces that are let go.
        case pieces
        /// Whole until it is stored, all at once: a brief body, known to be of this length, which is no more than may be held.
        case brief(Int)
        /// The same in one piece that grows, since somebody takes it as one.
        case gathered(Int)

        /// Whether the body is brief.
        var isBrief: Bool { if case .pieces = self { false } else { true } }

        /// Whether the body is one piece that grows.
        var isGathered: Bool { if case .gathered = self { true } else { false } }
    }

    /// The state of what writes the body.
    enum Writing {
        /// Nobody writes.
        case idle
        /// What waits to be written is being written.
        case busy
        /// The same, and there will be no more: the closure stores the body once all of it is written, and ends it.
        case last(@Sendable () -> Void)

        /// Whether somebody writes.
        var isUnderWay: Bool { if case .idle = self { false } else { true } }
    }

    /// The answer to those who ask to take part.
    enum Admission {
        /// They may, where the body is held or can be read back from its beginning.
        case open
        /// They may, where all that came is held: something could not be read back.
        case whileHeld
        /// They may not: what came makes no sense to those who decode it.
        case closed
    }
}

extension CacheFlight.State {
    /// The answer whose body is shared, and how far that has come.
    var transfer: (CacheFlight.Transfer, progress: CacheFlight.Progress)? {
        if case .landed(.transfer(let transfer, let progress)) = stage { (transfer, progress) } else { nil }
    }

    /// Whether nothing more is received, since nobody was left.
    var isAbandoned: Bool {
        switch stage {
        case .abandoned, .landed(.transfer(_, .abandoned)): true
        case .asking, .landed: false
        }
    }

    /// The end of the body.
    var end: CacheFlight.End? { if case .landed(.transfer(_, .ended(let end))) = stage { end } else { nil } }

    /// Whether those who have read all that came wait: for more, or until it is stored.
    var continues: Bool {
        switch stage {
        case .landed(.transfer(_, .released)), .landed(.transfer(_, .ended)): false
        case .asking, .abandoned, .landed: true
        }
    }

    /// Whether the exchange is over, with all of the body.
    var isOver: Bool {
        switch stage {
        case .landed(.transfer(_, .whole)), .landed(.transfer(_, .released)),
            .landed(.transfer(_, .ended(.complete))):
            true
        case .asking, .abandoned, .landed: false
        }
    }

    /// Whether all of the body has come. It may not be stored yet.
    var isWhole: Bool { isOver || transfer?.0.network.announcedByteCount == received }

    /// The offsets of the reader that is behind all others, and of the one that is ahead of them.
    var slowest: UInt64? { readers.values.lazy.map(\.offset).min() }
    var fastest: UInt64? { readers.values.lazy.map(\.offset).max() }

    /// Notes how far the body has come, if it is shared.
    mutating func advance(to progress: CacheFlight.Progress) {
        if let (transfer, _) = transfer { stage = .landed(.transfer(transfer, progress)) }
    }

    /// Notes what came of the request. What nobody was left for is received no further.
    mutating func land(_ landing: CacheFlight.Landing) {
        let wasAbandoned = isAbandoned
        stage = .landed(landing)
        if wasAbandoned { advance(to: .abandoned) }
    }

    /// All who wait and meet a condition; they wait no longer.
    mutating func takeWaiters(where isMeant: (CacheFlight.Reader) -> Bool = { _ in true }) -> [OneShot<Void>]
    {
        var waiters: [OneShot<Void>] = []
        // A list of the indices would share the table, which were copied to be changed.
        var index = readers.startIndex
        while index != readers.endIndex {
            if isMeant(readers.values[index]), let waiter = readers.values[index].waiter.take() {
                waiters.append(waiter)
            }
            readers.formIndex(after: &index)
        }
        return waiters
    }

    /// Those who wait for more of the body, who wait no longer.
    mutating func takeReaders() -> [OneShot<Void>] {
        let isBrief = holding.isBrief
        return takeWaiters { !isBrief || !$0.isCollecting }
    }

    /// What a member waits by from now on.
    mutating func wait(of member: UInt64) -> OneShot<Void> {
        let wait = OneShot<Void>()
        readers[member]?.waiter = wait
        return wait
    }

    /// Keeps what was received for those who read.
    mutating func hold(_ bytes: [UInt8]) {
        received += UInt64(bytes.count)
        guard case .gathered(let byteCount) = holding else { return chunks.gather(bytes) }
        if chunks.count != 1 || chunks[0].capacity < byteCount {
            // Room for all of it, which costs nothing before it is written; a brief body's length may be believed.
            var whole: [UInt8] = []
            whole.reserveCapacity(byteCount)
            for chunk in chunks { whole += chunk }
            chunks = [whole]
        }
        chunks[0] += bytes
    }

    /// Writes nothing of what waits for that.
    mutating func dropPending() { (pending, pendingByteCount) = ([], 0) }
}
