import MartletStorage
import Synchronization

extension DiskCache {
    /// Completes the index and the count of stored bytes, and removes leftovers of processes that ended. Call it once,
    /// in the background, while other threads may use the cache. After an error, a later scan does the same.
    package func load() {
        noting { () throws(StorageError) in
            let saved = savedIndex()
            let (before, reserved) = try withUsage { (usage) throws(StorageError) -> (UInt64, [UInt64: UInt64]) in
                (usage.added, state.withLock { $0.reserved })
            }
            let scan = try DirectoryScan(directory)
            let added = try withUsage { (usage) throws(StorageError) -> UInt64 in
                // Concurrent additions may or may not be part of the scan, so they are counted in addition.
                let growth = usage.added >= before ? usage.added - before : usage.added
                usage.set(used: scan.byteCount(with: reserved) &+ growth)
                _ = try removeLeftovers(scan, &usage)
                return usage.added
            }
            let isLoaded = state.withLock { $0.statistics.isIndexComplete }
            finish(scan, saved: saved, isLoaded: isLoaded, isExact: false, added: added)
            try withUsage { (usage) throws(StorageError) in _ = try makeRoom(for: 0, &usage) }
        }
    }

    /// Writes the order of use of the entries, for the next run. Before the index is complete, the saved records of
    /// entries that were not used are kept, as older ones.
    /// - Returns: Whether it was written.
    @discardableResult package func saveIndex() -> Bool {
        let isSaved = noting { () throws(StorageError) in
            try withUsage { (usage) throws(StorageError) -> Bool in
                let others = savedIndex() ?? []
                let last = others.map(\.tick).max() ?? 0
                let (own, isComplete) = state.withLock { state -> ([IndexRecord], Bool) in
                    if !state.statistics.isIndexComplete { state.index.raise(above: last) }
                    return (state.index.saved, state.statistics.isIndexComplete)
                }
                var records = Dictionary(own.map { ($0.name, $0) }) { _, last in last }
                // Another process may have used an entry later than this process.
                for other in others {
                    guard let own = records[other.name] else {
                        if !isComplete { records[other.name] = other }
                        continue
                    }
                    records[other.name]?.tick = max(own.tick, other.tick)
                    records[other.name]?.isMarked = own.isMarked || other.isMarked
                }
                let ordered = records.values.sorted { $0.tick < $1.tick }
                state.withLock { $0.index.advance(to: ordered.last?.tick ?? 0) }
                return try replaceIndex(IndexCodec.encode(ordered), &usage)
            }
        }
        return isSaved ?? false
    }

    private func replaceIndex(_ bytes: [UInt8], _ usage: inout CacheUsage) throws(StorageError) -> Bool {
        let path = directory.path(of: .index)
        guard try makeRoom(for: Self.blocks(UInt64(bytes.count)), &usage) else { return false }
        let old = try files.statusIfPresent(at: path)?.allocatedByteCount ?? 0
        let written = try writeTemporary(bytes, &usage)
        do throws(StorageError) { try files.rename(written.path, to: path) } catch {
            try? files.remove(written.path)
            usage.subtract(written.byteCount)
            throw error
        }
        usage.subtract(old)
        return true
    }

    /// Writes a temporary file, whose size is added to `usage`.
    func writeTemporary(_ bytes: [UInt8], _ usage: inout CacheUsage) throws(StorageError) -> (
        path: String, byteCount: UInt64, identity: UInt64
    ) {
        let path = directory.path(of: .temporary(.random(in: 0 ... .max)))
        let reserved = Self.blocks(UInt64(bytes.count))
        try usage.add(reserved)
        do throws(StorageError) {
            let file = try files.open(path, for: .creating)
            try files.write(all: bytes, to: file, at: 0)
            let status = try files.status(of: file)
            try usage.settle(reserved: reserved, allocated: status.allocatedByteCount)
            return (path, status.allocatedByteCount, status.identity)
        } catch {
            try? files.remove(path)
            usage.subtract(reserved)
            throw error
        }
    }

    /// Returns the records of the index file; `nil` without a readable file.
    private func savedIndex() -> [IndexRecord]? {
        guard let file = try? files.open(directory.path(of: .index), for: .reading),
            let status = try? files.status(of: file), status.kind == .file, status.byteCount <= 1 << 28,
            let bytes = try? files.read(file, count: Int(status.byteCount), at: 0)
        else { return nil }
        return IndexCodec.decode(bytes)
    }

    /// Scans the directory under the lock, so that the stored bytes and the index become exact.
    func reconcile(_ usage: inout CacheUsage) throws(StorageError) {
        let isLoaded = state.withLock { $0.statistics.isIndexComplete }
        let saved = isLoaded ? nil : savedIndex()
        let (before, reserved) = (usage, state.withLock { $0.reserved })
        var scan = try DirectoryScan(directory)
        if try removeLeftovers(scan, &usage) { scan = try DirectoryScan(directory) }
        usage = before
        usage.set(used: scan.byteCount(with: reserved))
        finish(scan, saved: saved, isLoaded: isLoaded, isExact: true, added: usage.added)
    }

    /// Adds the result of a scan to the index.
    private func finish(_ scan: DirectoryScan, saved: [IndexRecord]?, isLoaded: Bool, isExact: Bool, added: UInt64) {
        let count = state.withLock { state in
            state.index.absorb(scan.entries, saved: isLoaded ? nil : saved ?? [], isExact: isExact)
            state.statistics.isIndexComplete = true
            state.directoryByteCount = scan.directoryByteCount
            state.addedAtScan = added
            state.ownAdded = 0
            return state.index.count
        }
        if !isLoaded { emit(.indexed(count: count, hadFile: saved != nil)) }
    }

    /// Removes leftovers of processes that ended: files that they were writing, and bodies without an entry.
    /// - Returns: Whether there were any.
    private func removeLeftovers(_ scan: DirectoryScan, _ usage: inout CacheUsage) throws(StorageError) -> Bool {
        var hasRemoved = false
        for number in scan.temporaries.keys {
            let path = directory.path(of: .temporary(number))
            // A writer locks its file, and the kernel releases that lock when the process ends.
            guard let file = try? files.open(path, for: .reading), try files.tryLock(file) else { continue }
            try discard(path: path, &usage)
            hasRemoved = true
        }
        for (name, generation) in scan.orphans where EntryIdentity.read(directory, name)?.bodyGeneration != generation {
            try discard(path: directory.path(of: .body(name, generation: generation)), &usage)
            hasRemoved = true
        }
        return hasRemoved
    }
}
