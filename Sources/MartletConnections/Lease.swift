package import MartletTransport
import Synchronization

/// The right to use one connection, until it is given back; once.
///
/// A lease that is dropped closes its connection: what was not given back in order cannot be trusted to be in order.
///
/// Once given back, it looks after the connection while that idles: nothing else has to be made for it.
package final class Lease: IdleWatcher {
    /// The connection.
    package let connection: HTTP1Connection
    /// Whether it has carried an exchange before.
    package let isReused: Bool
    let id: PoolConnectionID
    let pool: ConnectionPool
    private let isReleased: Atomic<Bool>

    /// A lease.
    /// - Parameter isReleased: Whether nobody has the connection, which idles from its beginning.
    init(
        connection: HTTP1Connection, id: PoolConnectionID, isReused: Bool, pool: ConnectionPool,
        isReleased: Bool = false
    ) {
        self.isReleased = Atomic(isReleased)
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
    /// - Parameter now: The present instant, where it is known.
    package func release(isReusable: Bool, at now: MonotonicTime? = nil) {
        guard !isReleased.exchange(true, ordering: .relaxed) else { return }
        pool.release(self, isReusable: isReusable, at: now ?? MonotonicTime.now())
    }

    /// Stops counting the connection against the pool's limits, until it is given back at the latest.
    func exempt() {
        guard !isReleased.load(ordering: .relaxed) else { return }
        pool.exempt(id)
    }

    /// Counts the connection against the pool's limits again.
    func endExemption() {
        pool.endExemption(id)
    }

    /// Whether the connection is open, and has said nothing out of turn, at this moment: asks the kernel.
    package var isQuiet: Bool { connection.stream.probe() == .quiet }

    /// Gives up a connection on which nothing was begun, and which whoever has it does not want; its pool does the rest.
    func refuse() {
        isReleased.store(true, ordering: .relaxed)
    }

    /// Gives back a connection on which nothing was begun.
    package func returnUnused() {
        guard !isReleased.exchange(true, ordering: .relaxed) else { return }
        pool.returnUnused(self)
    }

    package func idleStreamStirred() {
        // The watch may have been set when somebody had it already: what he reads is his.
        guard pool.isIdle(id), connection.stream.probe() == .unusable else { return }
        pool.idleConnectionDied(id)
    }
}
