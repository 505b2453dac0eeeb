/// What the pool knows of one connection.
struct PoolConnectionRecord: Sendable {
    /// What a connection is doing.
    enum State: UInt8, Sendable {
        /// It is being made. Leaves by success (to a request or idle) or failure (gone).
        case dialling
        /// It waits for a request, linked into its host's stack and the list of all idle ones.
        case idle
        /// A request holds it. Leaves by release or a refused check-out.
        case leased
        /// It is closed; its place in the table is vacant.
        case gone
    }

    /// What the connection is doing.
    var state: State
    /// The place of its host.
    var host: Int
    /// While dialling the waiter it is made for, while leased the waiter it was granted to; or none.
    var waiter = PoolIndex.none
    /// While dialling: `waiter` did not cause the dial but took it over from a request that needs it no more.
    var isAdopted = false
    /// While dialling: the shell was told to give it up, and has not yet reported its end.
    var isAbandoned = false
    /// While leased: whether it does not count against the limits, see `exempt`.
    var isExempt = false
    /// While leased or dialling: the request that has a place above the limits because this connection is held, or none.
    var borrower = PoolIndex.none
    /// How many requests have held it.
    var uses = 0
    /// When it was made.
    var openedAt: UInt64 = 0
    /// While idle: since when.
    var idleSince: UInt64 = 0
    /// When the server closes it, less the margin; `UInt64.max` when the server said nothing.
    var serverDeadline = UInt64.max
    /// While idle: from when on it must not be used.
    var deadline = UInt64.max
    /// While leased: the place of the request that holds it.
    var place = PoolPlace(arrival: 0, sequence: 0, priority: .normal)

    /// While idle: the next one that became idle before it, of any host.
    var older = PoolIndex.none
    /// While idle: the next one that became idle after it, of any host.
    var newer = PoolIndex.none
    /// The one below it in its host's stack of idle connections, or of dials without a waiter.
    var below = PoolIndex.none
    /// The one above it in its host's stack of idle connections, or of dials without a waiter.
    var above = PoolIndex.none
}

/// What the pool knows of one host that has connections or waiting requests.
struct PoolHostRecord<Key: Hashable & Sendable>: Sendable {
    /// The host's key; `nil` once the host is forgotten.
    var key: Key?
    /// The most connections to it, at least 1.
    var limit: Int
    /// The requests that wait.
    var line = PoolLine(.all)
    /// Those of them for whom no dial is made.
    var uncoveredLine = PoolLine(.uncovered)
    /// How many connections are being made.
    var dialling = 0
    /// How many connections are idle.
    var idle = 0
    /// How many connections are in use.
    var leased = 0
    /// How many connections do not count against the limits: exempt ones, and places lent to requests.
    var exempt = 0
    /// The idle connection used last.
    var newestIdle = PoolIndex.none
    /// The idle connection used first.
    var oldestIdle = PoolIndex.none
    /// The top of the stack of dials that are made for nobody any more, but were not given up.
    var spareDial = PoolIndex.none
    /// Where the host is in the heap of hosts that wait for the total limit, or none.
    var heapPosition = PoolIndex.none
    /// While in that heap: the rank of its first waiter without a dial.
    var demand = PoolRank(due: 0, behind: 0, turn: 0)

    /// How many requests wait.
    var waiting: Int { line.count }
    /// How many of them have no dial made for them.
    var uncovered: Int { uncoveredLine.count }

    /// All connections to the host.
    var open: Int { dialling + idle + leased }
    /// Those that count against the host's limit.
    var counted: Int { open - exempt }
}

/// What the pool knows of one request that had to wait.
struct PoolWaiterRecord: Sendable {
    /// Its place in the order.
    var place: PoolPlace
    /// The place of its host.
    var host: Int
    /// The dial that is made for it, or none.
    var dial = PoolIndex.none
    /// The connection it was granted; none while it waits.
    var connection = PoolIndex.none
    /// The connections of the calls that the request was made in, the outermost first; see `nest`.
    var holders: [PoolConnectionID] = []
    /// The holder that lends it a place above the limits, or none; also while it has a connection.
    var lender = PoolIndex.none
    /// Where it stands in each ``PoolLine`` of its host, by the line's role; none where it does not.
    var positions = InlineArray<2, Int>(repeating: PoolIndex.none)
}

/// The name of one connection of a pool, from the decision to dial it to the decision to close it.
package typealias PoolConnectionID = PoolID<PoolConnectionName>

