import Glibc
package import MartletStorage
import Synchronization

extension DiskCache {
    /// Records that a variant was served, which counts as a use; `nil` counts as a miss.
    package func noteUse(of reader: EntryReader?) {
        state.withLock { state in
            guard let reader else {
                state.statistics.misses += 1
                return
            }
            state.statistics.hits += 1
            // A complete index lacks an entry only if it was removed, or another process stored it: a scan adds that.
            if !state.index.touch(reader.name), !state.statistics.isIndexComplete { state.index.put(reader.record) }
        }
    }

    /// Records the use of an entry that memory served, so that the disk does not evict it as unused. Does not block.
    func noteUse(ofEntry name: EntryName) { state.withLock { _ = $0.index.touch(name) } }

    /// Returns all variants of a key. They do not count as used until ``noteUse(of:)``.
    package func variants(of key: CacheKey) -> [EntryReader] { readers(of: key) { open($0) } }

    /// Like ``variants(of:)``, without waiting for the disk; `nil` if that is impossible, or a variant is damaged.
    package func variantsNonBlocking(of key: CacheKey) -> [EntryReader]? {
        guard let nonBlockingFiles else { return nil }
        return try? readers(of: key) { (name) throws(EntryReader.OpenError) in
            do throws(EntryReader.OpenError) {
                return try EntryReader(name, of: self, from: nonBlockingFiles)
            } catch .absent { return nil }
        }
    }

    private func readers<Failure: Error>(of key: CacheKey, _ open: (EntryName) throws(Failure) -> EntryReader?)
        throws(Failure) -> [EntryReader]
    {
        let digest = CacheDigest(key)
        let isHidden = state.withLock { $0.hidesAll || $0.hidden.contains(digest) || $0.statistics.limit == 0 }
        guard !isHidden else { return [] }
        var readers: [EntryReader] = []
        for name in EntryName.all(of: digest) {
            guard let reader = try open(name), reader.head.key == key else { continue }
            // A response without selections has no other variants.
            if reader.head.selections.isEmpty, name.slot == 0 { return [reader] }
            readers.append(reader)
        }
        return readers
    }

    /// Opens an entry; `nil` if it does not exist, or is damaged.
    func open(_ name: EntryName) -> EntryReader? {
        switch inspect(name) {
        case .whole(let reader): return reader
        case .unreadable(let error): note(error)
        case .damaged(let damage): removeDamaged(name, identity: damage.identity, damage.error)
        case nil: break
        }
        return nil
    }

    /// Removes a damaged entry, unless it was replaced.
    func removeDamaged(_ name: EntryName, identity: UInt64, _ error: EntryFormatError) {
        state.withLock { $0.statistics.damaged += 1 }
        noting(except: ENOENT) { () throws(StorageError) in
            try withUsage { (usage) throws(StorageError) in
                let status = try files.statusIfPresent(at: directory.path(of: .entry(name)))
                if status?.identity == identity { try discard(name, &usage) }
            }
        }
        emit(.damaged(file: CacheFile.entry(name).name, error))
    }

    /// Returns the size of the directory and the cache's files on disk, in bytes. Does not take the lock.
    package func occupiedByteCount() throws(StorageError) -> UInt64 {
        let scan = try DirectoryScan(directory)
        return scan.byteCount &+ scan.directoryByteCount
    }

    /// Returns the names of all entries, in no order.
    package func entryNames() throws(StorageError) -> [EntryName] {
        do throws(StorageError) {
            return try files.names(inDirectory: directory.path).compactMap { name in
                if case .entry(let entry) = CacheFile(name: name) { entry } else { nil }
            }
        } catch  where error.code == ENOENT { return [] }
    }

    /// Returns the names of all entries, sorted by URL, partition and variant; invalid and unreadable ones at the end.
    package func entryNamesByURL() throws(StorageError) -> [EntryName] {
        var known: [(key: CacheKey, name: EntryName)] = []
        var others: [EntryName] = []
        for name in try entryNames() {
            switch inspect(name) {
            case .whole(let reader): known.append((reader.head.key, name))
            case .damaged, .unreadable: others.append(name)
            case nil: break
            }
        }
        known.sort { left, right in
            (left.key.url, left.key.partition, left.name.slot) < (right.key.url, right.key.partition, right.name.slot)
        }
        others.sort { CacheFile.entry($0).name < CacheFile.entry($1).name }
        return known.map { $0.name } + others
    }

    /// Inspects an entry, without counting a use or removing a damaged one; `nil` if it does not exist.
    package func inspect(_ name: EntryName) -> EntryInspection? {
        // Tried twice: a larger body may be removed, with its entry, between the opening of the two files.
        for isLast in [false, true] {
            do throws(EntryReader.OpenError) { return .whole(try EntryReader(name, of: self, from: files)) } catch {
                let file = CacheFile.entry(name).name
                switch error {
                case .absent: return nil
                case .storage(let error): return .unreadable(error)
                case .bodyIsMissing(let identity):
                    if isLast { return .damaged(.init(file: file, error: .length, identity: identity)) }
                case .damaged(let error, let identity):
                    return .damaged(.init(file: file, error: error, identity: identity))
                }
            }
        }
        return nil
    }

    /// Reads all bytes of all entries and removes the damaged ones.
    /// - Returns: The number of intact entries, the bytes of their bodies, and the number of removed entries.
    package func verify() -> (whole: Int, byteCount: UInt64, damaged: Int) {
        var result = (whole: 0, byteCount: UInt64(0), damaged: 0)
        for name in noting({ () throws(StorageError) in try entryNames() }) ?? [] {
            let before = state.withLock { $0.statistics.damaged }
            guard let reader = open(name), isWhole(reader) else {
                result.damaged += state.withLock { $0.statistics.damaged } - before
                continue
            }
            result.whole += 1
            result.byteCount &+= reader.byteCount
        }
        return result
    }

    private func isWhole(_ reader: EntryReader) -> Bool {
        var offset: UInt64 = 0
        while let bytes = try? reader.read(at: offset, limit: EntryReader.readLimit), !bytes.isEmpty {
            offset += UInt64(bytes.count)
        }
        return offset == reader.byteCount
    }
}
