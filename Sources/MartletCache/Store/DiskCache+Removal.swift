import Glibc
import MartletStorage
import Synchronization

extension DiskCache {
    /// Removes all variants of a key. They are misses from then on, also where the disk cannot be written.
    ///
    /// What is being written at the same time and is to be forgotten as well must not be committed: see
    /// ``EntryWriter/commit(trailers:if:)``.
    package func remove(_ key: CacheKey) {
        let digest = CacheDigest(key)
        let names = EntryName.all(of: digest)
        let ended = generations(of: names)
        let isGone = remove(names)
        noteEnd(key, ended)
        if !isGone { state.withLock { _ = $0.hidden.insert(digest) } }
    }

    /// Removes one variant, unless another has taken its place. Where the disk cannot be written, all of its key are misses
    /// from then on.
    ///
    /// - Returns: whether it is gone.
    @discardableResult
    package func remove(_ reader: EntryReader) -> Bool {
        remove(reader.head.key, [reader.name], generation: reader.entry.generation)
    }

    /// Removes the variant of a key that has a body, if it is there. Where the disk cannot be written, all of the key are
    /// misses from then on.
    ///
    /// - Returns: whether it is gone.
    @discardableResult
    package func remove(_ key: CacheKey, generation: UInt64) -> Bool {
        remove(key, EntryName.all(of: CacheDigest(key)), generation: generation)
    }

    private func remove(_ key: CacheKey, _ names: [EntryName], generation: UInt64) -> Bool {
        do throws(StorageError) {
            try withLedger { (ledger) throws(StorageError) in
                for name in names where EntryIdentity.read(folder, name)?.generation == generation {
                    try discard(name, &ledger)
                    noteEnd(key, [generation])
                }
            }
            return true
        } catch {
            if error.code == ENOENT { return true }
            note(error)
            let digest = CacheDigest(key)
            state.withLock { _ = $0.hidden.insert(digest) }
            noteEnd(key, [generation])
            return false
        }
    }

    private func remove(_ names: [EntryName]) -> Bool {
        do throws(StorageError) {
            return try withLedger { (ledger) throws(StorageError) -> Bool in
                for name in names { try discard(name, &ledger) }
                return true
            }
        } catch {
            if error.code != ENOENT { note(error) }
        }
        // Without the lock nothing can be counted, but what must go can still go.
        var isGone = true
        for name in names {
            do throws(StorageError) {
                try files.remove(folder.path(of: .entry(name)))
            } catch {
                isGone = isGone && error.code == ENOENT
            }
        }
        return isGone
    }

    /// Removes everything that is stored; files that are not the cache's stay.
    ///
    /// - Returns: whether all is gone; where it is not, nothing is served any more until it could be removed.
    @discardableResult package func removeAll() -> Bool { removeAllCounting() != nil }

    /// Removes everything that is stored, as ``removeAll()`` does.
    ///
    /// - Returns: how many entries were removed and what they and the index occupied; `nil` where not all is gone.
    package func removeAllCounting() -> (entryCount: Int, byteCount: UInt64)? {
        do throws(StorageError) {
            let removed = try withLedger {
                (ledger) throws(StorageError) -> (entryCount: Int, byteCount: UInt64) in
                var removed = (entryCount: 0, byteCount: UInt64(0))
                for name in try files.names(inFolder: folder.path) {
                    let file = CacheFile(name: name)
                    if case .entry(let entry) = file, isWatched,
                        let opened = try? EntryReader(entry, in: folder, of: self)
                    {
                        noteEnd(opened.entry.head.key, [opened.entry.generation])
                    }
                    switch file {
                    case .entry:
                        guard let byteCount = try discard(path: "\(folder.path)/\(name)", &ledger) else {
                            break
                        }
                        removed.entryCount += 1
                        removed.byteCount &+= byteCount
                    case .body, .index:
                        removed.byteCount &+= try discard(path: "\(folder.path)/\(name)", &ledger) ?? 0
                    case .temporary, .lock, nil: break
                    }
                }
                try reconcile(&ledger)
                return removed
            }
            state.withLock { state in
                state.hidesAll = false
                state.hidden = []
            }
            return removed
        } catch {
            note(error)
            state.withLock { $0.hidesAll = true }
            return nil
        }
    }
}

extension DiskCache {
    /// Gives entries up until so many bytes more are within the limit; false where that cannot be.
    func makeRoom(for byteCount: UInt64, _ ledger: inout CacheLedger) throws(StorageError) -> Bool {
        let limit = state.withLock { $0.statistics.limit }
        guard byteCount <= limit else { return false }
        // With every name in it the folder itself may grow, by whichever process.
        let folderByteCount = try folder.allocatedByteCount()
        state.withLock { $0.folderByteCount = folderByteCount }
        let most = limit - byteCount - min(limit - byteCount, folderByteCount)
        var wasCounted = false
        if !ledger.isKnown {
            try reconcile(&ledger)
            wasCounted = true
        }
        guard ledger.used > most else { return true }
        // What other processes stored is not known here. It takes its turn once it amounts to something.
        let added = ledger.added
        let (others, isComplete) = state.withLock { state in
            (added &- state.addedAtScan &- state.ownAdded, state.statistics.isIndexComplete)
        }
        if !wasCounted, !isComplete || others > max(limit / 8, 1 << 20) {
            try reconcile(&ledger)
            wasCounted = true
        }
        var evicted: (count: Int, byteCount: UInt64) = (0, 0)
        defer { noteEvicted(evicted.count, evicted.byteCount) }
        while ledger.used > most {
            if let victim = state.withLock({ $0.index.removeVictim() }) {
                let before = ledger.used
                try discard(victim.name, &ledger)
                evicted.count += 1
                evicted.byteCount &+= before - ledger.used
            } else if !wasCounted {
                try reconcile(&ledger)
                wasCounted = true
            } else {
                return false
            }
        }
        return true
    }

