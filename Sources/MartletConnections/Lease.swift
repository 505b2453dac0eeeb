import Synchronization

/// The right to use one connection, until it is given back; once.
///
/// A lease that is dropped closes its connection: what was not given back in order cannot be trusted to be in order.
package final class Lease: Sendable {
    /// The connection.
    package let connection: HTTP1Connection
    /// Whether it has carried an exchange before.
    package let isReused: Bool
    let id: PoolConnectionID
    private let pool: ConnectionPool
    private let isReleased = Atomic(false)

    init(connection: HTTP1Connection, id: PoolConnectionID, isReused: Bool, pool: ConnectionPool) {
        self.connection = connection
        self.id = id
        self.isReused = isReused
        self.pool = pool
    }

    deinit {
        release(isReusable: false)
    }

    /// Gives the connection back; the first call counts.
    /// - Parameter isReusable: Whether the exchange ended in order; the connection's own verdict counts besides.
    package func release(isReusable: Bool) {
        guard !isReleased.exchange(true, ordering: .relaxed) else { return }
        pool.release(connection, id: id, isReusable: isReusable)
    }

    /// Gives back a connection on which nothing was begun.
    func returnUnused() {
        guard !isReleased.exchange(true, ordering: .relaxed) else { return }
        pool.returnUnused(connection, id: id)
    }
}
