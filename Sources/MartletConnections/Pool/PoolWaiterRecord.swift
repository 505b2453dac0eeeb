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
