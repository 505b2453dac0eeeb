import Glibc
import MartletStorage
import Synchronization

extension DiskCache {
    /// Removes all variants of a key. They are misses from then on, even if the disk is read-only. The caller must
    /// prevent the commit of a response that is being written (``EntryWriter/commit(trailers:if:)``).
    package func remove(_ key: CacheKey) {
        let digest = CacheDigest(key)
        let names = EntryName.all(of: digest)
        let ended = generations(of: names)
        let isGone = remove(names)
        notifyRemoved(key, ended)
        if !isGone { state.withLock { _ = $0.hidden.insert(digest) } }
    }

    /// Removes one variant, unless it was replaced. On a read-only disk all variants of its key become misses.
    /// - Returns: Whether it no longer exists.
    @discardableResult package func remove(_ reader: EntryReader) -> Bool {
        remove(reader.head.key, generation: reader.entry.generation, among: [reader.name])
    }

    /// Removes the variant of a key whose body has this generation, if it exists.
    /// - Parameter names: The entries to search; `nil` for all variants of the key.
    /// - Returns: Whether it no longer exists.
    @discardableResult func remove(_ key: CacheKey, generation: UInt64, among names: [EntryName]? = nil) -> Bool {
        let digest = CacheDigest(key)
        do throws(StorageError) {
            try withUsage { (usage) throws(StorageError) in
                for name in names ?? EntryName.all(of: digest)
                where EntryIdentity.read(directory, name)?.generation == generation {
                    try discard(name, &usage)
                    notifyRemoved(key, [generation])
                }
            }
            return true
        } catch {
            if error.code == ENOENT { return true }
            note(error)
            state.withLock { _ = $0.hidden.insert(digest) }
            notifyRemoved(key, [generation])
            return false
        }
    }

    private func remove(_ names: [EntryName]) -> Bool {
        let done: Void? = noting(except: ENOENT) { () throws(StorageError) in
            try withUsage { (usage) throws(StorageError) in for name in names { try discard(name, &usage) } }
        }
        if done != nil { return true }
        // Without the lock nothing can be counted, but the files can still be removed.
        var isGone = true
        for name in names {
            do throws(StorageError) { try files.remove(directory.path(of: .entry(name))) } catch {
                isGone = isGone && error.code == ENOENT
            }
            state.withLock { _ = $0.index.remove(name) }
        }
        return isGone
    }

    /// Removes everything that is stored; files that are not the cache's stay.
    /// - Returns: Whether everything was removed. If not, nothing is served until a later call succeeds.
    @discardableResult package func removeAll() -> Bool { removeAllCounting() != nil }

    /// Removes everything that is stored, like ``removeAll()``.
    /// - Returns: The number of removed entries, and the size on disk of all removed files; `nil` after an error.
    package func removeAllCounting() -> (entryCount: Int, byteCount: UInt64)? {
        let removed = noting { () throws(StorageError) in
            try withUsage { (usage) throws(StorageError) -> (entryCount: Int, byteCount: UInt64) in
                var removed = (entryCount: 0, byteCount: UInt64(0))
                for name in try files.names(inDirectory: directory.path) {
                    var isEntry = false
                    switch CacheFile(name: name) {
                    case .entry(let entry):
                        isEntry = true
                        if isWatched, let opened = try? EntryReader(entry, of: self, from: files) {
                            notifyRemoved(opened.entry.head.key, [opened.entry.generation])
                        }
                    case .body, .index: break
                    case .temporary, .lock, nil: continue
                    }
                    guard let byteCount = try discard(path: "\(directory.path)/\(name)", &usage) else { continue }
                    removed.entryCount += isEntry ? 1 : 0
                    removed.byteCount &+= byteCount
                }
                try reconcile(&usage)
                return removed
            }
        }
        state.withLock { state in
            state.hidesAll = removed == nil
            if removed != nil { state.hidden = [] }
        }
        return removed
    }

    /// Evicts entries until this number of additional bytes fits the limit; false if that is not possible.
    func makeRoom(for byteCount: UInt64, _ usage: inout CacheUsage) throws(StorageError) -> Bool {
        let limit = state.withLock { $0.statistics.limit }
        guard byteCount <= limit else { return false }
        // The directory itself grows with its names, including those that other processes add.
        let directoryByteCount = try directory.allocatedByteCount()
        state.withLock { $0.directoryByteCount = directoryByteCount }
        let most = limit - byteCount - min(limit - byteCount, directoryByteCount)
        var wasCounted = !usage.isKnown
        if wasCounted { try reconcile(&usage) }
        guard usage.used > most else { return true }
        // The index lacks entries that other processes have stored. A scan adds them once their size is significant.
        let added = usage.added
        let (others, isComplete) = state.withLock { state in
            (added &- state.addedAtScan &- state.ownAdded, state.statistics.isIndexComplete)
        }
        if !wasCounted, !isComplete || others > max(limit / 8, 1 << 20) {
            try reconcile(&usage)
            wasCounted = true
        }
        var evicted: (count: Int, byteCount: UInt64) = (0, 0)
        defer {
            if evicted.count > 0 {
                state.withLock { $0.statistics.evictions += evicted.count }
                emit(.evicted(count: evicted.count, byteCount: evicted.byteCount))
            }
        }
        while usage.used > most {
            if let victim = state.withLock({ $0.index.removeVictim() }) {
                let before = usage.used
                // Another process may have removed it.
                if try discard(victim.name, &usage) { evicted.count += 1 }
                evicted.byteCount &+= before - usage.used
            } else if !wasCounted {
                try reconcile(&usage)
                wasCounted = true
            } else {
                return false
            }
        }
        return true
    }

    /// Removes an entry and its body. Open readers can still read both.
    /// - Returns: Whether the entry existed.
    @discardableResult func discard(_ name: EntryName, _ usage: inout CacheUsage) throws(StorageError) -> Bool {
        let path = directory.path(of: .entry(name))
        let record = state.withLock { $0.index.remove(name) }
        guard let status = try files.statusIfPresent(at: path), status.kind == .file else { return false }
        var generation = record?.bodyGeneration
        if record?.identity != status.identity { generation = EntryIdentity.read(directory, name)?.bodyGeneration }
        try files.remove(path)
        usage.subtract(status.allocatedByteCount)
        if let generation { try discard(path: directory.path(of: .body(name, generation: generation)), &usage) }
        return true
    }

    /// Removes a file of the cache, if it exists.
    /// - Returns: Its size on disk; `nil` if it does not exist.
    @discardableResult func discard(path: String, _ usage: inout CacheUsage) throws(StorageError) -> UInt64? {
        do throws(StorageError) {
            let status = try files.status(at: path)
            guard status.kind == .file else { return nil }
            try files.remove(path)
            usage.subtract(status.allocatedByteCount)
            return status.allocatedByteCount
        } catch  where error.code == ENOENT { return nil }
    }
}
