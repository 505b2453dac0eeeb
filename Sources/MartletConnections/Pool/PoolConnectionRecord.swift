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
