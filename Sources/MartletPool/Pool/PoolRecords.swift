struct PoolConnectionRecord: Sendable {
    /// The state of a connection. The first four are states of a dial.
    enum State: UInt8, Sendable {
        /// Being opened for the request that caused the dial.
        case dialing
        /// Being opened for a request that adopted the dial of another request.
        case adopted
        /// Being opened without a request: the connection will be idle, or serve a request that arrives in time.
        case spare
        /// Being cancelled: the machine's owner has to cancel the dial, and has not reported its end yet.
        case abandoned
        /// Waiting for a request, in the lists of its host and of the pool.
        case idle
        /// Held by a request.
        case leased
        /// Closed; the connection's slot in the table is vacant.
        case gone

        var isDialing: Bool { rawValue <= State.abandoned.rawValue }
    }

    var state = State.dialing
    /// The index of its host.
    var host: Int
    /// The waiter that the dial is made for, or that the leased connection was granted to; or none.
    var waiter = PoolIndex.none
    /// Whether a leased connection does not count against the limits; see ``PoolMachine/exempt(_:)``.
    var isExempt = false
    /// The waiter that borrows a slot above the limits from this connection, which is leased or being opened; or none.
    var borrower = PoolIndex.none
    /// The number of requests that have held the connection.
    var uses = 0
    var openedAt: UInt64 = 0
    /// The time at which it became idle.
    var idleSince: UInt64 = 0
    /// The time at which the server closes it, less the margin; `UInt64.max` if it is not known.
    var serverDeadline = UInt64.max
    /// The time at which the idle connection must be closed.
    var deadline = UInt64.max
    /// The position of the request that holds it, while leased.
    var place = PoolWaiterPosition(arrival: 0, sequence: 0, priority: .normal)
    /// Its neighbors in each ``PoolList``.
    var links = InlineArray<2, PoolList.Links>(repeating: PoolList.Links())
}

/// The record of a host that has connections or waiting requests.
struct PoolHostRecord<Key: Hashable & Sendable>: Sendable {
    /// The host's key; `nil` once the host is removed.
    var key: Key?
    /// The maximum number of connections to it, at least 1.
    var limit: Int
    /// The waiting requests.
    var queue = PoolHeap()
    /// The waiting requests without a dial.
    var waitersWithoutDial = PoolHeap()
    var idle = PoolList()
    /// The dials without a request that were not abandoned.
    var spareDials: [Int] = []
    var dialing = 0
    /// The number of all connections: dialing, idle and leased.
    var open = 0
    /// The number of connections that do not count against the limits: exempt ones, and slots lent to requests.
    var exempt = 0

    /// The number of connections that count against the host's limit.
    var counted: Int { open - exempt }

    var counts: PoolCounts {
        PoolCounts(leased: open - dialing - idle.count, idle: idle.count, dialing: dialing, waiting: queue.count)
    }
}

/// The record of a request that had to wait.
struct PoolWaiterRecord: Sendable {
    enum State: Sendable {
        /// The request waits, and no connection is opened for it.
        case withoutDial
        /// The request waits, and this connection is opened for it.
        case withDial(Int)
        /// The request holds this connection.
        case granted(Int)
    }

    var place: PoolWaiterPosition
    /// The index of its host.
    var host: Int
    var state = State.withoutDial
    /// The connections of the calls that made the request, the outermost first; see ``PoolMachine/nest(_:in:)``. Some
    /// of them lend the request a slot above the limits, even after the request has a connection.
    var holders: [PoolConnectionID] = []

    var isWithoutDial: Bool { if case .withoutDial = state { true } else { false } }

    /// The dial that is made for it.
    var dial: Int? { if case .withDial(let dial) = state { dial } else { nil } }

    /// The connection that it holds.
    var connection: Int? { if case .granted(let connection) = state { connection } else { nil } }
}

/// The identifier of a connection, from the decision to dial it to the decision to close it.
typealias PoolConnectionID = PoolID<HTTP1Connection>

/// The identifier of a waiting request; also valid while the request holds the connection that it was granted.
typealias PoolWaiterID = PoolID<ConnectionPool.Ticket>

