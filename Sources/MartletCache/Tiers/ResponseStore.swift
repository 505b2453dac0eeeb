import Synchronization

/// A store of responses in two tiers, memory and disk. Either tier may be missing.
///
/// Responses are stored on disk, and in memory if they are small. One that the disk cannot store stays in memory, and
/// is written to disk when memory evicts it. If one tier fails, the other continues to work.
///
/// Changes of both tiers are made under one lock, so that they never hold different bodies of a response. Lookups do
/// not take it: they may find a response that is being replaced, but never one that was invalidated before the lookup.
package final class ResponseStore: Sendable {
    let memory: MemoryCache
    let disk: DiskCache?
    let ends: RepresentationRemovalObservers
    /// Entries that memory has evicted and that are not on disk yet. The lock is held while both tiers are changed,
    /// including their files. Workers wait for it; other threads take it only if it is free. It is taken before the
    /// locks of the tiers, never while one of them is held.
    let changing = Mutex<[MemoryEntry]>([])
    /// The invalidated URLs, so that responses to earlier requests are not stored. Used by any thread, also under the
    /// locks of the tiers.
    let invalidations = Mutex(InvalidationLog())
    /// The URLs whose stored responses have changed, so that responses found before that do not replace them.
    let changes = Mutex(InvalidationLog(limit: 4096))
    /// The URLs that unsafe requests have invalidated. Read by each lookup.
    let outdated = Mutex(InvalidatedURLs())

    /// Creates a store of two tiers.
    /// - Parameters:
    ///   - memoryLimit: The maximum cost of responses in memory, in bytes; 0 for no such tier.
    ///   - disk: The second tier; `nil` for none.
    package init(memoryLimit: Int, disk: DiskCache?, order: EvictionOrder = .leastRecentlyUsed) {
        let ends = RepresentationRemovalObservers()
        memory = MemoryCache(limit: memoryLimit, order: order, hasDisk: disk != nil) { entry in
            ends.note(entry.head.key, entry.representation)
        }
        (self.ends, self.disk) = (ends, disk)
    }

    package var hasDisk: Bool { disk != nil }

    /// Whether another process blocks the disk by its lock. Responses must then not wait for the disk. Does not block.
    package var isHeldUp: Bool { disk?.lock.isHeldUp() ?? false }

    package var statistics: TierStatistics { TierStatistics(memory: memory.statistics, disk: disk?.statistics) }

    /// Adds a closure to call with each body that this process replaces, removes or invalidates, but does not evict,
    /// until it returns false. It is called under the locks of the tiers, so it must return quickly and not call the
    /// store.
    package func onRepresentationRemoved(_ body: @escaping @Sendable (CacheKey, UInt64) -> Bool) {
        ends.add(body)
        disk?.onBodyRemoved { [ends] key, representation in ends.note(key, representation) }
    }

    // MARK: Epochs

    /// The current epoch, for a request that is about to be sent.
    package var epoch: InvalidationLog.Epoch { invalidations.withLock { $0.epoch } }

    /// Returns the time at which a request that is sent now counts as sent: after any invalidation of its URL.
    package func requestTime(for url: String, now: WallTime) -> WallTime {
        outdated.withLock { $0.requestTime(for: url, now: now) }
    }

    /// Whether the response to a request of an epoch may still be stored.
    package func holds(_ epoch: InvalidationLog.Epoch, for key: CacheKey) -> Bool {
        invalidations.withLock { $0.holds(epoch, for: key) }
    }

    /// The current epoch of changes, for a request that is about to be sent.
    package var changeEpoch: InvalidationLog.Epoch { changes.withLock { $0.epoch } }

    /// Whether responses of a URL may have been stored since an epoch of changes.
    package func hasChanged(_ url: String, since seen: InvalidationLog.Epoch) -> Bool {
        !changes.withLock { $0.holds(seen, for: url) }
    }

    /// Prevents the responses of a key that are being received from being stored: a later response, which is not stored,
    /// makes them out of date. It does not block.
    package func supersede(_ key: CacheKey) { invalidations.withLock { $0.supersede(key) } }

    // MARK: Lookup

    /// Returns all variants of a key in memory; empty if there may be others on disk. Does not block or count a use.
    package func inMemory(_ key: CacheKey) -> [StoredResponse] {
        let found = memory.responses(of: key)
        // Outdated ones are rare; without any, the list is not copied.
        guard found.contains(where: { isOutdated($0.head) }) else { return found }
        return found.filter { !isOutdated($0.head) }
    }

    /// Whether an unsafe request has made a response out of date, in any partition.
    private func isOutdated(_ head: StoredHead) -> Bool { outdated.withLock { $0.cover(head) } }

    /// Returns all variants of a key in both tiers, without counting a use. It blocks on files.
    ///
    /// Of two variants for the same requests, the one in memory is used, unless another process stored a later one.
    package func all(_ key: CacheKey) -> [StoredResponse] {
        guard let disk else { return inMemory(key) }
        _ = changing.withLockIfAvailable { persist(&$0) }
        let seen = changeEpoch
        let readers = disk.variants(of: key).filter { reader in
            guard isOutdated(reader.head) else { return true }
            remove(reader.head.key, representation: reader.entry.generation)
            return false
        }
        return join(memory.variants(of: key), readers, seen: seen)
    }

    /// Like ``all(_:)``, without waiting; `nil` if that is not possible.
    package func allNonBlocking(_ key: CacheKey) -> [StoredResponse]? {
        guard let disk else { return inMemory(key) }
        // Evicted entries that are not on disk yet cannot be found: they have to be written first.
        guard changing.withLockIfAvailable({ $0.isEmpty }) == true else { return nil }
        let seen = changeEpoch
        let held = memory.variants(of: key)
        return disk.variantsNonBlocking(of: key).map { join(held, $0, seen: seen) }
    }

    private func join(_ held: [MemoryEntry], _ readers: [EntryReader], seen: InvalidationLog.Epoch) -> [StoredResponse]
    {
        var (held, readers) = (held.filter { !isOutdated($0.head) }, readers.filter { !isOutdated($0.head) })
        for entry in held {
            let rivals = VariantRule.displaced(by: entry.head, in: readers.map(\.head), limit: .max)
            let newer = rivals.map { readers[$0] }.filter { $0.head.responseTime > entry.head.responseTime }
            guard !newer.isEmpty else {
                for index in rivals.reversed() { readers.remove(at: index) }
                continue
            }
            held.removeAll { $0 === entry }
            let isSameBody = newer.contains { $0.entry.generation == entry.representation }
            if isSameBody { memory.drop(entry) } else { memory.remove(entry) }
        }
        if readers.isEmpty, let key = held.first?.head.key, changes.withLock({ $0.holds(seen, for: key.url) }) {
            memory.noteComplete(key)
        }
        let isLast = readers.count == 1
        return held.map { StoredResponse($0) } + readers.map { StoredResponse($0, seen: seen, isLastOnDisk: isLast) }
    }

    /// Records that a request was served by a stored response, which counts as a use in both tiers; `nil` counts as a
    /// miss. Does not block.
    package func noteUse(of response: StoredResponse?) {
        if let entry = response?.entry {
            memory.noteUse(of: entry, at: response?.place)
            if let name = entry.name { disk?.noteUse(ofEntry: name) }
        } else {
            memory.noteUse(of: nil)
            disk?.noteUse(of: response?.reader)
        }
    }

    /// Copies a response that was found on disk to memory, unless its body has its own file, or the URL has changed
    /// since the lookup. It does not block, and does nothing during a change of both tiers.
    package func promote(_ response: StoredResponse) {
        guard let reader = response.reader, let seen = response.seen, case .bytes(let body) = response.body,
            let limit = memory.bodyLimit(for: response.head), body.count <= limit
        else { return }
        let key = response.head.key
        _ = changing.withLockIfAvailable { leaving in
            let cost = leaving.reduce(0) { $0 + $1.cost }
            guard cost <= limit, changes.withLock({ $0.holds(seen, for: key.url) }),
                memory.entry(of: key, representation: response.representation) == nil
            else { return }
            let entry = MemoryEntry(
                response.variant, body: body, representation: response.representation, name: reader.name)
            leaving += memory.insert(entry, isOnDisk: true, isComplete: response.isLastOnDisk)
        }
    }

    // MARK: Writing to disk

    /// Evicts entries until memory holds at most a number of bytes, and writes them to disk. It blocks on files.
    package func trim(to byteCount: Int) {
        changing.withLock { leaving in
            leaving += memory.trim(to: byteCount)
            persist(&leaving)
        }
    }

    /// Writes the entries that are not on disk, and the order of use, before the process ends. It blocks on files.
    package func flush() {
        guard let disk else { return }
        changing.withLock { leaving in
            persist(&leaving)
            for entry in memory.unwritten { if let name = written(entry) { memory.markOnDisk(entry, as: name) } }
        }
        disk.saveIndex()
    }

    /// Writes evicted entries to disk; those that it cannot store are lost.
    func persist(_ leaving: inout [MemoryEntry]) {
        for entry in leaving { _ = written(entry) }
        leaving = []
    }

    /// Writes an entry to disk, and returns its name; `nil` if it is not stored.
    private func written(_ entry: MemoryEntry) -> EntryName? {
        guard let disk, UInt64(entry.body.count) <= disk.bodyLimit else { return nil }
        let readers = disk.variants(of: entry.head.key)
        if let reader = readers.first(where: { $0.entry.generation == entry.representation }) {
            return disk.updateHead(of: reader, to: entry.head) ? reader.name : nil
        }
        // Another process may have stored a later response.
        let rivals = VariantRule.displaced(by: entry.head, in: readers.map(\.head), limit: .max)
        guard rivals.allSatisfy({ readers[$0].head.responseTime <= entry.head.responseTime }),
            let writer = disk.begin(
                entry.head, expectedByteCount: UInt64(entry.body.count), generation: entry.representation),
            writer.append(entry.body), writer.commit()
        else { return nil }
        return writer.name
    }

    // MARK: Removal

    /// Removes one variant from both tiers, unless it was replaced. It blocks on files.
    package func remove(_ response: StoredResponse) {
        remove(response.head.key, representation: response.representation)
    }

    /// Removes the response with a body from both tiers, if it is still stored. It blocks on files.
    func remove(_ key: CacheKey, representation: UInt64) {
        changing.withLock { leaving in
            defer { noteChange(key.url) }
            leaving.removeAll { $0.representation == representation }
            if let held = memory.entry(of: key, representation: representation) { memory.remove(held) }
            disk?.remove(key, generation: representation)
        }
    }

    /// Invalidates the responses of a key's URL (RFC 9111 §4.4): those of the key, and those of the URL without a
    /// partition, are removed, and those to earlier requests are not stored afterwards. It blocks on files.
    /// - Parameter others: The current time, to invalidate the responses of other keys of the URL, too; `nil` to keep
    ///   them.
    package func invalidate(_ key: CacheKey, others: WallTime? = nil) {
        // This is the first step: a commit either sees the invalidation, or is finished before anything is removed.
        invalidations.withLock { $0.invalidate(key.url) }
        if let others { noteOutdated(key.url, at: others) }
        let keys: Set<CacheKey> = [key, CacheKey(url: key.url)]
        changing.withLock { leaving in
            defer { noteChange(key.url) }
            leaving.removeAll { entry in
                guard keys.contains(entry.head.key) else { return false }
                ends.note(entry.head.key, entry.representation)
                return true
            }
            for key in keys {
                memory.remove(key)
                disk?.remove(key)
            }
        }
    }

    /// Prevents responses to earlier requests for a URL from being found, in all partitions. It does not block.
    package func noteOutdated(_ url: String, at now: WallTime) { outdated.withLock { _ = $0.update(now, for: url) } }

    /// Removes the responses of a URL in all partitions. It blocks: the head of each entry on disk is read.
    package func removeAll(of url: String) {
        var keys = Set(
            changing.withLock { leaving in leaving.lazy.map(\.head.key).filter { $0.url == url } + memory.keys(of: url)
            })
        keys.insert(CacheKey(url: url))
        for key in keys { invalidate(key) }
        guard let disk, let names = try? disk.entryNames() else { return }
        for name in names {
            if case .whole(let reader) = disk.inspect(name), reader.head.key.url == url {
                remove(reader.head.key, representation: reader.entry.generation)
            }
        }
    }

    /// Removes everything from both tiers, also entries that are not on disk yet. It blocks on files.
    package func removeAll() {
        invalidations.withLock { $0.invalidateAll() }
        changing.withLock { leaving in
            defer { changes.withLock { $0.invalidateAll() } }
            for entry in leaving { ends.note(entry.head.key, entry.representation) }
            leaving = []
            memory.removeAll()
            disk?.removeAll()
            outdated.withLock { $0 = InvalidatedURLs() }
        }
    }
}
