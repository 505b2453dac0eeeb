import Synchronization

/// Stored responses behind one door: memory before the disk, either of which may be missing.
///
/// What is stored goes to disk, and to memory where it is small; what the disk does not take stays in memory alone, and is
/// written down when memory gives it up. What fails in one tier is the other's: nothing fails because a disk does.
///
/// Whatever changes both tiers does so under one lock, so that they never hold different bodies of one response. Looking up
/// takes no part in that: it may find what is being replaced, and never what was invalidated before it began.
package final class ResponseStore: Sendable {
    /// What only whoever changes both tiers may touch.
    struct Changing: Sendable {
        /// Given up by memory and not on disk yet.
        var leaving: [MemoryEntry] = []
    }

    struct Counts: Sendable {
        var stores = 0
        var refusals = 0
    }

    let memory: MemoryCache
    let disk: DiskCache?
    let ends: RepresentationEnds
    /// Held while both tiers are changed, files included: by workers, and by others only where it is free. Taken before the
    /// locks of the tiers, never within them.
    let changing = Mutex(Changing())
    /// Which URLs are out of date since when. Asked and written by anybody, also under the locks of the tiers.
    let ledger = Mutex(InvalidationLedger())
    /// For which URLs something else is stored since when, so that what was looked up before does not take its place.
    let changes = Mutex(InvalidationLedger(limit: 4096))
    let counts = Mutex(Counts())
    /// Asked at each look, and written by unsafe requests.
    let outdated = Mutex(OutdatedURLs())

    /// A store of two tiers.
    ///
    /// - Parameters:
    ///   - memoryLimit: bytes that responses in memory may cost; 0 for no such tier.
    ///   - disk: the second tier; `nil` for none.
    ///   - order: what goes first when memory has no room.
    package init(memoryLimit: Int, disk: DiskCache?, order: EvictionOrder = .leastRecentlyUsed) {
        let ends = RepresentationEnds()
        memory = MemoryCache(limit: memoryLimit, order: order, hasDisk: disk != nil) { entry in
            ends.note(entry.head.key, entry.representation)
        }
        self.ends = ends
        self.disk = disk
    }

    /// Whether there is a second tier.
    package var hasDisk: Bool { disk != nil }

    /// Whether another process keeps the second tier locked: no response may wait for what is stored or removed. It takes no
    /// time.
    package var isHeldUp: Bool { disk?.lock.isHeldUp ?? false }

    /// The longest body that is stored in any tier, in bytes.
    package var bodyLimit: UInt64 { max(disk?.bodyLimit ?? 0, UInt64(memoryBodyLimit)) }

    /// The longest body that is kept in memory, in bytes: an eighth of the limit, less 512 and what the head costs.
    package var memoryBodyLimit: Int { memory.bodyLimit }

    /// What both tiers hold and were asked.
    package var statistics: TierStatistics {
        let counts = counts.withLock { $0 }
        return TierStatistics(
            memory: memory.statistics, disk: disk?.statistics, stores: counts.stores,
            refusals: counts.refusals)
    }

    /// Has a closure called with each body that is replaced, removed or invalidated by this process, and not with what merely
    /// made room, until it returns false. It is called at once, under the locks of the tiers: it must neither take long nor call the store.
    package func whenRepresentationEnds(_ body: @escaping @Sendable (CacheKey, UInt64) -> Bool) {
        ends.add(body)
        disk?.whenBodyEnds { [ends] key, representation in ends.note(key, representation) }
    }

    // MARK: Epochs

    /// The present epoch, for a request that is about to be sent.
    package var epoch: InvalidationLedger.Epoch { ledger.withLock { $0.epoch } }

    /// The moment at which a request for a URL that is sent now counts as sent: what it brings is newer than what was out of
    /// date before, however short a time ago.
    package func requestTime(for url: String, now: WallTime) -> WallTime {
        outdated.withLock { $0.requestTime(for: url, now: now) }
    }

    /// Whether a response to a request that was sent at an epoch may still be stored.
    package func holds(_ epoch: InvalidationLedger.Epoch, for url: String) -> Bool {
        ledger.withLock { $0.holds(epoch, for: url) }
    }
}

extension ResponseStore {
    /// The variants of a key that memory holds, where those are all; none of them counts as used. It takes no time.
    package func inMemory(_ key: CacheKey) -> [StoredResponse] {
        let found = memory.responses(of: key)
        // As good as always none is, and the list stays the one that it was.
        guard found.contains(where: { isOutdated($0.head) }) else { return found }
        return found.filter { !isOutdated($0.head) }
    }

