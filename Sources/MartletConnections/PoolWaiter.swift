import MartletTransport

/// A request that waits for a connection, and the clocks of its wait.
final class PoolWaiter: TimerTarget {
    /// Settled by the pool alone.
    let result = OneShot<Result<Lease, ExchangeError>>()
    let dialer: Dialer
    /// How long opening a connection for it may take.
    let connectTimeout: Duration?
    /// When it stops waiting for a connection to be free.
    let poolDeadline: MonotonicTime
    /// When it stops waiting for a connection that was being opened from the start.
    let connectDeadline: MonotonicTime
    let start: MonotonicTime
    private let id: PoolWaiterID
    private weak let pool: ConnectionPool?

    init(
        id: PoolWaiterID, pool: ConnectionPool, dialer: Dialer, connectTimeout: Duration?,
        poolTimeout: Duration?,
        now: MonotonicTime
    ) {
        self.id = id
        self.pool = pool
        self.dialer = dialer
        self.connectTimeout = connectTimeout
        start = now
        poolDeadline = now.deadline(after: poolTimeout)
        // The dial has the same deadline and knows more of what went wrong, so it is given the chance to say so first.
        connectDeadline = now.deadline(after: connectTimeout.map { $0 + .milliseconds(50) })
    }

    func timerFired(token: UInt64, now: MonotonicTime) -> MonotonicTime? {
        pool?.waiterTimerFired(id, now: now)
    }
}
