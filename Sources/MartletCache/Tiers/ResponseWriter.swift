package import MartletWire
import Synchronization

/// A response that is being written to both tiers, as its body is received.
///
/// The body is written to the disk, if there is one, and gathered in memory if it is small enough. It can be read at
/// any time. The response cannot be found before it is committed. Releasing the writer before that abandons it.
package final class ResponseWriter: Sendable {
    private enum Phase {
        case writing
        /// The body is complete, and is being stored.
        case committing
        case committed
        /// The response is not stored and will not be.
        case abandoned
    }

    private struct State {
        var phase: Phase = .writing
        /// The received bytes, while they fit in memory. They stay for readers, unless the disk has all of them.
        var gathered: [UInt8] = []
        /// Whether memory can still store the body: whether `gathered` is all of it so far.
        var isGathering: Bool
        /// Whether the disk can still store it.
        var isWriting: Bool
        /// The number of received bytes that a tier accepted.
        var byteCount: UInt64 = 0
        /// The bytes that can be read back from the disk.
        var writtenByteCount: UInt64 = 0

        var readableByteCount: UInt64 { max(UInt64(gathered.count), writtenByteCount) }
    }

    /// The head, without trailers.
    package let head: StoredHead
    /// The number of the body.
    package let representation: UInt64
    private let expectedByteCount: UInt64?
    private let epoch: InvalidationLog.Epoch
    private let memoryLimit: Int
    private let entryWriter: EntryWriter?
    package let store: ResponseStore
    /// The lock that is held while a piece is written or the response is stored, so that both tiers get the same bytes.
    private let turn = Mutex(())
    /// The lock on the state, used by any thread; never held during a file operation.
    private let state: Mutex<State>

    init(
        _ head: StoredHead, expectedByteCount: UInt64?, representation: UInt64, epoch: InvalidationLog.Epoch,
        memoryLimit: Int?, entryWriter: EntryWriter?, in store: ResponseStore
    ) {
        (self.head, self.representation, self.epoch) = (head, representation, epoch)
        (self.expectedByteCount, self.memoryLimit) = (expectedByteCount, memoryLimit ?? 0)
        (self.entryWriter, self.store) = (entryWriter, store)
        state = Mutex(State(isGathering: memoryLimit != nil, isWriting: entryWriter != nil))
        store.invalidations.withLock { $0.begin(head.key) }
    }

    deinit { store.invalidations.withLock { $0.end(head.key) } }

    /// Whether the response is stored, or can still be stored, in at least one tier. It does not block.
    package var isAlive: Bool { state.withLock { $0.phase != .abandoned } }

    /// Appends bytes to the body. It blocks on files.
    /// - Returns: Whether the response can still be stored. If not, earlier bytes can still be read.
    @discardableResult package func append(_ bytes: [UInt8]) -> Bool {
        turn.withLock { _ in
            let (phase, isWriting) = state.withLock { ($0.phase, $0.isWriting) }
            guard phase == .writing else { return false }
            guard !bytes.isEmpty else { return true }
            let isWritten = isWriting && entryWriter?.append(bytes) ?? false
            let isAbandoned = state.withLock { state in
                take(bytes, isWritten: isWritten, &state)
                if !state.isGathering, !state.isWriting { state.phase = .abandoned }
                return state.phase == .abandoned
            }
            if isAbandoned { entryWriter?.abandon() }
            return !isAbandoned
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
        if state.gathered.isEmpty, let expectedByteCount {
            guard expectedByteCount != UInt64(bytes.count) else {
                state.gathered = bytes
                return
            }
            // With capacity for the whole body nothing is copied later; unwritten pages cost nothing.
            state.gathered.reserveCapacity(Int(clamping: expectedByteCount))
        }
        state.gathered += bytes
    }

    /// Stores the response once its body is complete. It blocks on files.
    /// - Parameter now: The current time: if the clock was set back, responses of the future do not count as later.
    /// - Returns: The stored response; `nil` if no tier stores it: the body is shorter than announced, the URL was
    ///   invalidated since the request was sent, a later response is stored, or there is no space. Also `nil` on later
    ///   calls.
    @discardableResult package func commit(trailers: FieldBlock?, now: WallTime = WallTime(milliseconds: .max))
        -> StoredResponse?
    {
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
                    representation: representation, epoch: epoch, now: now)
            }
            if response == nil { entryWriter?.abandon() }
            state.withLock { state in
                state.phase = response == nil ? .abandoned : .committed
                // From now on memory and all readers share one array.
                if let entry = response?.entry, state.isGathering { state.gathered = entry.body }
            }
            return response
        }
    }

    /// Releases the space of the replaced body. It blocks on files, so it is called when no caller waits any more.
    package func releaseReplacedBody() { entryWriter?.releaseReplacedBody() }

    // MARK: Abandoning

    /// Abandons the response, unless it is stored or being stored. It blocks on files. Received bytes stay readable.
    package func abandon() { if end(from: .writing) { entryWriter?.abandon() } }

    /// Abandons the response without blocking. A running write, or else `deinit`, removes the written bytes.
    package func abandonNonBlocking() { end(from: .writing) }

    /// Abandons the response, and removes it if it is stored. It blocks on files. Received bytes stay readable.
    /// - Returns: Whether it was stored.
    @discardableResult package func withdraw() -> Bool {
        abandon()
        // Waits for a commit that is in progress.
        let isStored = turn.withLock { _ in end(from: .committed) }
        if isStored { store.remove(head.key, representation: representation) }
        return isStored
    }

    @discardableResult private func end(from phase: Phase) -> Bool {
        state.withLock { state in
            guard state.phase == phase else { return false }
            state.phase = .abandoned
            return true
        }
    }

    // MARK: Reading

    /// The number of bytes from the beginning that can be read now. It never decreases, and does not block.
    package var readableByteCount: UInt64 { state.withLock { $0.readableByteCount } }

    /// Reads at most `limit` bytes from an offset, at least one below ``readableByteCount``. It blocks on files.
    /// - Throws: The error of the file.
    package func read(at offset: UInt64, limit: Int) throws(EntryFormatError) -> [UInt8] {
        guard limit > 0 else { return [] }
        let (piece, readable) = state.withLock { state -> ([UInt8], UInt64) in
            let gathered = state.gathered
            guard offset < UInt64(gathered.count) else { return ([], state.readableByteCount) }
            // Before the commit the array still grows: if a reader shared its storage, appending would copy it.
            let isSettled = state.phase == .committed && offset == 0 && limit >= gathered.count
            return (isSettled ? gathered : Array(gathered[Int(offset)...].prefix(limit)), 0)
        }
        guard piece.isEmpty, offset < readable, let entryWriter else { return piece }
        return try entryWriter.read(at: offset, limit: min(limit, Int(clamping: readable - offset)))
    }
}
