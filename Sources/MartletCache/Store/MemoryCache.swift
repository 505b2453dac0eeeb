import MartletWire
import Synchronization

/// Responses in memory, bounded by their cost in bytes.
///
/// Calls only take a lock briefly, so any thread may make them. They return evicted entries that are not on disk.
package final class MemoryCache: Sendable {
    package struct Statistics: Equatable, Sendable {
        /// The number of entries; each variant counts.
        package var entryCount = 0
        /// The cost of the entries in bytes.
        package var byteCount = 0
        package var hits = 0
        package var misses = 0
        /// The number of entries that were evicted to make room for others, or because of memory pressure.
        package var evictions = 0
    }

    private struct Slot {
        let entry: MemoryEntry
        let isOnDisk: Bool
        /// The entry as lookups return it, created once.
        let response: StoredResponse

        init(_ entry: MemoryEntry, isOnDisk: Bool, at place: Int) {
            (self.entry, self.isOnDisk) = (entry, isOnDisk)
            response = StoredResponse(entry, at: place)
        }
    }

    private struct State {
        var slots: [Slot?] = []
        var free: [Int] = []
        var places: [CacheKey: [Int]] = [:]
        /// Keys with possibly more variants on disk than in memory.
        var incomplete: Set<CacheKey> = []
        var policy: EvictionPolicy
        var statistics = Statistics()

        func slots(of key: CacheKey) -> [Slot] { (places[key] ?? []).compactMap { slots[$0] } }

        /// Returns the position of an entry of a key that passes a test.
        func place(of key: CacheKey, where predicate: (MemoryEntry) -> Bool) -> Int? {
            places[key]?.first { slots[$0].map { predicate($0.entry) } ?? false }
        }

        /// Returns the position of an entry, if it is still stored.
        func place(of entry: MemoryEntry) -> Int? { place(of: entry.head.key) { $0 === entry } }

        /// Replaces an entry by another of the same body.
        mutating func replace(_ place: Int, by entry: MemoryEntry, isOnDisk: Bool) {
            statistics.byteCount += entry.cost - (slots[place]?.entry.cost ?? 0)
            slots[place] = Slot(entry, isOnDisk: isOnDisk, at: place)
        }

        @discardableResult mutating func remove(_ place: Int) -> Slot? {
            guard let slot = slots[place] else { return nil }
            let key = slot.entry.head.key
            places[key]?.removeAll { $0 == place }
            if places[key]?.isEmpty == true {
                places[key] = nil
                incomplete.remove(key)
            }
            slots[place] = nil
            free.append(place)
            policy.remove(place)
            statistics.entryCount -= 1
            statistics.byteCount -= slot.entry.cost
            return slot
        }
    }

    /// The lock on the entries, used by any thread for the time of a lookup.
    private let state: Mutex<State>
    private let limit: Int
    /// Called with each entry whose body is removed.
    private let onEnd: @Sendable (MemoryEntry) -> Void
    /// Whether evicted entries move to a disk.
    private let hasDisk: Bool

    /// Creates a cache with a limit in bytes; a limit of 0 stores nothing.
    /// - Parameters:
    ///   - hasDisk: Whether evicted entries move to a disk.
    ///   - onEnd: Called with each entry that is removed, or replaced by another body, but not evicted. It is called
    ///     under the lock: it must return quickly and must not call the cache.
    package init(
        limit: Int, order: EvictionOrder = .leastRecentlyUsed, hasDisk: Bool = false,
        onEnd: @escaping @Sendable (MemoryEntry) -> Void = { _ in }
    ) {
        (self.limit, self.onEnd, self.hasDisk) = (max(0, limit), onEnd, hasDisk)
        state = Mutex(State(policy: EvictionPolicy(order)))
    }

    package var statistics: Statistics { state.withLock { $0.statistics } }

    // MARK: Lookup

    /// Returns the keys of a URL with stored variants, in no order.
    func keys(of url: String) -> [CacheKey] { state.withLock { state in state.places.keys.filter { $0.url == url } } }

    /// Returns all variants of a key. They do not count as used until ``noteUse(of:at:)``.
    package func variants(of key: CacheKey) -> [MemoryEntry] { state.withLock { $0.slots(of: key).map(\.entry) } }

    /// Returns all variants of a key as lookups return them; empty if the disk may have others.
    func responses(of key: CacheKey) -> [StoredResponse] {
        state.withLock { state in
            guard state.incomplete.isEmpty || !state.incomplete.contains(key) else { return [] }
            return (state.places[key] ?? []).compactMap { state.slots[$0]?.response }
        }
    }

    /// Returns the entry of a body; it does not count as used.
    func entry(of key: CacheKey, representation: UInt64) -> MemoryEntry? {
        variants(of: key).first { $0.representation == representation }
    }

    /// Records that a variant was served, which counts as a use if it is still stored; `nil` counts as a miss.
    /// - Parameter hint: The position where it was found.
    package func noteUse(of entry: MemoryEntry?, at hint: Int? = nil) {
        state.withLock { state in
            guard let entry else {
                state.statistics.misses += 1
                return
            }
            state.statistics.hits += 1
            if let hint, state.slots.indices.contains(hint), state.slots[hint]?.entry === entry {
                state.policy.touch(hint)
                return
            }
            // Its head may have been replaced since it was found.
            let representation = entry.representation
            let place = state.place(of: entry.head.key) { $0.representation == representation }
            if let place { state.policy.touch(place) }
        }
    }

    /// Returns the maximum length of a body for a head; `nil` if even an empty body would be too large.
    func bodyLimit(for head: StoredHead) -> Int? {
        let rest = limit / 8 - MemoryEntry.cost(of: head)
        return rest >= 0 ? rest : nil
    }

    /// The entries that are not on disk: to be written there before the process ends.
    package var unwritten: [MemoryEntry] {
        state.withLock { state in state.slots.compactMap { $0 }.filter { !$0.isOnDisk }.map(\.entry) }
    }

    // MARK: Changes

    /// Stores an entry. Those that it replaces (``VariantRule``) are removed even if it is too large to be stored.
    /// - Parameters:
    ///   - isOnDisk: Whether the disk has the entry, so that it need not be written when it is evicted.
    ///   - isComplete: Whether memory then has all variants of the key that the disk has; `nil` for no change.
    /// - Returns: The evicted entries that are not on disk, oldest first, or such an entry itself if it is too large.
    @discardableResult package func insert(_ entry: MemoryEntry, isOnDisk: Bool, isComplete: Bool? = nil)
        -> [MemoryEntry]
    {
        state.withLock { state in
            displace(by: entry.head, entry.representation, &state)
            guard entry.cost <= limit / 8 else { return isOnDisk ? [] : [entry] }
            let place = state.free.popLast() ?? state.slots.count
            if place == state.slots.count { state.slots.append(nil) }
            state.replace(place, by: entry, isOnDisk: isOnDisk)
            state.places[entry.head.key, default: []].append(place)
            state.policy.insert(place)
            state.statistics.entryCount += 1
            switch isComplete {
            case true?: state.incomplete.remove(entry.head.key)
            case false?: state.incomplete.insert(entry.head.key)
            case nil: break
            }
            return shrink(to: limit, &state)
        }
    }

    /// Replaces the head of an entry by that of a 304, without its body (RFC 9111 §4.3.4).
    /// - Parameter isOnDisk: Whether the disk has the new head, too.
    /// - Returns: The new entry, and evicted ones that are not on disk; `nil` if it has been removed or replaced since.
    package func updateHead(of entry: MemoryEntry, to head: StoredHead, isOnDisk: Bool) -> (
        entry: MemoryEntry, unwritten: [MemoryEntry]
    )? {
        guard head.key == entry.head.key else { return nil }
        let updated = entry.with(StoredVariant(head: head, bodyLength: UInt64(entry.body.count)))
        return state.withLock { state in
            guard let place = state.place(of: entry) else { return nil }
            state.replace(place, by: updated, isOnDisk: isOnDisk)
            return (updated, shrink(to: limit, &state))
        }
    }

    /// Removes the entries that an entry stored elsewhere replaces.
    func displace(by head: StoredHead, representation: UInt64) {
        state.withLock { state in
            displace(by: head, representation, &state)
            if hasDisk, state.places[head.key] != nil { state.incomplete.insert(head.key) }
        }
    }

    /// Records that the disk has no variant of a key that is not in memory.
    func noteComplete(_ key: CacheKey) { state.withLock { _ = $0.incomplete.remove(key) } }

    /// Records the name of an entry on disk, if it is still stored.
    package func markOnDisk(_ entry: MemoryEntry, as name: EntryName? = nil) {
        let stored = name.map { entry.with(name: $0) } ?? entry
        state.withLock { state in
            if let place = state.place(of: entry) { state.replace(place, by: stored, isOnDisk: true) }
        }
    }

    /// Removes one variant, unless it was replaced.
    package func remove(_ entry: MemoryEntry) {
        state.withLock { state in if let place = state.place(of: entry) { end(place, &state) } }
    }

    /// Removes one variant, unless it was replaced. Does not call `onEnd`, because the disk has the same body.
    func drop(_ entry: MemoryEntry) {
        state.withLock { state in if let place = state.place(of: entry) { state.remove(place) } }
    }

    package func remove(_ key: CacheKey) {
        state.withLock { state in for place in state.places[key] ?? [] { end(place, &state) } }
    }

    /// Removes everything, also entries that are not on disk.
    package func removeAll() { state.withLock { state in for place in state.slots.indices { end(place, &state) } } }

    /// Evicts entries until their cost is at most a number of bytes. The limit does not change.
    /// - Returns: Those that are not on disk, oldest first.
    package func trim(to byteCount: Int) -> [MemoryEntry] {
        state.withLock { state in shrink(to: max(0, byteCount), &state) }
    }

    private func displace(by head: StoredHead, _ representation: UInt64, _ state: inout State) {
        let places = state.places[head.key] ?? []
        let heads = places.compactMap { state.slots[$0]?.entry.head }
        for index in VariantRule.displaced(by: head, in: heads, limit: EntryName.slotLimit) {
            let isSame = state.slots[places[index]]?.entry.representation == representation
            if isSame { state.remove(places[index]) } else { end(places[index], &state) }
        }
    }

    private func end(_ place: Int, _ state: inout State) { if let slot = state.remove(place) { onEnd(slot.entry) } }

    private func shrink(to byteCount: Int, _ state: inout State) -> [MemoryEntry] {
        var unwritten: [MemoryEntry] = []
        while state.statistics.byteCount > byteCount, let place = state.policy.victim(), let slot = state.remove(place)
        {
            if !slot.isOnDisk { unwritten.append(slot.entry) }
            let key = slot.entry.head.key
            if hasDisk, state.places[key] != nil { state.incomplete.insert(key) }
            state.statistics.evictions += 1
        }
        return unwritten
    }
}