/// The identifier of a record in a ``PoolTable``: its slot, and a generation that distinguishes the records of a slot.
struct PoolID<Named>: Hashable, Sendable {
    /// The number of times that the slot was used before.
    let generation: UInt32
    private let slot: UInt32

    init(index: Int, generation: UInt32) {
        slot = UInt32(truncatingIfNeeded: index)
        self.generation = generation
    }

    /// The slot of the record, from 0; small and dense, and so usable as an array index.
    var index: Int { Int(slot) }
}

/// The links between records: slots in a ``PoolTable``.
enum PoolIndex {
    /// The link to no record.
    static let none = -1
}

/// A table whose slots are reused, each time with a new generation. Insertion, removal and access take constant time,
/// and do not allocate once the table has grown.
struct PoolTable<Record: Sendable, Named>: Sendable {
    /// The records by slot; a vacant slot holds its last record.
    var records: [Record] = []
    /// The number of times that each slot was used before. The generation of a vacant slot was not issued yet.
    private var generations: [UInt32] = []
    private var vacant: [Int] = []

    /// The number of slots in use.
    var count: Int { records.count - vacant.count }

    /// Adds a record, and returns its slot.
    mutating func insert(_ record: Record) -> Int {
        if let index = vacant.popLast() {
            records[index] = record
            return index
        }
        records.append(record)
        generations.append(0)
        return records.count - 1
    }

    /// Makes a slot vacant. The identifier of its record becomes invalid.
    mutating func remove(_ index: Int) {
        generations[index] &+= 1
        vacant.append(index)
    }

    func name(_ index: Int) -> PoolID<Named> { PoolID(index: index, generation: generations[index]) }

    /// The slot of a record; `nil` if the record was removed.
    func index(of name: PoolID<Named>) -> Int? {
        name.index < generations.count && generations[name.index] == name.generation ? name.index : nil
    }
}

/// A list of connections ordered by the start of their idle time, linked through their records.
struct PoolList: Sendable {
    /// The list's index in ``PoolConnectionRecord/links``.
    enum Scope: Int { case host, pool }

    /// The neighbors of a connection in one list, or none.
    struct Links: Sendable {
        var older = PoolIndex.none
        var newer = PoolIndex.none
    }

    typealias Table = PoolTable<PoolConnectionRecord, HTTP1Connection>

    private(set) var oldest = PoolIndex.none
    private(set) var newest = PoolIndex.none
    private(set) var count = 0

    /// All connections, the oldest first.
    func indices(_ scope: Scope, _ table: Table) -> [Int] {
        var indices: [Int] = []
        var index = oldest
        while index != PoolIndex.none {
            indices.append(index)
            index = table.records[index].links[scope.rawValue].newer
        }
        return indices
    }

    @inline(__always) mutating func append(_ index: Int, _ scope: Scope, _ table: inout Table) {
        table.records[index].links[scope.rawValue] = Links(older: newest)
        if newest == PoolIndex.none {
            oldest = index
        } else {
            table.records[newest].links[scope.rawValue].newer = index
        }
        newest = index
        count += 1
    }

    @inline(__always) mutating func remove(_ index: Int, _ scope: Scope, _ table: inout Table) {
        let links = table.records[index].links[scope.rawValue]
        if links.older == PoolIndex.none {
            oldest = links.newer
        } else {
            table.records[links.older].links[scope.rawValue].newer = links.newer
        }
        if links.newer == PoolIndex.none {
            newest = links.older
        } else {
            table.records[links.newer].links[scope.rawValue].older = links.older
        }
        count -= 1
    }
}

/// A binary heap of indexes by rank, the smallest on top. A separate array holds the position of each index, so that it
/// is found when it leaves or its rank changes. Heaps that never hold the same index share the array.
struct PoolHeap: Sendable {
    typealias Entry = (rank: PoolRank, index: Int)

    private(set) var entries: [Entry] = []

    var count: Int { entries.count }

    var first: Entry? { entries.first }