/// The name of one request that waits for a connection; valid while the request waits and while it holds the connection
/// it was granted.
package typealias PoolWaiterID = PoolID<PoolWaiterName>

/// The name of a record in one of a pool's tables.
///
/// Issued by ``PoolMachine``. A place is used again after its record is gone, but never with the same generation, so an
/// event that comes too late cannot hit a foreign record.
package struct PoolID<Named: PoolNamed>: Hashable, Sendable, CustomStringConvertible {
    /// How often the place had been used before.
    package let generation: UInt32
    private let place: UInt32

    /// Names the record in a place of a table.
    init(index: Int, generation: UInt32) {
        self.place = UInt32(truncatingIfNeeded: index)
        self.generation = generation
    }

    /// The place of the record in the pool's table, from 0; small and dense, fit for an array index.
    package var index: Int { Int(place) }

    /// For example `connection 3.0`: place 3, used for the first time.
    package var description: String { "\(Named.word) \(index).\(generation)" }
}

/// A kind of record that has names.
package protocol PoolNamed {
    /// The word for it in descriptions.
    static var word: String { get }
}

/// The connections of a pool, as far as names go.
package enum PoolConnectionName: PoolNamed { package static var word: String { "connection" } }

/// The waiting requests of a pool, as far as names go.
package enum PoolWaiterName: PoolNamed { package static var word: String { "waiter" } }

/// What the links between the pool's records are made of: places in a ``PoolTable``.
enum PoolIndex {
    /// The link that leads nowhere.
    static let none = -1
}

/// A table whose places are used again, each time with a new generation.
///
/// Insertion, removal and access take constant time and, once the table has grown, no memory.
struct PoolTable<Record: Sendable>: Sendable {
    /// The records by place; a vacant place holds what its last owner left.
    var records: [Record] = []
    /// By place, how often it had been used before.
    private(set) var generations: [UInt32] = []
    private var vacant: [Int] = []

    /// The number of places in use.
    var count: Int { records.count - vacant.count }

    /// Puts `record` into a vacant or a new place, and returns the place.
    mutating func insert(_ record: Record) -> Int {
        if let index = vacant.popLast() {
            records[index] = record
            return index
        }
        records.append(record)
        generations.append(0)
        return records.count - 1
    }

    /// Makes a place vacant. Names with its generation are void from now on.
    mutating func remove(_ index: Int) {
        generations[index] &+= 1
        vacant.append(index)
    }

    /// Whether a name is that of a place in use. A vacant place has a generation that was not issued yet.
    func holds(_ index: Int, _ generation: UInt32) -> Bool {
        index >= 0 && index < generations.count && generations[index] == generation
    }
}

/// The place of a request among all others: when it came and how urgent it is.
///
/// It stays with the request while that holds a connection, so that a request whose connection turns out to be dead
/// gets its old place back.
struct PoolPlace: Sendable {
    /// When the request came, in nanoseconds of the pool's clock.
    var arrival: UInt64
    /// The number of the request, from 0; settles the order of requests that came at one instant.
    var sequence: UInt64
    /// How urgent the request is.
    var priority: RequestPriority
    /// Whether it goes before or behind its equals.
    var order = WaitingOrder.firstComeFirstServed
    /// Whether calls that hold connections wait for the request: it is served before all others.
    var isNested = false

    /// The place as a value that can be compared; the smallest is served first.
    ///
    /// A request gains one level per `ageing` nanoseconds, so at any time t its level is
    /// `priority + (t - arrival) / ageing`. Whether one such level is above another does not depend on t: ordering by
    /// arrival plus one `ageing` for each level below the highest is the same, and never has to be done again.
    ///
    /// A request that goes before its equals counts as having come with all others of its ageing interval, and as the
    /// first of them; thereby it is never ahead of one that has waited an interval longer.
    func rank(ageing: UInt64) -> PoolRank {
        if isNested { return PoolRank(due: 0, behind: 0, turn: sequence) }
        let behind = UInt64(RequestPriority.highest.rawValue - priority.rawValue)
        let (delay, tooLong) = behind.multipliedReportingOverflow(by: ageing)
        let isLastFirst = order == .lastComeFirstServed && ageing > 0
        let begin = isLastFirst ? arrival - arrival % ageing : arrival
        let (due, tooLate) = begin.addingReportingOverflow(delay)
        return PoolRank(
            due: tooLong || tooLate ? .max : due, behind: behind,
            turn: isLastFirst ? .max - sequence : sequence)
    }
}
