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
