import MartletCache
import MartletCore

extension CacheFlight {
    /// The state of a flight: the stage of its request, its members, and the part of the body that is held.
    struct State {
        var stage = Stage.asking

        var readers: [UInt64: Reader] = [:]
        /// The former members that were too slow for the others.
        var detached: Set<UInt64> = []
        var lastMember: UInt64 = 0
        /// The received bytes that are held, oldest first, and the offset of the first of them.
        var chunks: [[UInt8]] = []
        var start: UInt64 = 0
        var received: UInt64 = 0
        var holding = Holding.pieces

        var writer: ResponseWriter?
        /// The bytes that are not written yet.
        var pending: [[UInt8]] = []
        var pendingByteCount = 0
        var writing = Writing.idle
        /// The number of bytes that can be read back.
        var stored: UInt64 = 0

        var admission = Admission.open
        /// The wait of the receiving task.
        var pump: OneShot<Void>?
    }

    enum Stage {
        case asking
        /// The head was not received yet, and no member is left.
        case abandoned
        case decided(Outcome)
    }

    /// The outcome of the request.
    enum Outcome {
        /// A response that is not stored: the first member to take it gets it.
        case offer(Offer, isTaken: Bool)
        /// A response that is stored as its body is received, for all members.
        case transfer(Transfer, Progress)
        /// The stored response is still valid, as the network's response confirmed.
        case stored(StoredResponse, CachedResponse, StreamedResponse)
        case failed(any Error)
    }

    /// A response that one member gets, with its exchange.
    struct Offer {
        let network: StreamedResponse
        let status: CacheStatus
        /// Whether the response is an error that a stored one may replace for other members; else these send requests.
        var hasStaleFallback = false
    }

    /// A response that all members get.
    struct Transfer {
        let variant: StoredVariant
        let network: StreamedResponse
        let status: CacheStatus
    }

    enum Progress {
        case coming
        /// All members left before it was complete, so receiving stops.
        case abandoned
        /// The exchange is over, and the body complete. It is being stored.
        case whole
        /// Like ``whole``, but readers do not wait until the body is stored.
        case released
        case ended(BodyOutcome)
    }

    /// The end of a body.
    enum BodyOutcome {
        /// The body is complete, and stored if possible.
        case complete(StoredResponse?)
        case failed(any Error)
    }

    /// The state of a member.
    struct Reader {
        /// Whether it joined before the head was received.
        let wasEarly: Bool
        /// The number of bytes that it has read.
        var offset: UInt64 = 0
        /// Whether it takes the body as a whole, and is not notified of parts of a brief one.
        var isCollecting = false
        var waiter: OneShot<Void>?
    }

    /// The way the body is held in memory.
    enum Holding {
        /// In pieces, which are released when they are not needed.
        case pieces
        /// Whole until it is stored in one step: a brief body, whose length is known and within the limit.
        case brief(Int)
        /// The same, in one growing piece, since a member takes the body as a whole.
        case gathered(Int)

        var isBrief: Bool { if case .pieces = self { false } else { true } }

        var isGathered: Bool { if case .gathered = self { true } else { false } }
    }

    enum Writing {
        case idle
        case busy
        /// The last pending bytes are being written; after that the closure stores the body, and ends it.
        case last(@Sendable () -> Void)

        var isUnderWay: Bool { if case .idle = self { false } else { true } }
    }

    /// The condition under which requests may join.
    enum Admission {
        /// The body is held, or can be read back, from its beginning.
        case open
        /// All received bytes are held in memory. This is required after stored bytes could not be read back.
        case whileHeld
        /// No request may join: the body cannot be decoded.
        case closed
    }
}

extension CacheFlight.State {
    /// The response whose body is shared, and its progress.
    var transfer: (CacheFlight.Transfer, progress: CacheFlight.Progress)? {
        if case .decided(.transfer(let transfer, let progress)) = stage { (transfer, progress) } else { nil }
    }

