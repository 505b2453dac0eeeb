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
        let isGone = remove(EntryName.all(of: digest))
        if !isGone { state.withLock { _ = $0.hidden.insert(digest) } }
    }

    /// Removes one variant, unless another has taken its place. Where the disk cannot be written, all of its key are misses
    /// from then on.
    package func remove(_ reader: EntryReader) {
        do throws(StorageError) {
            try withLedger { (ledger) throws(StorageError) in
                guard EntryIdentity.read(folder, reader.name)?.generation == reader.entry.generation else {
                    return
                }
                try discard(reader.name, &ledger)
            }
        } catch {
            if error.code == ENOENT { return }
            note(error)
            state.withLock { _ = $0.hidden.insert(reader.name.digest) }
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
    package func removeAll() -> Bool {
        do throws(StorageError) {
            try withLedger { (ledger) throws(StorageError) in
                for name in try files.names(inFolder: folder.path) {
                    switch CacheFile(name: name) {
                    case .entry, .body, .index: try discard(path: "\(folder.path)/\(name)", &ledger)
                    case .temporary, .lock, nil: break
                    }
                }
                try reconcile(&ledger)
            }
            state.withLock { state in
                state.hidesAll = false
                state.hidden = []
            }
            return true
        } catch {
            note(error)
            state.withLock { $0.hidesAll = true }
            return false
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
