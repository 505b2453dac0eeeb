import MartletStorage
package import MartletWire
import Synchronization

/// A response that is being written to disk, as its body is received.
///
/// Up to 32 KiB are held in memory; a longer body is written to a temporary file. Calls block, and must run on a worker
/// thread. The response cannot be found before it is committed. Releasing the writer before that abandons it.
package final class EntryWriter: Sendable {
    package enum Phase: Sendable, Equatable {
        case writing
        case committed
        /// The response is not stored and will not be.
        case abandoned
    }

    private struct State {
        var phase: Phase = .writing
        /// The body, while it is small.
        var buffer: [UInt8] = []
        /// The larger body. It stays readable for concurrent readers.
        var file: OpenFile?
        var number: UInt64 = 0
        var byteCount: UInt64 = 0
        var reserved: UInt64 = 0
        var checksums = BlockChecksums()
        var name: EntryName?
        var displaced: OpenFile?
    }

    /// The head, without trailers.
    package let head: StoredHead
    private let expectedByteCount: UInt64?
    private let generation: UInt64
    private let cache: DiskCache
    /// The lock on the state, held while the response is written or committed, but not while a reader reads the file.
    private let state = Mutex(State())

    init(_ head: StoredHead, expectedByteCount: UInt64?, generation: UInt64, in cache: DiskCache) {
        (self.head, self.expectedByteCount) = (head, expectedByteCount)
        (self.generation, self.cache) = (generation, cache)
    }

    deinit { abandon() }

    package var phase: Phase { state.withLock { $0.phase } }

    /// The name of the stored entry; `nil` before it is stored.
    var name: EntryName? { state.withLock { $0.name } }

    /// Appends bytes to the body.
    /// - Returns: Whether the response can still be stored. If not, the bytes written so far are discarded.
    @discardableResult package func append(_ bytes: [UInt8]) -> Bool {
        state.withLock { state in
            guard state.phase == .writing else { return false }
            guard !bytes.isEmpty else { return true }
            let (total, limit) = (state.byteCount &+ UInt64(bytes.count), cache.bodyLimit)
            do throws(StorageError) {
                if total > limit {
                    cache.emit(.tooLarge(head.key, byteCount: total, limit: limit))
                } else if total <= expectedByteCount ?? .max, try write(bytes, total, &state) {
                    return true
                }
            } catch { cache.note(error) }
            end(&state)
            return false
        }
    }

    /// Writes bytes; false without space for them.
    private func write(_ bytes: [UInt8], _ total: UInt64, _ state: inout State) throws(StorageError) -> Bool {
        if state.file == nil, total <= UInt64(EntryCodec.inlineLimit) {
            state.buffer += bytes
        } else {
            guard try reserve(total, &state), let file = state.file else {
                cache.emit(.noRoom(head.key))
                return false
            }
            if !state.buffer.isEmpty {
                try cache.files.write(all: state.buffer, to: file, at: 0)
                state.buffer = []
            }
            try cache.files.write(all: bytes, to: file, at: state.byteCount)
        }
        state.checksums.update(bytes.span)
        state.byteCount = total
        return true
    }

    /// Reserves space for a total of bytes, and more in advance to save calls; false without space.
    private func reserve(_ total: UInt64, _ state: inout State) throws(StorageError) -> Bool {
        guard total > state.reserved else { return true }
        let step = min(1 << 20, max(1 << 16, cache.bodyLimit / 8))
        let wanted = DiskCache.blocks(expectedByteCount ?? min(cache.bodyLimit, total &+ step))
        if let file = state.file {
            guard try cache.extend(file, state.number, from: state.reserved, to: wanted) else { return false }
        } else {
            guard let (file, number) = try cache.makeBodyFile(wanted) else { return false }
            (state.file, state.number) = (file, number)
        }
        state.reserved = wanted
        return true
    }

    /// Stores the response once its body is complete.
    /// - Parameter isCurrent: Whether the response may be served, and may be stored beside or instead of responses with
    ///   these heads. Called under the lock, which removals take, too.
    /// - Returns: Whether the response is stored; false if the body is shorter than announced.
    @discardableResult package func commit(
        trailers: FieldBlock? = nil, if isCurrent: ([StoredHead]) -> Bool = { _ in true }
    ) -> Bool {
        state.withLock { state in
            guard state.phase == .writing else { return state.phase == .committed }
            guard state.byteCount == expectedByteCount ?? state.byteCount else {
                end(&state)
                return false
            }
            do throws(StorageError) {
                if let name = try store(trailers, isCurrent, &state) {
                    state.name = name
                    state.phase = .committed
                    cache.noteSuccess()
                    return true
                }
            } catch { cache.note(error) }
            end(&state)
            return false
        }
    }

    private func store(_ trailers: FieldBlock?, _ isCurrent: ([StoredHead]) -> Bool, _ state: inout State)
        throws(StorageError) -> EntryName?
    {
        state.checksums.finish()
        var head = head
        if let trailers { head.trailers = trailers }
        var body: String?
        if let file = state.file {
            // Releases the reserved space that is not needed.
            if state.reserved > DiskCache.preallocationThreshold { try cache.files.truncate(file, to: state.byteCount) }
            let allocated = try cache.files.status(of: file).allocatedByteCount
            try cache.settle(state.number, reserved: state.reserved, allocated: allocated)
            state.reserved = allocated
            body = cache.directory.path(of: .temporary(state.number))
        }
        let entry = StoredEntry(
            head: head, generation: generation, bodyByteCount: state.byteCount,
            inlineBody: state.file == nil ? state.buffer : nil, checksums: state.checksums)
        return try cache.commit(entry, body, displaced: &state.displaced, if: isCurrent)
    }

    /// Releases the space of the replaced body, unless it is being read. Releasing the writer has the same effect.
    package func releaseReplacedBody() { _ = state.withLock { $0.displaced.take() } }

    /// Abandons the response, unless it is stored.
    package func abandon() { state.withLock { end(&$0) } }

    private func end(_ state: inout State) {
        guard state.phase == .writing else { return }
        state.phase = .abandoned
        if state.file != nil { cache.release(state.number, reserved: state.reserved) }
    }

    /// Reads at most `limit` bytes from an offset; empty if they are not written yet. Blocks on the file only.
    package func read(at offset: UInt64, limit: Int) throws(EntryFormatError) -> [UInt8] {
        let (total, file, piece) = state.withLock { state in
            let isBuffered = state.file == nil && offset < UInt64(state.buffer.count) && limit > 0
            let piece = isBuffered ? Array(state.buffer[Int(offset)...].prefix(limit)) : []
            return (state.byteCount, state.file, piece)
        }
        guard piece.isEmpty, offset < total, limit > 0 else { return piece }
        guard let file else { throw .length }
        let bytes: [UInt8]
        do throws(StorageError) {
            let count = Int(min(UInt64(min(limit, EntryReader.readLimit)), total - offset))
            bytes = try cache.files.read(file, count: count, at: offset)
        } catch {
            cache.note(error)
            throw .unreadable(error)
        }
        guard !bytes.isEmpty else { throw .length }
        return bytes
    }
}
