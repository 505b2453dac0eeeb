import Glibc
import MartletStorage
import Synchronization

extension DiskCache {
    /// Begins to store a response.
    ///
    /// - Parameters:
    ///   - expectedByteCount: the body's length where it is known. Room is set aside for all of it at once, and another length
    ///     is not stored.
    ///   - generation: the number of its body; drawn where it is `nil`.
    /// - Returns: where its body goes; `nil` for a body that is known to be too large, which an event says, and where nothing
    ///   is stored at all.
    package func begin(
        _ head: StoredHead, expectedByteCount: UInt64? = nil, generation: UInt64? = nil
    ) -> EntryWriter? {
        let limit = bodyLimit
        guard limit > 0 else { return nil }
        if let expectedByteCount, expectedByteCount > limit {
            refuse(head.key, tooLarge: expectedByteCount)
            return nil
        }
        return EntryWriter(
            head, expectedByteCount: expectedByteCount,
            generation: generation ?? .random(in: 1 ... .max), in: self)
    }

    /// Stores a response that is there as a whole.
    @discardableResult
    package func store(_ head: StoredHead, body: [UInt8]) -> Bool {
        guard let writer = begin(head, expectedByteCount: UInt64(body.count)) else { return false }
        return writer.append(body) && writer.commit()
    }

    // MARK: What writers need

    func refuse(_ key: CacheKey, tooLarge byteCount: UInt64) {
        countRefusal()
        emit(.tooLarge(key, byteCount: byteCount, limit: bodyLimit))
    }

    func refuse(noRoomFor key: CacheKey) {
        countRefusal()
        emit(.noRoom(key))
    }

    func refuse(_ error: StorageError) {
        countRefusal()
        note(error)
    }

    func countRefusal() { state.withLock { $0.statistics.refusals += 1 } }

    /// Up to which length room for a body is counted and not set aside in its file, in bytes: it is written soon, and setting
    /// room aside costs half as much as that.
    static let soonWrittenByteCount: UInt64 = 1 << 20

    /// Makes a file for a larger body, locked as being written, with room set aside; `nil` where there is none.
    func makeBodyFile(_ byteCount: UInt64, _ number: inout UInt64) throws(StorageError) -> OpenFile? {
        let chosen = UInt64.random(in: 0 ... .max)
        number = chosen
        let path = folder.path(of: .temporary(chosen))
        return try withLedger { (ledger) throws(StorageError) -> OpenFile? in
            guard try makeRoom(for: byteCount, &ledger) else { return nil }
            try ledger.add(byteCount)
            do throws(StorageError) {
                let file = try files.open(path, for: .creating)
                _ = try files.tryLock(file)
                if byteCount > Self.soonWrittenByteCount { try files.allocate(byteCount, for: file) }
                return file
            } catch {
                try? files.remove(path)
                ledger.subtract(byteCount)
                throw error
            }
        }
    }

    /// Sets more room aside; false where there is none.
    func extend(_ file: OpenFile, from reserved: UInt64, to byteCount: UInt64) throws(StorageError) -> Bool {
        guard byteCount > reserved else { return true }
        return try withLedger { (ledger) throws(StorageError) -> Bool in
            guard try makeRoom(for: byteCount - reserved, &ledger) else { return false }
            try ledger.add(byteCount - reserved)
            do throws(StorageError) {
                if byteCount > Self.soonWrittenByteCount { try files.allocate(byteCount, for: file) }
            } catch {
                ledger.subtract(byteCount - reserved)
                throw error
            }
            return true
        }
    }

    /// Counts what a body occupies instead of what was set aside for it.
    func settle(reserved: UInt64, allocated: UInt64) throws(StorageError) {
        guard reserved != allocated else { return }
        try withLedger { (ledger) throws(StorageError) in
            if allocated > reserved {
                try ledger.add(allocated - reserved)
            } else {
                ledger.subtract(reserved - allocated)
            }
        }
    }

    /// Removes a body that is not stored.
    func release(_ number: UInt64, reserved: UInt64) {
        let path = folder.path(of: .temporary(number))
        do throws(StorageError) {
            try files.remove(path)
            try withLedger { (ledger) throws(StorageError) in ledger.subtract(reserved) }
        } catch {
            // Where the file stays, it stays counted; whoever counts the folder next removes it.
            if error.code != ENOENT { note(error) }
        }
    }
}