    private func noteEvicted(_ count: Int, _ byteCount: UInt64) {
        guard count > 0 else { return }
        state.withLock { $0.statistics.evictions += count }
        emit(.evicted(count: count, byteCount: byteCount))
    }

    /// Removes an entry and its body. Those who read it read on.
    func discard(_ name: EntryName, _ ledger: inout CacheLedger) throws(StorageError) {
        let path = folder.path(of: .entry(name))
        let record = state.withLock { $0.index.remove(name) }
        let status: FileStatus
        do throws(StorageError) {
            status = try files.status(at: path)
            guard status.kind == .file else { return }
        } catch  where error.code == ENOENT {
            return
        }
        var generation = record.map { $0.generation == 0 ? nil : $0.generation } ?? nil
        if record?.identity != status.identity {
            generation = EntryIdentity.read(folder, name)?.bodyGeneration
        }
        try files.remove(path)
        ledger.subtract(status.allocatedByteCount)
        if let generation { try discardBody(name, generation, &ledger) }
    }

    /// Removes a larger body that no entry names.
    func discardBody(
        _ name: EntryName, _ generation: UInt64, _ ledger: inout CacheLedger
    ) throws(StorageError) {
        try discard(path: folder.path(of: .body(name, generation: generation)), &ledger)
    }

    /// Removes a file of the cache's, if it is there.
    ///
    /// - Returns: what it occupied; `nil` where it was not there.
    @discardableResult
    func discard(path: String, _ ledger: inout CacheLedger) throws(StorageError) -> UInt64? {
        do throws(StorageError) {
            let status = try files.status(at: path)
            guard status.kind == .file else { return nil }
            try files.remove(path)
            ledger.subtract(status.allocatedByteCount)
            return status.allocatedByteCount
        } catch  where error.code == ENOENT {
            return nil
        }
    }

    /// Counts the folder while nobody stores anything.
    func reconcile(_ ledger: inout CacheLedger) throws(StorageError) {
        let isLoaded = state.withLock { $0.statistics.isIndexComplete }
        let saved = isLoaded ? nil : savedIndex()
        let before = ledger
        var scan = try FolderScan(folder)
        if try removeLeftovers(scan, &ledger) { scan = try FolderScan(folder) }
        ledger = before
        ledger.set(used: scan.byteCount)
        finish(scan, saved: saved, isLoaded: isLoaded, isExact: true, added: ledger.added)
    }

    /// Takes a look at the folder into the index.
    func finish(_ scan: FolderScan, saved: [IndexRecord]?, isLoaded: Bool, isExact: Bool, added: UInt64) {
        let count = state.withLock { state in
            state.index.absorb(scan.entries, saved: isLoaded ? nil : saved ?? [], isExact: isExact)
            state.statistics.isIndexComplete = true
            state.folderByteCount = scan.folderByteCount
            state.addedAtScan = added
            state.ownAdded = 0
            return state.index.count
        }
        if !isLoaded { emit(.indexed(count: count, hadFile: saved != nil)) }
    }

    /// Removes what processes that ended have left: files they were writing, bodies without an entry.
    ///
    /// - Returns: whether there were any.
    func removeLeftovers(_ scan: FolderScan, _ ledger: inout CacheLedger) throws(StorageError) -> Bool {
        var hasRemoved = false
        for number in scan.temporaries {
            let path = folder.path(of: .temporary(number))
            // Whoever writes it has locked it, and the lock ends with the process.
            guard let file = try? files.open(path, for: .reading), try files.tryLock(file) else { continue }
            try discard(path: path, &ledger)
            hasRemoved = true
        }
        for orphan in scan.orphans {
            let identity = EntryIdentity.read(folder, orphan.name)
            guard identity?.bodyGeneration != orphan.generation else { continue }
            try discardBody(orphan.name, orphan.generation, &ledger)
            hasRemoved = true
        }
        return hasRemoved
    }

    /// The records of the index file; `nil` where there is none that can be read.
    func savedIndex() -> [IndexRecord]? {
        guard let file = try? files.open(folder.path(of: .index), for: .reading),
            let status = try? files.status(of: file), status.kind == .file, status.byteCount <= 1 << 28,
            let bytes = try? files.read(file, count: Int(status.byteCount), at: 0)
        else { return nil }
        return IndexCodec.decode(bytes)
    }
}
