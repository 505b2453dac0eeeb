/// Which entries are known to be stored, and in which order they go when there is no room.
struct DiskIndex: Sendable {
    /// What is known of an entry.
    struct Record: Sendable {
        var name: EntryName
        /// What it occupies, its larger body included.
        var byteCount: UInt64
        /// The generation that names its larger body; 0 where it has none.
        var generation: UInt64
        /// The number of its file.
        var identity: UInt64
        var tick: UInt64 = 0
    }

    private let order: EvictionOrder
    private var policy: any EvictionPolicy
    private var records: [Record?] = []
    private var free: [Int] = []
    private var places: [EntryName: Int] = [:]
    private var lastTick: UInt64 = 0
    /// Whether the ticks were raised above those that were saved.
    private var isRaised = false
    /// What all of them occupy.
    private(set) var byteCount: UInt64 = 0

    init(_ order: EvictionOrder) {
        self.order = order
        policy = order.makePolicy()
    }

    /// How many entries are known.
    var count: Int { places.count }

    /// What is known of an entry.
    subscript(name: EntryName) -> Record? { places[name].flatMap { records[$0] } }

    /// Notes an entry that was stored, as the newest, in place of one of its name.
    mutating func put(_ record: Record) {
        remove(record.name)
        let place = free.popLast() ?? records.count
        if place == records.count { records.append(nil) }
        var record = record
        lastTick &+= 1
        record.tick = lastTick
        records[place] = record
        places[record.name] = place
        policy.insert(place)
        byteCount &+= record.byteCount
    }

    /// Notes that an entry was used; false where it is not known.
    mutating func touch(_ name: EntryName) -> Bool {
        guard let place = places[name] else { return false }
        policy.touch(place)
        if order.movesOnUse {
            lastTick &+= 1
            records[place]?.tick = lastTick
        }
        return true
    }

    /// Forgets an entry.
    @discardableResult
    mutating func remove(_ name: EntryName) -> Record? {
        guard let place = places.removeValue(forKey: name), let record = records[place] else { return nil }
        policy.remove(place)
        records[place] = nil
        free.append(place)
        byteCount &-= record.byteCount
        return record
    }

    /// Forgets the entry that goes next, and says which.
    mutating func removeVictim() -> Record? {
        guard let place = policy.victim(), let record = records[place] else { return nil }
        return remove(record.name)
    }

    /// What is written to the index file.
    var saved: [IndexRecord] {
        records.indices.compactMap { place in
            records[place].map { record in
                IndexRecord(name: record.name, tick: record.tick, isMarked: policy.isMarked(place))
            }
        }
    }

    /// Takes ticks that another process wrote into account, so that what is used from now on is newer than all of them.
    mutating func advance(to tick: UInt64) { lastTick = max(lastTick, tick) }

    /// Makes what was used before the saved ticks were known newer than all of them; done once, as ticks given out later are.
    mutating func raise(above tick: UInt64) {
        guard !isRaised else { return }
        isRaised = true
        for place in records.indices { records[place]?.tick &+= tick }
        lastTick &+= tick
    }

    /// Takes in what a look at the folder found.
    ///
    /// - Parameters:
    ///   - found: the entries there, each with the time it was stored at.
    ///   - saved: the index file's records; `nil` when those were taken in before. Then what is not known yet was stored by
    ///     another process since, and counts as new; otherwise it was stored before this process began.
    ///   - isExact: whether nothing was stored meanwhile, so that what was not found is not there.
    mutating func absorb(_ found: [(record: Record, time: Int64)], saved: [IndexRecord]?, isExact: Bool) {
        if isExact {
            let names = Set(found.map(\.record.name))
            for name in Array(places.keys) where !names.contains(name) { remove(name) }
        }
        var unknown = found.filter { places[$0.record.name] == nil }
        unknown.sort { $0.time < $1.time }
        guard let saved else {
            for entry in unknown { put(entry.record) }
            return
        }
        let ticks = Dictionary(saved.map { ($0.name, $0) }) { $0.tick > $1.tick ? $0 : $1 }
        var ordered: [(record: Record, tick: UInt64, isMarked: Bool)] = []
        var rest: [Record] = []
        for entry in unknown {
            if let tick = ticks[entry.record.name] {
                ordered.append((entry.record, tick.tick, tick.isMarked))
            } else {
                rest.append(entry.record)
            }
        }
        ordered.sort { $0.tick < $1.tick }
        let own = records.indices.compactMap { place in records[place].map { ($0, policy.isMarked(place)) } }
            .sorted { $0.0.tick < $1.0.tick }
        self = DiskIndex(order)
        for entry in ordered {
            // The tick is kept, since other processes' ticks are compared with it.
            lastTick = max(lastTick, entry.tick == 0 ? 0 : entry.tick - 1)
            put(entry.record)
            if entry.isMarked { mark(entry.record.name) }
        }
        for record in rest { put(record) }
        for (record, isMarked) in own {
            put(record)
            if isMarked { mark(record.name) }
        }
    }

    private mutating func mark(_ name: EntryName) { if let place = places[name] { policy.touch(place) } }
}

/// Numbers in an order, newest first, with neighbours found at once.
struct EntryChain: Sendable {
    private struct Link {
        var newer: Int?
        var older: Int?
        var isMember = false
    }

    private var links: [Link] = []
    private(set) var newest: Int?
    private(set) var oldest: Int?

    /// Whether a number is in it.
    func contains(_ entry: Int) -> Bool { links.indices.contains(entry) && links[entry].isMember }

    /// The next newer than one that is in it.
    func newer(than entry: Int) -> Int? { contains(entry) ? links[entry].newer : nil }

    /// Adds a number that is not in it, as the newest; negative ones are none.
    mutating func insert(_ entry: Int) {
        guard entry >= 0, !contains(entry) else { return }
        while links.count <= entry { links.append(Link()) }
        links[entry] = Link(newer: nil, older: newest, isMember: true)
        if let newest { links[newest].newer = entry }
        newest = entry
        if oldest == nil { oldest = entry }
    }

    /// Removes a number, if it is in it.
    mutating func remove(_ entry: Int) {
        guard contains(entry) else { return }
        let link = links[entry]
        if let newer = link.newer { links[newer].older = link.older } else { newest = link.older }
        if let older = link.older { links[older].newer = link.newer } else { oldest = link.newer }
        links[entry] = Link()
    }
}