    /// Whether an unsafe request has made it out of date, whoever made that.
    private func isOutdated(_ head: StoredHead) -> Bool { outdated.withLock { $0.cover(head) } }

    /// The variants of a key in both tiers; none of them counts as used. It blocks on files.
    ///
    /// Where both have one for the same requests, that is the one that came later: another process may have stored it. Where
    /// they came at the same time, it is memory's.
    package func all(_ key: CacheKey) -> [StoredResponse] {
        guard let disk else { return inMemory(key) }
        _ = changing.withLockIfAvailable { writeDown(&$0) }
        let seen = changes.withLock { $0.epoch }
        let readers = disk.variants(of: key).filter { reader in
            guard isOutdated(reader.head) else { return true }
            remove(reader.head.key, representation: reader.entry.generation)
            return false
        }
        return join(memory.variants(of: key), readers, seen: seen)
    }

    /// The same, where finding them waits for nothing; `nil` where it might.
    package func allAtHand(_ key: CacheKey) -> [StoredResponse]? {
        guard let disk else { return inMemory(key) }
        // What memory gave up and is not on disk yet is nowhere: it has to be written down first.
        guard changing.withLockIfAvailable({ $0.leaving.isEmpty }) == true else { return nil }
        let seen = changes.withLock { $0.epoch }
        let held = memory.variants(of: key)
        return disk.variantsAtHand(of: key).map { join(held, $0, seen: seen) }
    }

    private func join(
        _ held: [MemoryEntry], _ readers: [EntryReader], seen: InvalidationLedger.Epoch
    ) -> [StoredResponse] {
        var (held, readers) = (held.filter { !isOutdated($0.head) }, readers.filter { !isOutdated($0.head) })
        for entry in held {
            let rivals = VariantRule.displaced(by: entry.head, in: readers.map(\.head), limit: .max)
            let newer = rivals.map { readers[$0] }.filter { $0.head.responseTime > entry.head.responseTime }
            if newer.isEmpty {
                for index in rivals.reversed() { readers.remove(at: index) }
                continue
            }
            held.removeAll { $0 === entry }
            let goesOn = newer.contains { $0.entry.generation == entry.representation }
            if goesOn { memory.drop(entry) } else { memory.remove(entry) }
        }
        let isLast = readers.count == 1
        if readers.isEmpty, let key = held.first?.head.key, changes.withLock({ $0.holds(seen, for: key.url) })
        {
            memory.noteComplete(key)
        }
        return held.map { StoredResponse($0) }
            + readers.map { StoredResponse($0, seen: seen, isLastOnDisk: isLast) }
    }

    /// Notes which response answered a request: it counts as used in both tiers; none is a miss. To be called once for each
    /// request. It takes no time.
    package func noteUse(of response: StoredResponse?) {
        if let entry = response?.entry {
            memory.noteUse(of: entry, at: response?.place)
            if let name = entry.name { disk?.noteUse(ofEntry: name) }
            return
        }
        memory.noteUse(of: nil)
        disk?.noteUse(of: response?.reader)
    }

    /// Takes a small response that was found on disk into memory; those in files of their own stay there.
    ///
    /// It takes no time: where somebody is storing at the moment, and where something else was stored for its URL since it was
    /// found, it does nothing.
    package func promote(_ response: StoredResponse) {
        guard let reader = response.reader, let seen = response.seen, case .bytes(let body) = response.body,
            let limit = memory.bodyLimit(for: response.head), body.count <= limit
        else { return }
        let key = response.head.key
        _ = changing.withLockIfAvailable { changing in
            let cost = changing.leaving.reduce(0) { $0 + $1.cost }
            guard cost <= limit, changes.withLock({ $0.holds(seen, for: key.url) }),
                memory.entry(of: key, representation: response.representation) == nil
            else { return }
            let entry = MemoryEntry(
                response.variant, body: body, representation: response.representation, name: reader.name)
            changing.leaving += memory.insert(entry, isOnDisk: true, isComplete: response.isLastOnDisk)
        }
    }
}

extension ResponseStore {
    /// Gives entries in memory up until they cost no more than so many bytes; the limit stays. What is not on disk is written
    /// there, where there is one. It blocks on files.
    package func trim(to byteCount: Int) {
        changing.withLock { changing in
            changing.leaving += memory.trim(to: byteCount)
            writeDown(&changing)
        }
    }

