@testable import MartletPool

typealias StringPool = PoolMachine<String>

/// One second in nanoseconds, the unit of the pool's clock.
let poolSecond: UInt64 = 1_000_000_000

/// A pool for scenarios. Every event is checked against the invariants, and invalid results become `nil`.
final class PoolScene {
    var pool: StringPool
    var now: UInt64 = 1000 * poolSecond
    /// The violations after any event.
    var faults: [String] = []
    private var isDraining = false

    init(_ limits: PoolLimits = PoolLimits()) {
        pool = StringPool(limits: limits) { key, limits in limits.connectionsToHosts[key] }
    }

    private func checked<StreamedResponse>(_ answer: StreamedResponse) -> StreamedResponse {
        faults += pool.checkInvariants(isDraining: isDraining)
        return answer
    }

    func request(
        _ key: String = "a", _ priority: RequestPriority = .normal,
        order: QueueOrder = .firstComeFirstServed
    ) -> StringPool.Admission {
        checked(pool.request(key, priority: priority, order: order, now: now))
    }

    func setPriority(_ priority: RequestPriority, of waiter: PoolWaiterID) {
        checked(pool.setPriority(priority, of: waiter))
    }

    /// Takes an idle connection without queueing.
    func takeIdle(_ key: String = "a") -> PoolConnectionID? {
        checked(pool.takeIdle(key, now: now))
    }

    /// Requests a connection and returns the waiter's identifier.
    func wait(
        _ key: String = "a", _ priority: RequestPriority = .normal,
        order: QueueOrder = .firstComeFirstServed
    ) -> PoolWaiterID? {
        request(key, priority, order: order).waiter
    }

    /// Requests a connection, dials it and returns it in use.
    func open(_ key: String = "a") -> PoolConnectionID? {
        guard let dial = request(key).effects.dials.first else { return nil }
        return succeed(dial.connection).grant?.connection
    }

    func reject(_ connection: PoolConnectionID) -> StringPool.Admission {
        checked(pool.checkoutRejected(connection, now: now))
    }

    func cancel(_ waiter: PoolWaiterID) -> StringPool.Cancellation {
        checked(pool.cancel(waiter))
    }

    func succeed(_ connection: PoolConnectionID) -> StringPool.Effects {
        checked(pool.dialSucceeded(connection, now: now))
    }

    func fail(_ connection: PoolConnectionID) -> StringPool.Effects {
        checked(pool.dialFailed(connection))
    }

    func release(
        _ connection: PoolConnectionID, isReusable: Bool = true, keepAlive: UInt64? = nil
    ) -> StringPool.Effects {
        checked(pool.released(connection, isReusable: isReusable, keepAliveTimeout: keepAlive, now: now))
    }

    /// Returns a connection on which nothing was sent.
    func returnUnused(_ connection: PoolConnectionID) -> StringPool.Effects {
        checked(pool.released(connection, isReusable: true, isUnused: true, now: now))
    }

    func die(_ connection: PoolConnectionID) -> StringPool.Effects {
        checked(pool.connectionDied(connection))
    }

    func closeIdle(_ key: String) -> StringPool.Effects {
        checked(pool.closeIdle(key))
    }

    func expire() -> StringPool.Effects {
        checked(pool.expire(now: now))
    }

    func setLimits(_ limits: PoolLimits, isDraining: Bool = false) -> StringPool.Effects {
        self.isDraining = isDraining
        return checked(pool.setLimits(limits, now: now))
    }

    func shutdown() -> StringPool.Effects {
        checked(pool.shutdown())
    }
}
