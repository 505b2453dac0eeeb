package import MartletWire
import Synchronization

/// A response on its way into both tiers, in the pieces it comes in.
///
/// A body that is small enough for memory is gathered; where there is a disk, it is written there at the same time. It can be
/// read from the beginning while it comes. Nothing of it can be found before it is committed; what is neither committed nor
/// abandoned is abandoned when nobody holds it any more.
package final class ResponseWriter: Sendable {
    private enum Phase {
        /// More may come.
        case writing
        /// All has come, and it is being stored.
        case committing
        /// It is stored.
        case committed
        /// It is not stored and will not be.
        case abandoned
    }

    private struct State {
        var phase: Phase = .writing
        /// What came, while it is small enough for memory. It stays for those who read, unless the disk has all of it.
        var gathered: [UInt8] = []
        /// Whether memory can still have it: whether `gathered` is all that came.
        var isGathering: Bool
        /// Whether the disk can still have it.
        var isWriting: Bool
        /// All that came, as far as a tier took it.
        var byteCount: UInt64 = 0
        /// What can be read back from the disk.
        var writtenByteCount: UInt64 = 0
    }

    /// The head it was begun with.
    package let head: StoredHead
    /// Which body it will be.
    package let representation: UInt64
    private let expectedByteCount: UInt64?
    private let epoch: InvalidationLedger.Epoch
    private let memoryLimit: Int
    private let entryWriter: EntryWriter?
    package let store: ResponseStore
    /// Held while a piece is written or the whole is stored, so that both tiers get the same.
    private let turn = Mutex(())
    /// Read and written by anybody, never held while a file is.
    private let state: Mutex<State>

    init(
        _ head: StoredHead, expectedByteCount: UInt64?, representation: UInt64,
        epoch: InvalidationLedger.Epoch, memoryLimit: Int?, entryWriter: EntryWriter?, in store: ResponseStore
    ) {
        self.head = head
        self.representation = representation
        self.expectedByteCount = expectedByteCount
        self.epoch = epoch
        self.memoryLimit = memoryLimit ?? 0
        self.entryWriter = entryWriter
        self.store = store
        state = Mutex(State(isGathering: memoryLimit != nil, isWriting: entryWriter != nil))
    }

    /// Whether it can still be stored in any tier, or is. It takes no time.
    package var isAlive: Bool { state.withLock { $0.phase != .abandoned } }

    /// Whether taking bytes, and storing them, may wait for a disk.
    package var isBlocking: Bool { store.hasDisk }

    /// Takes the next bytes of the body. It blocks on files.
    ///
    /// - Returns: whether the response can still be stored. Where it cannot, what came before can still be read.
    @discardableResult
    package func append(_ bytes: [UInt8]) -> Bool {
        turn.withLock { _ in
            let (phase, isWriting) = state.withLock { ($0.phase, $0.isWriting) }
            guard phase == .writing else { return false }
            guard !bytes.isEmpty else { return true }
            let isWritten = isWriting && entryWriter?.append(bytes) ?? false
            let (isRefused, isGivenUp) = state.withLock { state in
                take(bytes, isWritten: isWritten, &state)
                let isGivenUp = state.phase == .abandoned
                guard state.phase == .writing, !state.isGathering, !state.isWriting else {
                    return (false, isGivenUp)
                }
                state.phase = .abandoned
                return (true, false)
            }
            if isRefused { store.countRefusal() }
            if isGivenUp { entryWriter?.abandon() }
            return isAlive
        }
    }

    private func take(_ bytes: [UInt8], isWritten: Bool, _ state: inout State) {
        let total = state.byteCount &+ UInt64(bytes.count)
        state.isWriting = isWritten
        if isWritten { state.writtenByteCount = total }
        if state.isGathering {
            if total <= UInt64(memoryLimit), total <= expectedByteCount ?? .max {
                gather(bytes, &state)
            } else {
                state.isGathering = false
                if isWritten { state.gathered = [] }
            }
        }
        state.byteCount = total
    }

    private func gather(_ bytes: [UInt8], _ state: inout State) {
        if state.gathered.isEmpty, expectedByteCount == UInt64(bytes.count) {
            state.gathered = bytes
            return
        }
        // Room for all of it at once where that is known, so that nothing is copied; what is not written costs none.
        if state.gathered.isEmpty, let expectedByteCount {
            state.gathered.reserveCapacity(Int(clamping: expectedByteCount))
        }
        state.gathered += bytes
    }

    /// Stores the response, when all of its body has come. It blocks on files.
    ///
    /// - Parameter trailers: the fields behind the body.
    /// - Returns: the response as it is stored; `nil` where no tier has it: the body is shorter than was announced, the URL was
    ///   invalidated since the request was sent, or there is no room. Also when it is called again.
    @discardableResult
    package func commit(trailers: FieldBlock?) -> StoredResponse? {
        turn.withLock { _ in
            let whole = state.withLock { state -> (isWhole: Bool, gathered: [UInt8]?, isWriting: Bool)? in
                guard state.phase == .writing else { return nil }
                state.phase = .committing
                let isWhole = state.byteCount == expectedByteCount ?? state.byteCount
                return (isWhole, state.isGathering ? state.gathered : nil, state.isWriting)
            }
            guard let whole else { return nil }
            var response: StoredResponse?
            if whole.isWhole {
                response = store.commit(
                    head, gathered: whole.gathered, whole.isWriting ? entryWriter : nil, trailers: trailers,
                    representation: representation, epoch: epoch)
            } else {
                store.countRefusal()
            }
            if response == nil { entryWriter?.abandon() }
            state.withLock { state in
                state.phase = response == nil ? .abandoned : .committed
                // From now on one array serves memory and whoever reads.
                if let entry = response?.entry, state.isGathering { state.gathered = entry.body }
            }
            return response
        }
    }

    /// Gives back what the body that was replaced occupied, once nobody waits any more; it blocks on files.
    package func letGo() { entryWriter?.letGo() }

    /// Gives the response up, unless it is stored or just being stored. It blocks on files; those who read read on, as far as
    /// it came.
    package func abandon() {
        let isEnded = state.withLock { state in
            guard state.phase == .writing else { return false }
            state.phase = .abandoned
            return true
        }
        if isEnded { entryWriter?.abandon() }
    }

    /// Gives the response up while a piece of it is being written, which removes what was written. It takes no time.
    package func giveUp() {
        let isEnded = state.withLock { state in
            guard state.phase == .writing else { return false }
            state.phase = .abandoned
            return true
        }
        if isEnded { store.countRefusal() }
    }

    /// Gives the response up, also where it is stored or just being stored: what came makes no sense. It blocks on files;
    /// those who read read on, as far as it came.
    ///
    /// - Returns: whether it was stored.
    @discardableResult
    package func withdraw() -> Bool {
        abandon()
        // Behind whoever stores it at this moment.
        let isStored = turn.withLock { _ in
            state.withLock { state in
                guard state.phase == .committed else { return false }
                state.phase = .abandoned
                return true
            }
        }
        if isStored { store.remove(head.key, representation: representation) }
        return isStored
    }

    // MARK: Reading along

    /// How many bytes from the beginning can be read back now. It never becomes less, and takes no time.
    package var readableByteCount: UInt64 {
        state.withLock { max(UInt64($0.gathered.count), $0.writtenByteCount) }
    }

    /// Bytes of the body from an offset on, at most so many, and at least one below ``readableByteCount``; none from there on.
    /// It blocks on files.
    ///
    /// - Throws: what is wrong with the file.
    package func read(at offset: UInt64, limit: Int) throws(EntryFault) -> [UInt8] {
        guard limit > 0 else { return [] }
        let (piece, readable) = state.withLock { state -> ([UInt8], UInt64) in
            let readable = max(UInt64(state.gathered.count), state.writtenByteCount)
            guard offset < UInt64(state.gathered.count) else { return ([], readable) }
            // Before it is stored it still grows, and whoever held it all would make the growing copy it.
            let isSettled = state.phase == .committed && offset == 0 && limit >= state.gathered.count
            return (
                isSettled ? state.gathered : Array(state.gathered[Int(offset)...].prefix(limit)), readable
            )
        }
        if !piece.isEmpty { return piece }
        guard offset < readable, let entryWriter else { return [] }
        let rest = Int(clamping: readable - offset)
        switch try entryWriter.read(at: offset, limit: min(limit, rest)) {
        case .bytes(let bytes): return bytes
        case .pending, .end, .abandoned: throw .length
        }
    }
}