/// A complete response in memory, which never changes.
package final class MemoryEntry: Sendable {
    /// The head, with its fields parsed, so that a hit does not parse them.
    package let variant: StoredVariant
    package var head: StoredHead { variant.head }
    package let body: [UInt8]
    /// The cost in bytes: the body, the texts of the head, and 512 for the containers.
    package let cost: Int
    /// The number of the body: the generation of the entry on disk, if there is one.
    package let representation: UInt64
    /// The name on disk; `nil` if the entry is not there, or the name is not known.
    let name: EntryName?

    /// Creates an entry of a new body.
    package convenience init(head: StoredHead, body: [UInt8]) {
        self.init(
            StoredVariant(head: head, bodyLength: UInt64(body.count)), body: body,
            representation: .random(in: 1 ... .max), name: nil)
    }

    /// Creates an entry of a body that has a number.
    init(_ variant: StoredVariant, body: [UInt8], representation: UInt64, name: EntryName?) {
        (self.variant, self.representation, self.name) = (variant, representation, name)
        self.body = Self.exact(body)
        cost = Self.cost(of: variant.head) + body.count
    }

    /// Returns the cost of an entry with a head, without its body.
    static func cost(of head: StoredHead) -> Int {
        var cost = 512 + head.key.url.utf8.count + head.key.partition.utf8.count
        cost += head.reason.utf8.count
        for fields in [head.fields, head.trailers].compactMap(\.self) {
            for index in fields.indices { cost += fields.name(at: index).count + fields.value(at: index).count + 16 }
        }
        for selection in head.selections { cost += selection.name.utf8.count + (selection.value?.utf8.count ?? 0) + 32 }
        return cost
    }

    /// Returns the same body with another head, or with its name on disk.
    func with(_ variant: StoredVariant? = nil, name: EntryName? = nil) -> MemoryEntry {
        MemoryEntry(variant ?? self.variant, body: body, representation: representation, name: name ?? self.name)
    }

    /// Returns the bytes without spare capacity, which may be as large as the body if the array has grown.
    private static func exact(_ body: [UInt8]) -> [UInt8] {
        guard body.capacity > body.count + body.count / 8 + 64 else { return body }
        var copy: [UInt8] = []
        copy.reserveCapacity(body.count)
        copy.append(contentsOf: body)
        return copy
    }
}
