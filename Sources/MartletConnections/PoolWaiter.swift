import MartletTransport
import Synchronization

/// A request that waits for a connection, and the clocks of its wait.
final class PoolWaiter: TimerTarget {
    /// Settled by the pool alone.
    let result = OneShot<Result<Lease, ExchangeError>>()
    let dialer: Dialer
    /// How long opening a connection for it may take.
    let connectTimeout: Duration?
    /// When it stops waiting for a connection to be free.
    let poolDeadline: MonotonicTime
    /// When it stops waiting for a connection that is being opened: counted from the start of the dial, else of the wait.
    var connectDeadline: MonotonicTime { MonotonicTime(nanoseconds: connectLimit.load(ordering: .relaxed)) }
    /// Written by the pool under its lock.
    private let connectLimit: Atomic<UInt64>
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
        self.connectTimeout = connectTimeout
        start = now
        poolDeadline = now.deadline(after: poolTimeout)
        connectLimit = Atomic(PoolWaiter.limit(of: connectTimeout, from: now))
    }

    /// Notes that a connection is being opened for it: what it waited in the line does not count against that.
    func dialBegan(at now: MonotonicTime) {
        connectLimit.store(PoolWaiter.limit(of: connectTimeout, from: now), ordering: .relaxed)
    }

    /// The dial has the same deadline and knows more of what went wrong, so it is given the chance to say so first, on a
    /// busy machine too.
    private static func limit(of timeout: Duration?, from now: MonotonicTime) -> UInt64 {
        now.deadline(after: timeout.map { min($0, .longest) + .seconds(1) }).nanoseconds
    }

    /// The token of the timer that reports a long wait; 0 is that of the deadlines.
    static let longWaitToken: UInt64 = 1

    func timerFired(token: UInt64, now: MonotonicTime) -> MonotonicTime? {
        token == PoolWaiter.longWaitToken
            ? pool.longWaitTimerFired(id, now: now) : pool.waiterTimerFired(id, now: now)
    }
}
