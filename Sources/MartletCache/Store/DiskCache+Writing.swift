import Glibc
import MartletStorage
import Synchronization

extension DiskCache {
    /// Starts to store a response.
    /// - Parameters:
    ///   - expectedByteCount: The length of the body, if it is known: its space is reserved, and a body of another
    ///     length is not stored.
    ///   - generation: The number of the body; `nil` for a random one.
    /// - Returns: The writer; `nil` if the body is known to be too large, which an event reports, or if the limit is 0.
    package func begin(_ head: StoredHead, expectedByteCount: UInt64? = nil, generation: UInt64? = nil) -> EntryWriter?
    {
        let limit = bodyLimit
        guard limit > 0 else { return nil }
        if let expectedByteCount, expectedByteCount > limit {
            emit(.tooLarge(head.key, byteCount: expectedByteCount, limit: limit))
            return nil
        }
        return EntryWriter(
            head, expectedByteCount: expectedByteCount, generation: generation ?? .random(in: 1 ... .max), in: self)
    }

    // MARK: Functions for writers

    /// The size in bytes up to which space is only counted: reserving it in the file costs half as much as writing it.
    static let preallocationThreshold: UInt64 = 1 << 20

    /// Creates a locked file for a larger body, with reserved space; `nil` without space.
    func makeBodyFile(_ byteCount: UInt64) throws(StorageError) -> (file: OpenFile, number: UInt64)? {
        let number = UInt64.random(in: 0 ... .max)
        let path = directory.path(of: .temporary(number))
        do throws(StorageError) {
            return try reserving(byteCount) { () throws(StorageError) -> (file: OpenFile, number: UInt64) in
                do throws(StorageError) {
                    let file = try files.open(path, for: .creating)
                    _ = try files.tryLock(file)
                    try allocate(byteCount, for: file)
                    state.withLock { $0.reserved[number] = byteCount }
                    return (file, number)
                } catch {
                    try? files.remove(path)
                    throw error
                }
            }
        } catch {
            endReservation(number)
            throw error
        }
    }

    /// Reserves more space; false if no space is left.
    func extend(_ file: OpenFile, _ number: UInt64, from reserved: UInt64, to byteCount: UInt64) throws(StorageError)
        -> Bool
    {
        guard byteCount > reserved else { return true }
        let done: Void? = try reserving(byteCount - reserved) { () throws(StorageError) in
            try allocate(byteCount, for: file)
            state.withLock { $0.reserved[number] = byteCount }
        }
        return done != nil
    }

    private func allocate(_ byteCount: UInt64, for file: OpenFile) throws(StorageError) {
        if byteCount > Self.preallocationThreshold { try files.allocate(byteCount, for: file) }
    }

    /// Counts bytes as stored, and calls a closure that reserves them; `nil` without space.
    private func reserving<Value: Sendable>(_ byteCount: UInt64, _ body: () throws(StorageError) -> Value)
        throws(StorageError) -> Value?
    {
        try withUsage { (usage) throws(StorageError) -> Value? in
            guard try makeRoom(for: byteCount, &usage) else { return nil }
            try usage.add(byteCount)
            do throws(StorageError) { return try body() } catch {
                usage.subtract(byteCount)
                throw error
            }
        }
    }

    /// Counts the size of a body on disk in place of the reserved space.
    func settle(_ number: UInt64, reserved: UInt64, allocated: UInt64) throws(StorageError) {
        guard reserved != allocated else { return endReservation(number) }
        try withUsage { (usage) throws(StorageError) in
            try usage.settle(reserved: reserved, allocated: allocated)
            endReservation(number)
        }
    }

    private func endReservation(_ number: UInt64) { _ = state.withLock { $0.reserved.removeValue(forKey: number) } }

    /// Removes a body that is not stored.
    func release(_ number: UInt64, reserved: UInt64) {
        // A file that cannot be removed is still counted; the next scan of the directory removes it.
        noting(except: ENOENT) { () throws(StorageError) in
            defer { endReservation(number) }
            try files.remove(directory.path(of: .temporary(number)))
            try withUsage { (usage) throws(StorageError) in usage.subtract(reserved) }
        }
    }

    // MARK: Entries

