import MartletWire
import Synchronization

/// Responses in memory, bounded by what they cost in bytes.
///
/// Its calls take a lock and no time: they may be made from anywhere. What it gives up and was not written to disk, it
/// hands to the caller, who may write it down.
package final class MemoryCache: Sendable {
    /// What it holds and what it was asked.
    package struct Statistics: Equatable, Sendable {
        /// Entries, each variant for itself.
        package var entryCount = 0
        /// What they cost, in bytes.
        package var byteCount = 0
        /// Questions that were answered.
        package var hits = 0
        /// Questions that were not.
        package var misses = 0
        /// Entries given up for others, or for want of memory.
        package var evictions = 0
    }

    private struct Slot {
        var entry: MemoryEntry
        var isOnDisk: Bool
        /// The entry as it is found, made once for all who find it here.
        let response: StoredResponse

        init(_ entry: MemoryEntry, isOnDisk: Bool, at place: Int) {
            self.entry = entry
            self.isOnDisk = isOnDisk
            response = StoredResponse(entry, at: place)
        }
    }

    private struct State {
        var slots: [Slot?] = []
        var free: [Int] = []
        var places: [CacheKey: [Int]] = [:]
        /// Keys of which the disk may have variants that are not here: what is here is not all there is to choose from.
        var incomplete: Set<CacheKey> = []
        var policy: any EvictionPolicy
        var limit: Int
        var statistics = Statistics()
    }

    /// Read and written by anybody, for the time of a look-up.
    private let state: Mutex<State>
    /// Told of each entry whose body ends.
    private let onEnd: @Sendable (MemoryEntry) -> Void
    /// Whether what it gives up goes on on a disk.
    private let hasDisk: Bool

    /// A cache of so many bytes; one of 0 holds nothing.
    ///
    /// - Parameters:
    ///   - hasDisk: whether what it gives up goes on on a disk.
    ///   - onEnd: called with each entry that is removed, or replaced by one of another body, and not given up to make room. It
    ///     is called under the lock: it must neither take long nor call the cache.
    package init(
        limit: Int, order: EvictionOrder = .leastRecentlyUsed, hasDisk: Bool = false,
        onEnd: @escaping @Sendable (MemoryEntry) -> Void = { _ in }
    ) {
        self.onEnd = onEnd
        self.hasDisk = hasDisk
        state = Mutex(State(policy: order.makePolicy(), limit: max(0, limit)))
    }

    /// The newest variant of a key that a test accepts, which counts as used.
    package func entry(for key: CacheKey, where isAcceptable: (StoredHead) -> Bool) -> MemoryEntry? {
        state.withLock { state in
            var found: (place: Int, entry: MemoryEntry)?
            for place in state.places[key] ?? [] {
                guard let entry = state.slots[place]?.entry, isAcceptable(entry.head) else { continue }
                if let other = found, other.entry.head.responseTime > entry.head.responseTime { continue }
                found = (place, entry)
            }
            guard let found else {
                state.statistics.misses += 1
                return nil
            }
            state.statistics.hits += 1
            state.policy.touch(found.place)
            return found.entry
        }
    }

    /// The keys of a URL that it has variants of, in no order.
    func keys(of url: String) -> [CacheKey] {
        state.withLock { state in state.places.keys.filter { $0.url == url } }
    }

    /// All variants of a key, none of which counts as used until ``noteUse(of:)`` says so.
    package func variants(of key: CacheKey) -> [MemoryEntry] {
        state.withLock { state in (state.places[key] ?? []).compactMap { state.slots[$0]?.entry } }
    }

    /// The same as they are found; none where the disk may have others of the key.
    func responses(of key: CacheKey) -> [StoredResponse] {
        state.withLock { state in
            guard let places = state.places[key], state.incomplete.isEmpty || !state.incomplete.contains(key)
            else { return [] }
            return places.compactMap { state.slots[$0]?.response }
        }
    }

    /// Notes which of the variants of a key answered: it counts as used, if it is still held; none is a miss.
    ///
    /// - Parameter hint: where it was found.
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
            for place in state.places[entry.head.key] ?? []
            where state.slots[place]?.entry.representation == entry.representation {
                state.policy.touch(place)
            }
        }
    }

    /// Puts an entry in the place of the one that it replaces (see ``VariantRule``).
    ///
    /// An entry above an eighth of the limit is not taken; then what it would have replaced is gone all the same.
    ///
    /// - Parameters:
    ///   - isOnDisk: whether it need not be written down when it is given up.
    ///   - isComplete: whether all variants of its key that the disk has are here then; `nil` for as it was.
    /// - Returns: what was given up and is not on disk, oldest first.
    @discardableResult
    package func insert(
        _ entry: MemoryEntry, isOnDisk: Bool, isComplete: Bool? = nil
    ) -> [MemoryEntry] {
        state.withLock { state in
            displace(by: entry.head, entry.representation, &state)
            guard entry.cost <= state.limit / 8 else { return isOnDisk ? [] : [entry] }
            let place = state.free.popLast() ?? state.slots.count
            if place == state.slots.count { state.slots.append(nil) }
            state.slots[place] = Slot(entry, isOnDisk: isOnDisk, at: place)
            state.places[entry.head.key, default: []].append(place)
            state.policy.insert(place)
            state.statistics.entryCount += 1
            state.statistics.byteCount += entry.cost
            switch isComplete {
            case true?: state.incomplete.remove(entry.head.key)
            case false?: state.incomplete.insert(entry.head.key)
            case nil: break
            }
            return shrink(to: state.limit, &state)
        }
    }

    /// Replaces the head of an entry by that of a 304's, the body staying (RFC 9111 §4.3.4).
    ///
    /// - Parameter isOnDisk: whether the disk has the new head, too.
    /// - Returns: the entry with the new head, and what was given up for it and is not on disk; `nil` where the entry is
    ///   gone or was replaced meanwhile.
    package func updateHead(
        of entry: MemoryEntry, to head: StoredHead, isOnDisk: Bool
    ) -> (entry: MemoryEntry, unwritten: [MemoryEntry])? {
        guard head.key == entry.head.key else { return nil }
        let updated = entry.updated(to: head)
        return state.withLock { state in
            let places = state.places[head.key] ?? []
            guard let place = places.first(where: { state.slots[$0]?.entry === entry }) else { return nil }
            state.slots[place] = Slot(updated, isOnDisk: isOnDisk, at: place)
            state.statistics.byteCount += updated.cost - entry.cost
            return (updated, shrink(to: state.limit, &state))
        }
    }

    /// Removes what an entry that is stored elsewhere replaces.
    func displace(by head: StoredHead, representation: UInt64) {
        state.withLock { state in
            displace(by: head, representation, &state)
            if hasDisk, state.places[head.key] != nil { state.incomplete.insert(head.key) }
        }
    }

    /// Notes that the disk has no variant of a key that is not here.
    func noteComplete(_ key: CacheKey) { state.withLock { _ = $0.incomplete.remove(key) } }

    /// Notes where on disk an entry is now, if it is still held.
    package func markOnDisk(_ entry: MemoryEntry, as name: EntryName? = nil) {
        let stored = name.map { entry.stored(as: $0) } ?? entry
        state.withLock { state in
            for place in state.places[entry.head.key] ?? [] where state.slots[place]?.entry === entry {
                state.slots[place] = Slot(stored, isOnDisk: true, at: place)
            }
        }
    }

    /// The entry of a body, and whether it is on disk; none of it counts as used.
    func entry(of key: CacheKey, representation: UInt64) -> (entry: MemoryEntry, isOnDisk: Bool)? {
        state.withLock { state in
            for place in state.places[key] ?? [] {
                if let slot = state.slots[place], slot.entry.representation == representation {
                    return (slot.entry, slot.isOnDisk)
                }
            }
            return nil
        }
    }

    /// The longest body that is taken with a head; `nil` where none is.
    func bodyLimit(for head: StoredHead) -> Int? {
        let rest = state.withLock { $0.limit / 8 } - MemoryEntry.cost(of: head)
        return rest >= 0 ? rest : nil
    }

    /// The longest body that is taken with the smallest of heads.
    var bodyLimit: Int { max(0, state.withLock { $0.limit / 8 } - 512) }

    /// What is held and not on disk: to be written down before the process ends.
    package var unwritten: [MemoryEntry] {
        state.withLock { state in
            state.slots.compactMap { slot in slot.flatMap { $0.isOnDisk ? nil : $0.entry } }
        }
    }

    /// Removes one variant, unless another has taken its place.
    package func remove(_ entry: MemoryEntry) {
        state.withLock { state in
            for place in state.places[entry.head.key] ?? [] where state.slots[place]?.entry === entry {
                end(place, &state)
            }
        }
    }

    /// Gives one variant up whose body goes on elsewhere, unless another has taken its place.
    func drop(_ entry: MemoryEntry) {
        state.withLock { state in
            for place in state.places[entry.head.key] ?? [] where state.slots[place]?.entry === entry {
                remove(place, &state)
            }
        }
    }

    /// Removes all variants of a key.
    package func remove(_ key: CacheKey) {
        state.withLock { state in for place in state.places[key] ?? [] { end(place, &state) } }
    }

    /// Removes everything, also what is not on disk.
    package func removeAll() {
        state.withLock { state in
            for place in state.slots.indices where state.slots[place] != nil { end(place, &state) }
        }
    }

    /// Gives entries up until they cost no more than so many bytes; the limit stays.
    ///
    /// - Returns: those that are not on disk, oldest first.
    package func trim(to byteCount: Int) -> [MemoryEntry] {
        state.withLock { state in shrink(to: max(0, byteCount), &state) }
    }

    /// Sets another limit, and gives entries up until it holds.
    ///
    /// - Returns: those that are not on disk, oldest first.
    package func setLimit(_ byteCount: Int) -> [MemoryEntry] {
        state.withLock { state in
            state.limit = max(0, byteCount)
            return shrink(to: state.limit, &state)
        }
    }

    /// What it holds and what it was asked.
    package var statistics: Statistics { state.withLock { $0.statistics } }

    private func replaced(by head: StoredHead, in state: State) -> [Int] {
        let places = (state.places[head.key] ?? []).filter { state.slots[$0] != nil }
        let heads = places.compactMap { state.slots[$0]?.entry.head }
        return VariantRule.displaced(by: head, in: heads, limit: EntryName.slotLimit).map { places[$0] }
    }

    private func displace(by head: StoredHead, _ representation: UInt64, _ state: inout State) {
        for place in replaced(by: head, in: state) {
            let isSame = state.slots[place]?.entry.representation == representation
            if isSame { remove(place, &state) } else { end(place, &state) }
        }
    }

    private func end(_ place: Int, _ state: inout State) {
        let entry = state.slots[place]?.entry
        remove(place, &state)
        if let entry { onEnd(entry) }
    }

    private func remove(_ place: Int, _ state: inout State) {
        guard let slot = state.slots[place] else { return }
        let key = slot.entry.head.key
        state.places[key]?.removeAll { $0 == place }
        if state.places[key]?.isEmpty == true {
            state.places[key] = nil
            state.incomplete.remove(key)
        }
        state.slots[place] = nil
        state.free.append(place)
        state.policy.remove(place)
        state.statistics.entryCount -= 1
        state.statistics.byteCount -= slot.entry.cost
    }

    private func shrink(to byteCount: Int, _ state: inout State) -> [MemoryEntry] {
        var unwritten: [MemoryEntry] = []
        while state.statistics.byteCount > byteCount, let place = state.policy.victim() {
            if let slot = state.slots[place], !slot.isOnDisk { unwritten.append(slot.entry) }
            let key = state.slots[place]?.entry.head.key
            remove(place, &state)
            if hasDisk, let key, state.places[key] != nil { state.incomplete.insert(key) }
            state.statistics.evictions += 1
        }
        return unwritten
    }
}

