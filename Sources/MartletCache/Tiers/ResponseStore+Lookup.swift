import Synchronization

extension ResponseStore {
    /// The variants of a key that memory holds, where those are all; none of them counts as used. It takes no time.
    package func inMemory(_ key: CacheKey) -> [StoredResponse] {
        let found = memory.responses(of: key)
        // As good as always none is, and the list stays the one that it was.
        guard found.contains(where: { isOutdated($0.head) }) else { return found }
        return found.filter { !isOutdated($0.head) }
    }

    /// Whether an unsafe request has made it out of date, whoever made that.
    private func isOutdated(_ head: StoredHead) -> Bool {
        outdated.withLock { $0.cover(head) }
    }

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
