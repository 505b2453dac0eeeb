import Glibc
import MartletStorage
package import MartletWire
import Synchronization

/// A response on its way to disk, in the pieces it comes in.
///
/// It keeps up to 32 KiB in memory, and writes what is longer to a file without a name. Its calls block, and belong on a
/// worker. Nothing of it can be found before it is committed; what is neither committed nor abandoned is abandoned when
/// nobody holds it any more.
package final class EntryWriter: Sendable {
    /// How far it has come.
    package enum Phase: Sendable, Equatable {
        /// More may come.
        case writing
        /// It is stored.
        case committed
        /// It is not stored and will not be.
        case abandoned
    }

    private struct State {
        var phase: Phase = .writing
        /// The body, while it is small.
        var buffer: [UInt8] = []
        /// The body, once it is larger. It stays readable for those who joined.
        var file: OpenFile?
        var number: UInt64 = 0
        var byteCount: UInt64 = 0
        var reserved: UInt64 = 0
        var checksums = BlockChecksums()
        /// Where it is stored.
        var name: EntryName?
        /// The body that it replaced.
        var displaced: OpenFile?
    }

    /// The head it was begun with.
    package let head: StoredHead
    private let expectedByteCount: UInt64?
    private let generation: UInt64
    private let cache: DiskCache
    /// Held while a piece is written. Readers take it for the time of a read.
    private let state = Mutex(State())

    init(_ head: StoredHead, expectedByteCount: UInt64?, generation: UInt64, in cache: DiskCache) {
        self.head = head
        self.expectedByteCount = expectedByteCount
        self.generation = generation
        self.cache = cache
    }

    deinit { abandon() }

    /// How far it has come.
    package var phase: Phase { state.withLock { $0.phase } }

    /// Where it is stored; `nil` until it is.
    var name: EntryName? { state.withLock { $0.name } }

    /// How many bytes of the body were taken.
    package var byteCount: UInt64 { state.withLock { $0.byteCount } }

    /// Takes the next bytes of the body.
    ///
    /// - Returns: whether the response can still be stored. Where it cannot, what was written is gone.
    @discardableResult
    package func append(_ bytes: [UInt8]) -> Bool {
        state.withLock { state in
            guard state.phase == .writing else { return false }
            guard !bytes.isEmpty else { return true }
            let total = state.byteCount &+ UInt64(bytes.count)
            guard total <= cache.bodyLimit, total <= expectedByteCount ?? .max else {
                if total > cache.bodyLimit { cache.refuse(head.key, tooLarge: total) }
                end(&state)
                return false
            }
            do throws(StorageError) {
                try write(bytes, total, &state)
                return state.phase == .writing
            } catch {
                cache.refuse(error)
                end(&state)
                return false
            }
        }
    }

    private func write(_ bytes: [UInt8], _ total: UInt64, _ state: inout State) throws(StorageError) {
        if state.file == nil, total <= UInt64(EntryCodec.inlineLimit) {
            state.buffer += bytes
        } else {
            guard try reserve(total, &state), let file = state.file else {
                cache.refuse(noRoomFor: head.key)
                end(&state)
                return
            }
            if !state.buffer.isEmpty {
                try cache.files.write(all: state.buffer, to: file, at: 0)
                state.buffer = []
            }
            try cache.files.write(all: bytes, to: file, at: state.byteCount)
        }
        state.checksums.update(bytes.span)
        state.byteCount = total
    }

    /// Sets room for so many bytes aside, and more, so that this is not asked for each piece.
    private func reserve(_ total: UInt64, _ state: inout State) throws(StorageError) -> Bool {
        guard total > state.reserved else { return true }
        let step = min(1 << 20, max(1 << 16, cache.bodyLimit / 8))
        let wanted = DiskCache.blocks(expectedByteCount ?? min(cache.bodyLimit, total &+ step))
        guard let file = state.file else {
            var number: UInt64 = 0
            guard let made = try cache.makeBodyFile(wanted, &number) else { return false }
            (state.file, state.number, state.reserved) = (made, number, wanted)
            return true
        }
        guard try cache.extend(file, from: state.reserved, to: wanted) else { return false }
        state.reserved = wanted
        return true
    }

    /// Stores the response, when all of its body has come.
    ///
    /// - Parameters:
    ///   - trailers: the fields behind the body.
    ///   - isCurrent: asked at the last moment, while nothing can be removed: false where what happened since makes the
    ///     response one that must not be found.
    /// - Returns: whether it is stored. Not where the body is shorter than was announced.
    @discardableResult
    package func commit(trailers: FieldBlock? = nil, if isCurrent: () -> Bool = { true }) -> Bool {
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
                cache.countRefusal()
            } catch {
                cache.refuse(error)
            }
            end(&state)
            return false
        }
    }

    private func store(
        _ trailers: FieldBlock?, _ isCurrent: () -> Bool, _ state: inout State
    ) throws(StorageError) -> EntryName? {
        state.checksums.finish()
        var head = head
        if let trailers { head.trailers = trailers }
        var body: String?
        if let file = state.file {
            // Gives back what was set aside and is not needed.
            if state.reserved > DiskCache.soonWrittenByteCount {
                try cache.files.truncate(file, to: state.byteCount)
            }
            let allocated = try cache.files.status(of: file).allocatedByteCount
            try cache.settle(reserved: state.reserved, allocated: allocated)
            state.reserved = allocated
            body = cache.folder.path(of: .temporary(state.number))
        }
        let entry = StoredEntry(
            head: head, generation: generation, bodyByteCount: state.byteCount,
            inlineBody: state.file == nil ? state.buffer : nil, checksums: state.checksums)
        return try cache.commit(entry, body, displaced: &state.displaced, if: isCurrent)
    }

    /// Gives back what the body that was replaced occupied, unless somebody reads it: to be called when nobody waits any more.
    /// It is done in any case when nobody holds the writer.
    package func letGo() { _ = state.withLock { $0.displaced.take() } }

    /// Gives the response up, unless it is stored.
    package func abandon() { state.withLock { end(&$0) } }

    private func end(_ state: inout State) {
        guard state.phase == .writing else { return }
        state.phase = .abandoned
        if state.file != nil { cache.release(state.number, reserved: state.reserved) }
    }

    // MARK: Joining

    /// What there is at a place of the body.
    package enum Piece: Sendable, Equatable {
        /// Bytes.
        case bytes([UInt8])
        /// Nothing yet: to be asked again when the writer has taken more.
        case pending
        /// The end of the body, which is stored.
        case end
        /// Nothing more: the response was given up. What was read so far is what came.
        case abandoned
    }

    /// What there is at an offset, at most so many bytes. It blocks on the file and never waits for the writer's peer.
    package func read(at offset: UInt64, limit: Int) throws(EntryFault) -> Piece {
        let (phase, total, file, piece) = state.withLock { state in
            let isBuffered = state.file == nil && offset < UInt64(state.buffer.count) && limit > 0
            let piece = isBuffered ? Array(state.buffer[Int(offset)...].prefix(limit)) : []
            return (state.phase, state.byteCount, state.file, piece)
        }
        if !piece.isEmpty { return .bytes(piece) }
        guard offset < total, limit > 0 else {
            switch phase {
            case .writing: return .pending
            case .committed: return .end
            case .abandoned: return .abandoned
            }
        }
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
        return .bytes(bytes)
    }
}
