import Glibc
package import MartletStorage

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
            do throws(EntryOpening.Failure) {
                return .whole(EntryReader(try EntryOpening.open(name, in: folder), in: self))
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
