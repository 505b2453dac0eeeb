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
    /// The waiter of the same priority before it.
    var previous = PoolIndex.none
    /// The waiter of the same priority behind it.
    var next = PoolIndex.none
}