extension DiskCache {
    /// Stores an entry, and says under which name; `nil` where there is no room, or where it is no longer wanted.
    ///
    /// - Parameters:
    ///   - body: the path of a larger body that waits for its entry.
    ///   - displaced: gets the larger body that was replaced, whose name is gone: what it occupied is given back when nobody has
    ///     it open any more, which takes its time, and nobody need wait for that.
    ///   - isCurrent: asked under the lock, which removing takes, too.
    func commit(
        _ entry: StoredEntry, _ body: String?, displaced: inout OpenFile?, if isCurrent: () -> Bool
    ) throws(StorageError) -> EntryName? {
        guard let bytes = EntryCodec.encode(entry) else { return nil }
        var replacedBody: OpenFile?
        defer { displaced = replacedBody }
        return try withLedger { (ledger) throws(StorageError) -> EntryName? in
            guard isCurrent() else { return nil }
            guard try makeRoom(for: Self.blocks(UInt64(bytes.count)), &ledger) else {
                emit(.noRoom(entry.head.key))
                return nil
            }
            let (name, replaced) = place(for: entry.head)
            // What could not be removed before would be found again, now that its key is no longer hidden.
            let isHidden = state.withLock { $0.hidden.contains(name.digest) }
            let others = isHidden ? EntryName.all(of: name.digest).filter { $0 != name } : replaced
            let ended = generations(of: others)
            for other in others { try discard(other, &ledger) }
            noteEnd(entry.head.key, ended)
            try put(bytes, entry, body, as: name, &ledger, displaced: &replacedBody)
            state.withLock { state in
                state.hidden.remove(name.digest)
                state.statistics.stores += 1
            }
            return name
        }
    }

    /// Replaces the head of an entry by that of a 304's, the body staying (RFC 9111 §4.3.4).
    ///
    /// - Parameter isCurrent: asked at the last moment, while nothing can be removed: false where what happened since makes
    ///   the response one that must not be found.
    /// - Returns: whether it was; not where the entry is gone or was replaced meanwhile.
    package func updateHead(
        of reader: EntryReader, to head: StoredHead, if isCurrent: () -> Bool = { true }
    ) -> Bool {
        var entry = reader.entry
        entry.head = head
        guard head.key == reader.head.key, let bytes = EntryCodec.encode(entry) else { return false }
        do throws(StorageError) {
            let isDone = try withLedger { (ledger) throws(StorageError) -> Bool in
                guard isCurrent() else { return false }
                guard try makeRoom(for: Self.blocks(UInt64(bytes.count)), &ledger) else { return false }
                let current = EntryIdentity.read(folder, reader.name)
                guard current?.generation == entry.generation else { return false }
                var displaced: OpenFile?
                try put(bytes, entry, nil, as: reader.name, &ledger, displaced: &displaced)
                state.withLock { $0.statistics.updates += 1 }
                return true
            }
            if isDone { noteSuccess() }
            return isDone
        } catch {
            note(error)
            return false
        }
    }

    /// Where a response goes, and which variants it replaces besides the one that is there.
    private func place(for head: StoredHead) -> (EntryName, [EntryName]) {
        let digest = CacheDigest(head.key)
        let names = EntryName.all(of: digest)
        let held = names.filter { (try? files.status(at: folder.path(of: .entry($0)))) != nil }
        guard !head.selections.isEmpty else { return (names[0], held.filter { $0.slot != 0 }) }
        var replaced: [EntryName] = []
        var variants: [EntryName] = []
        var heads: [StoredHead] = []
        for name in held {
            if let opened = try? EntryReader(name, in: folder, of: self) {
                variants.append(name)
                heads.append(opened.entry.head)
            } else {
                replaced.append(name)
            }
        }
        replaced += VariantRule.displaced(by: head, in: heads, limit: EntryName.slotLimit).map {
            variants[$0]
        }
        let free = names.filter { !held.contains($0) }
        let name = (replaced + free).min { $0.slot < $1.slot } ?? names[0]
        return (name, replaced.filter { $0 != name })
    }

    /// Puts an entry in its place, and its body first; what was there is gone afterwards.
    private func put(
        _ bytes: [UInt8], _ entry: StoredEntry, _ body: String?, as name: EntryName,
        _ ledger: inout CacheLedger, displaced: inout OpenFile?
    ) throws(StorageError) {
        let path = folder.path(of: .entry(name))
        let bodyPath = folder.path(of: .body(name, generation: entry.generation))
        var old: (byteCount: UInt64, identity: EntryIdentity?)?
        if let status = try? files.status(at: path), status.kind == .file {
            old = (status.allocatedByteCount, EntryIdentity.read(folder, name))
        }
        let written = try writeTemporary(bytes, &ledger)
        do throws(StorageError) {
            if let body { try files.rename(body, to: bodyPath) }
            do throws(StorageError) {
                try files.rename(written.path, to: path)
            } catch {
                // The body keeps being counted as its writer's, who gives it up by its old name.
                if let body { try? files.rename(bodyPath, to: body) }
                throw error
            }
        } catch {
            try? files.remove(written.path)
            ledger.subtract(written.byteCount)
            throw error
        }
        if let old {
            ledger.subtract(old.byteCount)
            if let identity = old.identity, identity.generation != entry.generation {
                if let generation = identity.bodyGeneration {
                    displaced = try? files.open(
                        folder.path(of: .body(name, generation: generation)), for: .reading)
                    try? discardBody(name, generation, &ledger)
                }
                noteEnd(entry.head.key, [identity.generation])
            }
        }
        let isLarge = entry.inlineBody == nil
        let bodyByteCount = isLarge ? (try? files.status(at: bodyPath))?.allocatedByteCount ?? 0 : 0
        state.withLock { state in
            state.index.put(
                DiskIndex.Record(
                    name: name, byteCount: written.byteCount &+ bodyByteCount,
                    generation: isLarge ? entry.generation : 0, identity: written.identity))
        }
    }
}
