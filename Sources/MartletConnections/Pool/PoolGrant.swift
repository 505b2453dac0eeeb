/// A connection that goes to a request that waited for it.
package struct PoolGrant: Hashable, Sendable {
    /// The request, which waits no more.
    package let waiter: PoolWaiterID
    /// The connection, which the request now holds and has to release.
    package let connection: PoolConnectionID

    /// Creates a grant.
    package init(waiter: PoolWaiterID, connection: PoolConnectionID) {
        self.waiter = waiter
        self.connection = connection
    }
}
