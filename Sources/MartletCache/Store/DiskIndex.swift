/// The entries that are known to be stored, and the order of their eviction.
struct DiskIndex: Sendable {
    struct Record: Sendable {
        var name: EntryName
        /// The size on disk in bytes, including the larger body.
        var byteCount: UInt64
        /// The generation that names its larger body; `nil` if it has none.
        var bodyGeneration: UInt64?
        var identity: UInt64
        var tick: UInt64 = 0
    }

    private var policy: EvictionPolicy
    private var records: [Record?] = []
    private var free: [Int] = []
    private var places: [EntryName: Int] = [:]
    private var lastTick: UInt64 = 0
    /// Whether the ticks were raised above the saved ones.
    private var isRaised = false

    init(_ order: EvictionOrder) { policy = EvictionPolicy(order) }

    var count: Int { places.count }

    /// Adds an entry as the newest. It replaces an entry of the same name.
    /// - Parameter isMarked: Whether it counts as used since then.
    mutating func put(_ record: Record, isMarked: Bool = false) {
        remove(record.name)
        let place = free.popLast() ?? records.count
        if place == records.count { records.append(nil) }
        lastTick &+= 1
        records[place] = record
        records[place]?.tick = lastTick
        places[record.name] = place
        policy.insert(place)
        if isMarked { policy.touch(place) }
    }

    /// Records that an entry was used; false if it is not known.
    mutating func touch(_ name: EntryName) -> Bool {
        guard let place = places[name] else { return false }
        policy.touch(place)
        if policy.order == .leastRecentlyUsed {
            lastTick &+= 1
            records[place]?.tick = lastTick
        }
        return true
    }

    @discardableResult mutating func remove(_ name: EntryName) -> Record? {
        guard let place = places.removeValue(forKey: name), let record = records[place] else { return nil }
        policy.remove(place)
        records[place] = nil
        free.append(place)
        return record
    }

    /// Removes the entry to evict next, and returns it.
    mutating func removeVictim() -> Record? { policy.victim().flatMap { records[$0] }.flatMap { remove($0.name) } }

    /// The content of the index file.
    var saved: [IndexRecord] {
        marked.map { IndexRecord(name: $0.record.name, tick: $0.record.tick, isMarked: $0.isMarked) }
    }

    private var marked: [(record: Record, isMarked: Bool)] {
        records.indices.compactMap { place in records[place].map { ($0, policy.isMarked(place)) } }
    }

    /// Advances the tick to that of another process, so that later uses are newer.
    mutating func advance(to tick: UInt64) { lastTick = max(lastTick, tick) }

    /// Makes earlier uses of this run newer than the saved ticks. Only the first call has an effect.
    mutating func raise(above tick: UInt64) {
        guard !isRaised else { return }
        isRaised = true
        for place in records.indices { records[place]?.tick &+= tick }
        lastTick &+= tick
    }

    /// Adds the entries that a scan of the directory found.
    /// - Parameters:
    ///   - found: The entries, with the times at which they were stored.
    ///   - saved: The records of the index file; `nil` if they were added before, so that unknown entries are new.
    ///   - isExact: Whether nothing was stored during the scan, so that entries that were not found do not exist.
    mutating func absorb(_ found: [(record: Record, time: Int64)], saved: [IndexRecord]?, isExact: Bool) {
        if isExact {
            let names = Set(found.map(\.record.name))
            for name in Array(places.keys) where !names.contains(name) { remove(name) }
        }
        let unknown = found.filter { places[$0.record.name] == nil }.sorted { $0.time < $1.time }.map(\.record)
        guard let saved else {
            for record in unknown { put(record) }
            return
        }
        let known = Dictionary(saved.map { ($0.name, $0) }) { $0.tick > $1.tick ? $0 : $1 }
        let ordered = unknown.compactMap { record in known[record.name].map { (record, $0) } }.sorted {
            $0.1.tick < $1.1.tick
        }
        let own = marked.sorted { $0.record.tick < $1.record.tick }
        self = DiskIndex(policy.order)
        for (record, saved) in ordered {
            // The tick is kept, because it is compared with those of other processes.
            if saved.tick > 0 { advance(to: saved.tick - 1) }
            put(record, isMarked: saved.isMarked)
        }
        for record in unknown where known[record.name] == nil { put(record) }
        for (record, isMarked) in own { put(record, isMarked: isMarked) }
    }
}