    /// Adds an index, or changes its rank.
    mutating func set(_ index: Int, _ rank: PoolRank, _ positions: inout [Int]) {
        while positions.count <= index { positions.append(PoolIndex.none) }
        if positions[index] == PoolIndex.none {
            positions[index] = entries.count
            entries.append((rank, index))
        } else {
            entries[positions[index]].rank = rank
        }
        settle(positions[index], &positions)
    }

    /// Removes an index. Does nothing if it is not in the heap.
    mutating func remove(_ index: Int, _ positions: inout [Int]) {
        guard index < positions.count, positions[index] != PoolIndex.none else { return }
        let position = positions[index]
        positions[index] = PoolIndex.none
        let moved = entries.removeLast()
        guard position < entries.count else { return }
        entries[position] = moved
        positions[moved.index] = position
        settle(position, &positions)
    }

    /// Moves an entry up or down to the position of its rank.
    private mutating func settle(_ start: Int, _ positions: inout [Int]) {
        var position = start
        while position > 0, entries[position].rank < entries[(position - 1) / 2].rank {
            exchange(position, (position - 1) / 2, &positions)
            position = (position - 1) / 2
        }
        while true {
            var first = position
            let child = 2 * position + 1
            if child < entries.count, entries[child].rank < entries[first].rank { first = child }
            if child + 1 < entries.count, entries[child + 1].rank < entries[first].rank { first = child + 1 }
            guard first != position else { return }
            exchange(position, first, &positions)
            position = first
        }
    }

    private mutating func exchange(_ left: Int, _ right: Int, _ positions: inout [Int]) {
        entries.swapAt(left, right)
        positions[entries[left].index] = left
        positions[entries[right].index] = right
    }
}

/// The position of a request among all others. It is stored while the request holds a connection, so that the request
/// returns to this position if the connection is dead.
struct PoolWaiterPosition: Sendable {
    /// The arrival time of the request, in nanoseconds of the pool's clock.
    var arrival: UInt64
    /// The number of the request, from 0. It orders requests that arrived at the same time.
    var sequence: UInt64
    var priority: RequestPriority
    var order = QueueOrder.firstComeFirstServed
    /// The number of calls around the request that hold connections while they wait for it. Such a request is served
    /// before all others, the innermost first.
    var depth: UInt8 = 0

    /// The position as a comparable value; the smallest is served first.
    ///
    /// A request gains one level per `aging` nanoseconds: at a time t its level is `priority + (t - arrival) / aging`.
    /// The order of such levels does not depend on t. So it is the order of `arrival` plus one `aging` for each level
    /// below the highest, which has to be computed only once.
    ///
    /// A request of ``QueueOrder/lastComeFirstServed`` counts as if it had arrived at the start of its aging interval.
    /// So it is never ahead of one that has waited an interval longer.
    func rank(aging: UInt64) -> PoolRank {
        // The depth is in the highest byte, so that it comes before the order of arrival.
        if depth > 0 { return PoolRank(due: 0, lag: 0, turn: UInt64(UInt8.max - depth) << 56 | sequence) }
        let lag = UInt64(RequestPriority.highest.rawValue - priority.rawValue)
        let (delay, tooLong) = lag.multipliedReportingOverflow(by: aging)
        let isLastFirst = order == .lastComeFirstServed && aging > 0
        let begin = isLastFirst ? arrival - arrival % aging : arrival
        let (due, tooLate) = begin.addingReportingOverflow(delay)
        return PoolRank(
            due: tooLong || tooLate ? .max : due, lag: lag, turn: isLastFirst ? .max - sequence : sequence)
    }
}

/// The rank of a waiting request; the smallest is served first.
struct PoolRank: Comparable, Sendable {
    /// The arrival of the request, plus one aging interval for each level below the highest priority.
    var due: UInt64
    /// The number of levels below the highest priority.
    var lag: UInt64
    /// The number of the request; subtracted from the maximum for last come, first served.
    var turn: UInt64

    /// Orders by due time, then by priority, then by turn.
    static func < (left: PoolRank, right: PoolRank) -> Bool {
        (left.due, left.lag, left.turn) < (right.due, right.lag, right.turn)
    }
}
