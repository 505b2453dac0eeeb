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
        poolTimeout: Duration?, now: MonotonicTime
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

/// The clocks of one request that waits for a connection, and the timer that ends the wait.
///
/// While a connection is opened for the request, the connect clock runs; otherwise the pool clock does. Each time that this
/// changes, ``dialBegan(at:)`` or ``dialEnded(at:)`` says for when a timer is to be set, so that there is always one that
/// fires no later than the wait has to end. All functions are called under the pool's lock.
struct PoolWaiterClock: ~Copyable, Sendable {
    /// What a timer that fired means for the wait.
    enum Verdict: Equatable, Sendable {
        /// It is not over. The timer is to be set again for that instant; `nil` when there is another one, or no clock runs.
        case goOn(MonotonicTime?)
        /// Its clock ran out.
        case timedOut(ExchangeError.Clock)
    }

    /// How long opening a connection may take.
    let connectTimeout: Duration?
    /// When the request stops waiting for a connection to be free.
    private let poolDeadline: MonotonicTime
    /// When it stops waiting for a connection that is being opened, in nanoseconds of the monotonic clock.
    private let connectDeadline: Atomic<UInt64>
    /// When the next timer fires, in nanoseconds of the monotonic clock; may have passed.
    private let timer: Atomic<UInt64>

    /// Creates the clocks of a request that begins to wait.
    init(connectTimeout: Duration?, poolTimeout: Duration?, now: MonotonicTime) {
        self.connectTimeout = connectTimeout
        poolDeadline = now.deadline(after: poolTimeout)
        let connectDeadline = Self.connectDeadline(connectTimeout, from: now)
        self.connectDeadline = Atomic(connectDeadline.nanoseconds)
        timer = Atomic(min(poolDeadline, connectDeadline).nanoseconds)
    }

    /// When the first timer has to fire; `.distantFuture` for none.
    var firstTimer: MonotonicTime { MonotonicTime(nanoseconds: timer.load(ordering: .relaxed)) }

    /// Starts the connect clock: a connection is opened for the request from now on.
    /// - Returns: When a timer has to fire; `nil` where one is set that fires in time.
    func dialBegan(at now: MonotonicTime) -> MonotonicTime? {
        let deadline = Self.connectDeadline(connectTimeout, from: now)
        connectDeadline.store(deadline.nanoseconds, ordering: .relaxed)
        return timer(noLaterThan: deadline, now)
    }

    /// Stops the connect clock: no connection is opened for the request any more, and it waits for a free one.
    /// - Returns: When a timer has to fire; `nil` where one is set that fires in time.
    func dialEnded(at now: MonotonicTime) -> MonotonicTime? { timer(noLaterThan: poolDeadline, now) }

    /// Judges the wait when a timer has fired.
    func timerFired(isDialling: Bool, now: MonotonicTime) -> Verdict {
        let deadline = deadline(isDialling: isDialling)
        if now >= deadline { return .timedOut(isDialling ? .connect : .poolWait) }
        return .goOn(timer(noLaterThan: deadline, now))
    }

    /// When the wait has to end as things are.
    func deadline(isDialling: Bool) -> MonotonicTime {
        isDialling ? MonotonicTime(nanoseconds: connectDeadline.load(ordering: .relaxed)) : poolDeadline
    }

    private func timer(noLaterThan deadline: MonotonicTime, _ now: MonotonicTime) -> MonotonicTime? {
        let armed = timer.load(ordering: .relaxed)
        guard deadline != .distantFuture, armed <= now.nanoseconds || armed > deadline.nanoseconds else {
            return nil
        }
        timer.store(max(deadline, now).nanoseconds, ordering: .relaxed)
        return max(deadline, now)
    }

    /// The dial has the same deadline and knows more of what went wrong, so it is given the chance to say so first, on a
    /// busy machine too.
    private static func connectDeadline(_ timeout: Duration?, from now: MonotonicTime) -> MonotonicTime {
        now.deadline(after: timeout.map { min($0, .longest) + .seconds(1) })
    }
}

/// How many connections a pool has, by what they are doing, and how many requests wait for one.
public struct PoolStatus: Hashable, Sendable {
    /// Open and free.
    public var idle: Int
    /// In use.
    public var leased: Int
    /// Being opened.
    public var dialling: Int
    /// Requests that wait.
    public var waiting: Int
    /// Connections opened since the pool was made.
    public var opened: UInt64
    /// Exchanges that used a connection which had carried one before.
    public var reused: UInt64
}
