import MartletTransport
import Synchronization

/// A request that waits for a connection.
final class PoolWaiter: TimerTarget {
    /// Settled by the pool alone.
    let result = OneShot<Result<Lease, ExchangeError>>()
    let dialer: Dialer
    /// The clocks of its wait, which the pool's lock guards.
    let clock: PoolWaiterClock
    let start: MonotonicTime
    /// Whether its long wait was reported.
    let isReported = Atomic(false)
    private let id: PoolWaiterID
    private let pool: ConnectionPool

    init(
        id: PoolWaiterID, pool: ConnectionPool, dialer: Dialer, connectTimeout: Duration?,
        poolTimeout: Duration?,
        now: MonotonicTime
    ) {
        self.id = id
        self.pool = pool
        self.dialer = dialer
        start = now
        clock = PoolWaiterClock(connectTimeout: connectTimeout, poolTimeout: poolTimeout, now: now)
    }

    /// The token of the timer that reports a long wait; 0 is that of the deadlines.
    static let longWaitToken: UInt64 = 1

    func timerFired(token: UInt64, now: MonotonicTime) -> MonotonicTime? {
        token == PoolWaiter.longWaitToken
            ? pool.longWaitTimerFired(id, now: now) : pool.waiterTimerFired(id, now: now)
    }
}