    /// Stores an entry, and returns its name; `nil` without space, or if the entry is out of date.
    /// - Parameters:
    ///   - body: The path of the temporary file of a larger body; `nil` for an inline body.
    ///   - displaced: Receives the replaced larger body, still open. Closing it takes time, which callers should not
    ///     wait for.
    ///   - isCurrent: Whether the response may be served, and may be stored beside or instead of responses with these
    ///     heads. Called under the lock, which removals take, too.
    func commit(
        _ entry: StoredEntry, _ body: String?, displaced: inout OpenFile?, if isCurrent: ([StoredHead]) -> Bool
    ) throws(StorageError) -> EntryName? {
        guard let bytes = EntryCodec.encode(entry) else { return nil }
        var replacedBody: OpenFile?
        defer { displaced = replacedBody }
        return try withUsage { (usage) throws(StorageError) -> EntryName? in
            guard try makeRoom(for: Self.blocks(UInt64(bytes.count)), &usage) else {
                emit(.noRoom(entry.head.key))
                return nil
            }
            let (name, replaced, heads) = place(for: entry.head)
            // Entries that could not be removed before would be found again, since their key is no longer hidden.
            let isHidden = state.withLock { $0.hidden.contains(name.digest) }
            guard isCurrent(isHidden ? [] : heads) else { return nil }
            let others = isHidden ? EntryName.all(of: name.digest).filter { $0 != name } : replaced
            let ended = generations(of: others)
            for other in others { try discard(other, &usage) }
            notifyRemoved(entry.head.key, ended)
            try put(bytes, entry, body, as: name, &usage, displaced: &replacedBody)
            state.withLock { _ = $0.hidden.remove(name.digest) }
            return name
        }
    }

    /// Replaces the head of an entry by that of a 304, without its body (RFC 9111 §4.3.4).
    /// - Parameter isCurrent: Whether the entry may still be served. Called under the lock, which removals take, too.
    /// - Returns: Whether it was replaced; false if the entry has been removed or replaced since.
    package func updateHead(of reader: EntryReader, to head: StoredHead, if isCurrent: () -> Bool = { true }) -> Bool {
        var entry = reader.entry
        entry.head = head
        guard head.key == reader.head.key, let bytes = EntryCodec.encode(entry) else { return false }
        let isDone = noting { () throws(StorageError) in
            try withUsage { (usage) throws(StorageError) -> Bool in
                guard isCurrent(), try makeRoom(for: Self.blocks(UInt64(bytes.count)), &usage),
                    EntryIdentity.read(directory, reader.name)?.generation == entry.generation
                else { return false }
                var displaced: OpenFile?
                try put(bytes, entry, nil, as: reader.name, &usage, displaced: &displaced)
                return true
            }
        }
        if isDone == true { noteSuccess() }
        return isDone ?? false
    }

    /// Returns the name for a response, the names of the other variants that it replaces, and the heads of all.
    private func place(for head: StoredHead) -> (EntryName, [EntryName], [StoredHead]) {
        let names = EntryName.all(of: CacheDigest(head.key))
        let held = names.filter { (try? files.status(at: directory.path(of: .entry($0)))) != nil }
        var replaced: [EntryName] = []
        var variants: [(name: EntryName, head: StoredHead)] = []
        for name in held {
            if let opened = try? EntryReader(name, of: self, from: files) {
                variants.append((name, opened.head))
            } else {
                replaced.append(name)
            }
        }
        let heads = variants.map(\.head)
        guard !head.selections.isEmpty else { return (names[0], held.filter { $0.slot != 0 }, heads) }
        replaced += VariantRule.displaced(by: head, in: heads, limit: EntryName.slotLimit).map { variants[$0].name }
        let free = names.filter { !held.contains($0) }
        let name = (replaced + free).min { $0.slot < $1.slot } ?? names[0]
        return (name, replaced.filter { $0 != name }, heads)
    }

    /// Writes an entry's file. Then the body and the entry are renamed to their names; the old entry is removed.
    private func put(
        _ bytes: [UInt8], _ entry: StoredEntry, _ body: String?, as name: EntryName, _ usage: inout CacheUsage,
        displaced: inout OpenFile?
    ) throws(StorageError) {
        let path = directory.path(of: .entry(name))
        let bodyPath = directory.path(of: .body(name, generation: entry.generation))
        let status = try? files.status(at: path)
        let old = status?.kind == .file ? status?.allocatedByteCount : nil
        let replaced = old.flatMap { _ in EntryIdentity.read(directory, name) }
        let written = try writeTemporary(bytes, &usage)
        do throws(StorageError) {
            if let body { try files.rename(body, to: bodyPath) }
            do throws(StorageError) { try files.rename(written.path, to: path) } catch {
                // The writer still owns the body, and removes it by its old name.
                if let body { try? files.rename(bodyPath, to: body) }
                throw error
            }
        } catch {
            try? files.remove(written.path)
            usage.subtract(written.byteCount)
            throw error
        }
        if let old { usage.subtract(old) }
        if let replaced, replaced.generation != entry.generation {
            if let generation = replaced.bodyGeneration {
                let path = directory.path(of: .body(name, generation: generation))
                displaced = try? files.open(path, for: .reading)
                _ = try? discard(path: path, &usage)
            }
            notifyRemoved(entry.head.key, [replaced.generation])
        }
        let isLarge = entry.inlineBody == nil
        let bodyByteCount = isLarge ? (try? files.status(at: bodyPath))?.allocatedByteCount ?? 0 : 0
        state.withLock { state in
            state.index.put(
                DiskIndex.Record(
                    name: name, byteCount: written.byteCount &+ bodyByteCount,
                    bodyGeneration: isLarge ? entry.generation : nil, identity: written.identity))
        }
    }
}
