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
    @discardableResult
    package func removeAll() -> Bool { removeAllCounting() != nil }

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
                        let opened = try? EntryOpening.open(entry, in: folder)
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

    /// Sets another limit, and gives entries up until it holds; with 0, all.
    package func setLimit(_ byteCount: UInt64) {
        state.withLock { $0.statistics.limit = byteCount }
        guard byteCount > 0 else {
            removeAll()
            return
        }
        do throws(StorageError) {
            try withLedger { (ledger) throws(StorageError) in _ = try makeRoom(for: 0, &ledger) }
        } catch {
            note(error)
        }
    }
}