    /// Whether receiving has stopped, because all members left.
    var isAbandoned: Bool {
        switch stage {
        case .abandoned, .decided(.transfer(_, .abandoned)): true
        case .asking, .decided: false
        }
    }

    var end: CacheFlight.BodyOutcome? { if case .decided(.transfer(_, .ended(let end))) = stage { end } else { nil } }

    /// Whether members that have read all received bytes wait: for more, or until the body is stored.
    var continues: Bool {
        switch stage {
        case .decided(.transfer(_, .released)), .decided(.transfer(_, .ended)): false
        case .asking, .abandoned, .decided: true
        }
    }

    /// Whether the exchange is over, and the body complete.
    var isOver: Bool {
        switch stage {
        case .decided(.transfer(_, .whole)), .decided(.transfer(_, .released)),
            .decided(.transfer(_, .ended(.complete))):
            true
        case .asking, .abandoned, .decided: false
        }
    }

    /// Whether the body is complete. It may not be stored yet.
    var isWhole: Bool { isOver || transfer?.0.network.expectedContentLength == received }

    /// The offsets of the slowest and of the fastest reader.
    var slowest: UInt64? { readers.values.lazy.map(\.offset).min() }
    var fastest: UInt64? { readers.values.lazy.map(\.offset).max() }

    /// Sets the progress of the body, if it is shared.
    mutating func advance(to progress: CacheFlight.Progress) {
        if let (transfer, _) = transfer { stage = .decided(.transfer(transfer, progress)) }
    }

    /// Sets the outcome of the request. Without members, receiving stops.
    mutating func decide(_ outcome: CacheFlight.Outcome) {
        let wasAbandoned = isAbandoned
        stage = .decided(outcome)
        if wasAbandoned { advance(to: .abandoned) }
    }

    /// Removes the waits of all members that meet a condition, and returns them to be resumed.
    mutating func takeWaiters(where predicate: (CacheFlight.Reader) -> Bool = { _ in true }) -> [OneShot<Void>] {
        var waiters: [OneShot<Void>] = []
        // A list of the indices would share the table, which would be copied when it is changed.
        var index = readers.startIndex
        while index != readers.endIndex {
            if predicate(readers.values[index]), let waiter = readers.values[index].waiter.take() {
                waiters.append(waiter)
            }
            readers.formIndex(after: &index)
        }
        return waiters
    }

    /// Removes the waits of the members that wait for more of the body, and returns them to be resumed.
    mutating func takeReaders() -> [OneShot<Void>] {
        let isBrief = holding.isBrief
        return takeWaiters { !isBrief || !$0.isCollecting }
    }

    /// Starts the wait of a member.
    mutating func wait(of member: UInt64) -> OneShot<Void> {
        let wait = OneShot<Void>()
        readers[member]?.waiter = wait
        return wait
    }

    mutating func hold(_ bytes: [UInt8]) {
        received += UInt64(bytes.count)
        guard case .gathered(let byteCount) = holding else { return chunks.gather(bytes) }
        if chunks.count != 1 || chunks[0].capacity < byteCount {
            // Capacity for the whole body. Unwritten pages cost nothing, and the length of a brief body is limited.
            var whole: [UInt8] = []
            whole.reserveCapacity(byteCount)
            for chunk in chunks { whole += chunk }
            chunks = [whole]
        }
        chunks[0] += bytes
    }

    /// Discards the bytes that are not written yet.
    mutating func dropPending() { (pending, pendingByteCount) = ([], 0) }
}

/// The maximum size of small pieces that are gathered into one, in bytes: a server may send a body byte by byte.
private let gatheredByteCount = 16 * 1024

extension [[UInt8]] {
    /// Appends a piece; adds its bytes to the last piece if both are small.
    mutating func gather(_ bytes: [UInt8]) {
        guard let last = indices.last, self[last].count + bytes.count <= gatheredByteCount else { return append(bytes) }
        self[last] += bytes
    }
}
