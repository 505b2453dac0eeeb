import Glibc
import MartletStorage
import Synchronization

extension DiskCache {
    /// Notes which of the variants of a key answered: it counts as used; none is a miss.
    package func noteUse(of reader: EntryReader?) {
        state.withLock { state in
            if reader != nil { state.statistics.hits += 1 } else { state.statistics.misses += 1 }
        }
        if let reader { touch(reader) }
    }

    /// Notes that an entry was used which answered from elsewhere, so that it does not go as if nobody had asked for it. It
    /// takes no time.
    func noteUse(ofEntry name: EntryName) { state.withLock { _ = $0.index.touch(name) } }

    /// All variants of a key, none of which counts as used until ``noteUse(of:)`` says so.
    package func variants(of key: CacheKey) -> [EntryReader] { readers(of: key) { open($0) } }

    /// The variants of a key, none of which counts as used, where finding them waits for no disk; `nil` where it might, or
    /// where something is wrong with them, which ``variants(of:)`` sees to.
    package func variantsAtHand(of key: CacheKey) -> [EntryReader]? {
        guard let folderAtHand else { return nil }
        return try? readers(of: key) { (name) throws(EntryReader.OpeningFailure) in
            do throws(EntryReader.OpeningFailure) {
                return try EntryReader(name, in: folderAtHand, of: self)
            } catch .absent {
                return nil
            }
        }
    }

    private func readers<Failure: Error>(
        of key: CacheKey, _ open: (EntryName) throws(Failure) -> EntryReader?
    ) throws(Failure) -> [EntryReader] {
        let digest = CacheDigest(key)
        let isHidden = state.withLock {
            $0.hidesAll || $0.hidden.contains(digest) || $0.statistics.limit == 0
        }
        guard !isHidden else { return [] }
        var readers: [EntryReader] = []
        for slot in 0..<EntryName.slotLimit {
            guard let reader = try open(EntryName(digest: digest, slot: slot)), reader.head.key == key else {
                continue
            }
            // One that was chosen by nothing stands alone.
            if reader.head.selections.isEmpty, readers.isEmpty, slot == 0 { return [reader] }
            readers.append(reader)
        }
        return readers
    }

    private func touch(_ reader: EntryReader) {
        state.withLock { state in if !state.index.touch(reader.name) { state.index.put(reader.record) } }
    }

    /// Opens an entry; `nil` where there is none, or none that is whole.
    func open(_ name: EntryName) -> EntryReader? {
        switch look(at: name) {
        case .whole(let reader): return reader
        case .unreadable(let error): note(error)
        case .damaged(let damage): removeDamaged(name, identity: damage.identity, damage.fault)
        case nil: break
        }
        return nil
    }

    /// Removes an entry that is damaged, unless another has taken its place.
    func removeDamaged(_ name: EntryName, identity: UInt64, _ fault: EntryFault) {
        let path = folder.path(of: .entry(name))
        state.withLock { $0.statistics.damaged += 1 }
        do throws(StorageError) {
            try withLedger { (ledger) throws(StorageError) in
                guard try files.status(at: path).identity == identity else { return }
                try discard(name, &ledger)
            }
        } catch {
            if error.code != ENOENT { note(error) }
        }
        emit(.damaged(file: CacheFile.entry(name).name, fault))
    }
}
