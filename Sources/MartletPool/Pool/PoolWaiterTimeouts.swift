import MartletTransport

/// The timeouts of one request that waits for a connection, and the timer that ends the wait.
///
/// The connect timeout runs while a connection is opened for the request; otherwise the pool timeout runs. At each
/// change, ``dialBegan(at:)`` or ``dialEnded(at:)`` returns the time of a new timer, unless a set timer fires in time.
struct PoolWaiterTimeouts: Sendable {
    /// The consequence of a timer that fired.
    enum Decision: Equatable, Sendable {
        /// The wait continues. The timer is set again for that instant; `nil` if another timer suffices.
        case continueWaiting(MonotonicTime?)
        /// The timeout expired.
        case timedOut(ExchangeError.Timeout)
    }

    let connectTimeout: Duration?
    /// The end of the wait for a free connection.
    private let poolDeadline: MonotonicTime
    /// The end of the wait for a connection that is being opened.
    private var connectDeadline: MonotonicTime
    /// The time of the next timer, which may have passed. `.distantFuture` for none.
    private(set) var nextTimer: MonotonicTime

    /// Creates the timeouts of a request that starts to wait.
    init(connectTimeout: Duration?, poolTimeout: Duration?, now: MonotonicTime) {
        self.connectTimeout = connectTimeout
        poolDeadline = now.deadline(after: poolTimeout)
        connectDeadline = Self.connectDeadline(connectTimeout, from: now)
        nextTimer = min(poolDeadline, connectDeadline)
    }

    /// Starts the connect timeout: a connection is now being opened for the request.
    /// - Returns: The time of a new timer; `nil` if a set timer fires in time.
    mutating func dialBegan(at now: MonotonicTime) -> MonotonicTime? {
        connectDeadline = Self.connectDeadline(connectTimeout, from: now)
        return timer(noLaterThan: connectDeadline, now)
    }

    /// Stops the connect timeout: no connection is being opened for the request, and it waits for a free one.
    /// - Returns: The time of a new timer; `nil` if a set timer fires in time.
    mutating func dialEnded(at now: MonotonicTime) -> MonotonicTime? { timer(noLaterThan: poolDeadline, now) }

    /// Decides whether the wait continues when a timer has fired.
    mutating func timerFired(isDialing: Bool, now: MonotonicTime) -> Decision {
        let deadline = deadline(isDialing: isDialing)
        if now >= deadline { return .timedOut(isDialing ? .connect : .poolWait) }
        return .continueWaiting(timer(noLaterThan: deadline, now))
    }

    /// The end of the wait in the current state.
    func deadline(isDialing: Bool) -> MonotonicTime { isDialing ? connectDeadline : poolDeadline }

    private mutating func timer(noLaterThan deadline: MonotonicTime, _ now: MonotonicTime) -> MonotonicTime? {
        guard deadline != .distantFuture, nextTimer <= now || nextTimer > deadline else { return nil }
        nextTimer = max(deadline, now)
        return nextTimer
    }

    /// The deadline of the dial, plus a second: the error of the dial itself is more specific, and so comes first.
    private static func connectDeadline(_ timeout: Duration?, from now: MonotonicTime) -> MonotonicTime {
        now.deadline(after: timeout.map { min($0, .longest) + .seconds(1) })
    }
}
