import Glibc
package import MartletStorage
import Synchronization

extension DiskCache {
    /// Makes the index complete and the count exact, removing what processes that ended have left behind.
    ///
    /// To be called once, in the background; others may use the cache meanwhile. What fails is an event, and comes right when
    /// room is needed.
    package func load() {
        do throws(StorageError) {
            let saved = savedIndex()
            let before = try withLedger { (ledger) throws(StorageError) -> UInt64 in ledger.added }
            let scan = try FolderScan(folder)
            let added = try withLedger { (ledger) throws(StorageError) -> UInt64 in
                // What was added meanwhile may be missing in the count, or be in it: it is counted to be sure.
                let growth = ledger.added >= before ? ledger.added - before : ledger.added
                ledger.set(used: scan.byteCount &+ growth)
                _ = try removeLeftovers(scan, &ledger)
                return ledger.added
            }
            let isLoaded = state.withLock { $0.statistics.isIndexComplete }
            finish(scan, saved: saved, isLoaded: isLoaded, isExact: false, added: added)
            try withLedger { (ledger) throws(StorageError) in _ = try makeRoom(for: 0, &ledger) }
        } catch {
            note(error)
        }
    }

    /// Writes down in which order entries were used, for the next run. To be called at the end, and now and then.
    ///
    /// Before the index is complete only a few entries are known, those that were used: what is written down of the others
    /// stays, and these are newer.
    ///
    /// - Returns: whether it was written.
    @discardableResult
    package func saveIndex() -> Bool {
        do throws(StorageError) {
            return try withLedger { (ledger) throws(StorageError) -> Bool in
                let others = savedIndex() ?? []
                let last = others.map(\.tick).max() ?? 0
                let (own, isComplete) = state.withLock { state -> ([IndexRecord], Bool) in
                    if !state.statistics.isIndexComplete { state.index.raise(above: last) }
                    return (state.index.saved, state.statistics.isIndexComplete)
                }
                var records: [EntryName: IndexRecord] = [:]
                for record in own { records[record.name] = record }
                // Another process may have used an entry later than this one has.
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
                return try replaceIndex(IndexCodec.encode(ordered), &ledger)
            }
        } catch {
            note(error)
            return false
        }
    }

    private func replaceIndex(_ bytes: [UInt8], _ ledger: inout CacheLedger) throws(StorageError) -> Bool {
        let path = folder.path(of: .index)
        guard try makeRoom(for: Self.blocks(UInt64(bytes.count)), &ledger) else { return false }
        let old: UInt64
        do throws(StorageError) {
            old = try files.status(at: path).allocatedByteCount
        } catch  where error.code == ENOENT {
            old = 0
        }
        let written = try writeTemporary(bytes, &ledger)
        do throws(StorageError) {
            try files.rename(written.path, to: path)
        } catch {
            try? files.remove(written.path)
            ledger.subtract(written.byteCount)
            throw error
        }
        ledger.subtract(old)
        return true
    }

    /// Writes a file that has no name yet, its bytes added to the ledger.
    func writeTemporary(
        _ bytes: [UInt8], _ ledger: inout CacheLedger
    ) throws(StorageError) -> (path: String, byteCount: UInt64, identity: UInt64) {
        let path = folder.path(of: .temporary(.random(in: 0 ... .max)))
        let reserved = Self.blocks(UInt64(bytes.count))
        try ledger.add(reserved)
        do throws(StorageError) {
            let file = try files.open(path, for: .creating)
            try files.write(all: bytes, to: file, at: 0)
            let status = try files.status(of: file)
            if status.allocatedByteCount > reserved {
                try ledger.add(status.allocatedByteCount - reserved)
            } else {
                ledger.subtract(reserved - status.allocatedByteCount)
            }
            return (path, status.allocatedByteCount, status.identity)
        } catch {
            try? files.remove(path)
            ledger.subtract(reserved)
            throw error
        }
    }
}

extension DiskCache {
    /// Reads every byte that is stored and removes the entries that are damaged.
    ///
    /// - Returns: how many entries are whole, how many bytes their bodies have, and how many were removed.
    package func verify() -> (whole: Int, byteCount: UInt64, damaged: Int) {
        var result = (whole: 0, byteCount: UInt64(0), damaged: 0)
        for name in namesOfEntries() {
            let before = state.withLock { $0.statistics.damaged }
            if let reader = open(name), isWhole(reader) {
                result.whole += 1
                result.byteCount &+= reader.byteCount
            } else {
                result.damaged += state.withLock { $0.statistics.damaged } - before
            }
        }
        return result
    }

    private func isWhole(_ reader: EntryReader) -> Bool {
        var offset: UInt64 = 0
        while offset < reader.byteCount {
            guard let bytes = try? reader.read(at: offset, limit: EntryReader.readLimit), !bytes.isEmpty
            else { return false }
            offset += UInt64(bytes.count)
        }
        return true
    }

    private func namesOfEntries() -> [EntryName] {
        do throws(StorageError) {
            return try entryNames()
        } catch {
            note(error)
            return []
        }
    }
}

extension DiskCache {
    /// What the folder, and all of the cache's files in it, occupy in allocated blocks, counted now and without the lock.
    package func occupiedByteCount() throws(StorageError) -> UInt64 {
        let scan = try FolderScan(folder)
        return scan.byteCount &+ scan.folderByteCount
    }

    /// The entries that are there, in no order.
    package func entryNames() throws(StorageError) -> [EntryName] {
        do throws(StorageError) {
            return try files.names(inFolder: folder.path).compactMap { name in
                if case .entry(let entry) = CacheFile(name: name) { entry } else { nil }
            }
        } catch  where error.code == ENOENT {
            return []
        }
    }

    /// The entries that are there, by URL, then by whose they are and by variant; behind them what is no entry or cannot
    /// be read. URLs are all that is held of them.
    package func entryNamesByURL() throws(StorageError) -> [EntryName] {
        var known: [(key: CacheKey, name: EntryName)] = []
        var others: [EntryName] = []
        for name in try entryNames() {
            switch look(at: name) {
            case .whole(let reader): known.append((reader.head.key, name))
            case .damaged, .unreadable: others.append(name)
            case nil: break
            }
        }
        known.sort { left, right in
            (left.key.url, left.key.partition, left.name.slot)
                < (right.key.url, right.key.partition, right.name.slot)
        }
        others.sort { CacheFile.entry($0).name < CacheFile.entry($1).name }
        return known.map { $0.name } + others
    }

    /// Looks at an entry, which neither counts as used nor is removed where it is damaged; `nil` where it is gone.
    package func look(at name: EntryName) -> EntrySight? {
        // A larger body may go, with the entry that named it, between opening the one and the other.
        for isLast in [false, true] {
            do throws(EntryReader.OpeningFailure) {
                return .whole(try EntryReader(name, in: folder, of: self))
            } catch {
                let file = CacheFile.entry(name).name
                switch error {
                case .absent: return nil
                case .storage(let error): return .unreadable(error)
                case .bodyIsMissing(let identity):
                    if isLast { return .damaged(.init(file: file, fault: .length, identity: identity)) }
                case .damaged(let fault, let identity):
                    return .damaged(.init(file: file, fault: fault, identity: identity))
                }
            }
        }
        return nil
    }
}
