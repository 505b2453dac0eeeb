/// What the pool knows of one host that has connections or waiting requests.
struct PoolHostRecord<Key: Hashable & Sendable>: Sendable {
    /// The waiting requests of one priority, first come first.
    struct Line: Sendable {
        /// The first waiter, or none.
        var first = PoolIndex.none
        /// The last waiter, or none.
        var last = PoolIndex.none
    }

    /// How many priorities there are.
    static var levelCount: Int { 5 }

    /// The host's key; `nil` once the host is forgotten.
    var key: Key?
    /// The waiting requests by the raw value of their priority.
    var lines = InlineArray<5, Line>(repeating: Line())
    /// How many requests wait.
    var waiting = 0
    /// How many of the waiting requests have no dial made for them.
    var uncovered = 0
    /// How many connections are being made.
    var dialling = 0
    /// How many connections are idle.
    var idle = 0
    /// How many connections are in use.
    var leased = 0
    /// The idle connection used last.
    var newestIdle = PoolIndex.none
    /// The idle connection used first.
    var oldestIdle = PoolIndex.none
    /// The top of the stack of dials that are made for nobody any more, but were not given up.
    var spareDial = PoolIndex.none
    /// Where the host is in the heap of hosts that wait for the total limit, or none.
    var heapPosition = PoolIndex.none
    /// While in that heap: the rank of its first waiter without a dial.
    var demand = PoolRank(due: 0, behind: 0, sequence: 0)

    /// All connections that count against the host's limit.
    var open: Int { dialling + idle + leased }
}