/// A response in memory, whole and unchanging.
package final class MemoryEntry: Sendable {
    /// What is decided by: the head, read once, so that a hit reads no fields.
    package let variant: StoredVariant
    /// All but the body.
    package var head: StoredHead { variant.head }
    /// The body.
    package let body: [UInt8]
    /// What it counts for in bytes: the body, the texts of the head, and 512 for what holds them.
    package let cost: Int
    /// Which body it is: the generation of the entry on disk, where there is one.
    package let representation: UInt64
    /// Where it is on disk; `nil` where it is not, or nobody knows.
    let name: EntryName?

    /// An entry of a head and a body, which is another body than all others.
    package convenience init(head: StoredHead, body: [UInt8]) {
        self.init(
            StoredVariant(head: head, bodyLength: UInt64(body.count)), body: body,
            representation: .random(in: 1 ... .max), name: nil)
    }

    /// An entry of a body that has its number.
    init(_ variant: StoredVariant, body: [UInt8], representation: UInt64, name: EntryName?) {
        self.variant = variant
        self.body = Self.exact(body)
        self.representation = representation
        self.name = name
        cost = Self.cost(of: variant.head) + body.count
    }

    /// What an entry of a head costs, its body not counted.
    static func cost(of head: StoredHead) -> Int {
        var cost = 512 + head.key.url.utf8.count + head.key.partition.utf8.count
        cost += head.reason.utf8.count
        for fields in [head.fields, head.trailers].compactMap(\.self) {
            for index in fields.indices {
                cost += fields.name(at: index).count + fields.value(at: index).count + 16
            }
        }
        for selection in head.selections {
            cost += selection.name.utf8.count + (selection.value?.utf8.count ?? 0) + 32
        }
        return cost
    }

    /// The same body under another head.
    func updated(to head: StoredHead) -> MemoryEntry {
        MemoryEntry(
            StoredVariant(head: head, bodyLength: UInt64(body.count)), body: body,
            representation: representation, name: name)
    }

    /// The same entry, which is on disk by now.
    func stored(as name: EntryName) -> MemoryEntry {
        MemoryEntry(variant, body: body, representation: representation, name: name)
    }

    /// The bytes without the room behind them: an array that grew as the body came may be twice as large as it.
    private static func exact(_ body: [UInt8]) -> [UInt8] {
        guard body.capacity > body.count + body.count / 8 + 64 else { return body }
        var copy: [UInt8] = []
        copy.reserveCapacity(body.count)
        copy.append(contentsOf: body)
        return copy
    }
}