    /// Writes down what is not on disk, and in which order entries were used: to be called before the process ends. Memory
    /// keeps what it has. It blocks on files.
    package func flush() {
        guard let disk else { return }
        changing.withLock { changing in
            writeDown(&changing)
            for entry in memory.unwritten {
                if let name = written(entry) { memory.markOnDisk(entry, as: name) }
            }
        }
        disk.saveIndex()
    }

    /// Writes down what memory gave up; what the disk does not take is gone.
    func writeDown(_ changing: inout Changing) {
        for entry in changing.leaving { _ = written(entry) }
        changing.leaving = []
    }

    /// Writes an entry to disk, and says where; `nil` where it is not stored.
    private func written(_ entry: MemoryEntry) -> EntryName? {
        guard let disk, UInt64(entry.body.count) <= disk.bodyLimit else { return nil }
        let readers = disk.variants(of: entry.head.key)
        if let reader = readers.first(where: { $0.entry.generation == entry.representation }) {
            return disk.updateHead(of: reader, to: entry.head) ? reader.name : nil
        }
        // Another process may have stored a later one.
        let rivals = VariantRule.displaced(by: entry.head, in: readers.map(\.head), limit: .max)
        guard rivals.allSatisfy({ readers[$0].head.responseTime <= entry.head.responseTime }),
            let writer = disk.begin(
                entry.head, expectedByteCount: UInt64(entry.body.count), generation: entry.representation),
            writer.append(entry.body), writer.commit()
        else { return nil }
        return writer.name
    }
}

extension ResponseStore {
    /// Removes one variant from both tiers, unless another has taken its place. It blocks on files.
    package func remove(_ response: StoredResponse) {
        remove(response.head.key, representation: response.representation)
    }

    /// Removes the response with a body from both tiers, where it is still stored. It blocks on files.
    func remove(_ key: CacheKey, representation: UInt64) {
        changing.withLock { changing in
            defer { noteChange(key.url) }
            changing.leaving.removeAll { $0.representation == representation }
            if let held = memory.entry(of: key, representation: representation) { memory.remove(held.entry) }
            disk?.remove(key, generation: representation)
        }
    }

    /// Makes what is stored for a key's URL out of date (RFC 9111 §4.4): what the key and the URL's common key have is removed,
    /// and what was asked for before is not stored behind it. It blocks on files.
    /// - Parameter others: the present, where what other keys of the URL have is not to be found any more, either: nobody knows
    ///   which there are. `nil` leaves them.
    package func invalidate(_ key: CacheKey, others: WallTime? = nil) {
        // First of all, so that whoever is storing sees it at the last moment, or is done before anything is removed.
        ledger.withLock { $0.invalidate(key.url) }
        if let others { noteOutdated(key.url, at: others) }
        let keys: Set<CacheKey> = [key, CacheKey(url: key.url)]
        changing.withLock { changing in
            defer { noteChange(key.url) }
            changing.leaving.removeAll { entry in
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

    /// Makes what was asked for of a URL up to now be found no longer, whosever it is. It takes no time.
    package func noteOutdated(_ url: String, at now: WallTime) { outdated.withLock { $0.note(url, at: now) } }

    /// Removes what is stored of a URL from both tiers, whosever it is. It blocks on files, and reads the head of each entry on
    /// disk, since nothing else tells of which URL it is.
    package func removeAll(of url: String) {
        var keys = Set(
            changing.withLock { changing in
                changing.leaving.lazy.map(\.head.key).filter { $0.url == url } + memory.keys(of: url)
            })
        keys.insert(CacheKey(url: url))
        for key in keys { invalidate(key) }
        guard let disk, let names = try? disk.entryNames() else { return }
        for name in names {
            if case .whole(let reader) = disk.look(at: name), reader.head.key.url == url {
                remove(reader.head.key, representation: reader.entry.generation)
            }
        }
    }

    /// Removes everything from both tiers, also what is not on disk yet. It blocks on files.
    package func removeAll() {
        ledger.withLock { $0.invalidateAll() }
        changing.withLock { changing in
            defer { changes.withLock { $0.invalidateAll() } }
            for entry in changing.leaving { ends.note(entry.head.key, entry.representation) }
            changing.leaving = []
            memory.removeAll()
            disk?.removeAll()
            outdated.withLock { $0.removeAll() }
        }
    }
}
