package import MartletTransport
import Synchronization

extension ConnectionPool {
    /// The parameters of an acquisition beside the destination: numbers, which cost nothing to pass on.
    package struct Request: Sendable {
        /// The urgency, which orders waiting requests.
        package var priority: RequestPriority
        /// The order among waiting requests of equal urgency.
        package var order: QueueOrder
        /// The maximum wait for a connection to be free; `nil` for no limit.
        package var poolTimeout: Duration?
        /// The maximum time to open a connection; `nil` for no limit.
        package var connectTimeout: Duration?
        /// The end of the total clock.
        package var totalDeadline: MonotonicTime
        /// The present instant.
        package var start: MonotonicTime
        /// Whether a connection that has carried an exchange is not accepted: one has died under the request.
        package var isFresh: Bool
        /// The first ``Ticket/arrival`` of a request that left the line and gets its place back; `nil` for now.
        package var arrival: UInt64?
        /// The time that it has waited before, by the pool clock.
        package var waited = Duration.zero
        /// Whether the socket of a kept connection is always checked before use, as the request may not be sent twice.
        package var mustLook: Bool

        package init(
            priority: RequestPriority = .normal, order: QueueOrder = .firstComeFirstServed,
            poolTimeout: Duration? = nil, connectTimeout: Duration? = nil,
            totalDeadline: MonotonicTime = .distantFuture, start: MonotonicTime = MonotonicTime.now(),
            isFresh: Bool = false, mustLook: Bool = false
        ) {
            self.isFresh = isFresh
            self.mustLook = mustLook
            self.start = start
            self.priority = priority
            self.order = order
            self.poolTimeout = poolTimeout
            self.connectTimeout = connectTimeout
            self.totalDeadline = totalDeadline
        }

        /// The time at which its wait would have begun without interruption.
        var waitStart: MonotonicTime { waited == .zero ? start : start.advanced(by: .zero - waited) }

        /// Whether a kept connection is fit for the request.
        func accepts(_ connection: HTTP1Connection) -> Bool {
            !(isFresh && connection.hasCarriedExchange) && connection.isQuiet(at: start, mustLook: mustLook)
        }
    }

    package enum Acquisition: Sendable {
        case lease(Lease)
        /// A place in the line.
        case ticket(Ticket)
    }

    /// A place in the line for a connection.
    package struct Ticket: Sendable {
        let id: PoolWaiterID
        let waiter: PoolWaiter
        let pool: ConnectionPool
        let totalDeadline: MonotonicTime
        /// The arrival of the request, on the pool's clock: with it, a request that gave up its place gets it back.
        package let arrival: UInt64?

        /// Gives the place up; the wait throws. Any thread may call it, any number of times.
        package func cancel() { pool.cancel(id) }

        /// Changes the urgency of the request. Any thread may call it, at any time.
        package func setPriority(_ priority: RequestPriority) {
            pool.state.withLock { $0.machine.setPriority(priority, of: id) }
        }

        /// Notes that the request was made by calls that run, such as a request in the closure of a stream, or while a
        /// connection is opened, such as one of a resolver. It does not wait for the connections they hold.
        /// - Parameter exchanges: The exchanges of those calls, the outermost first.
        package func nest(in exchanges: [Exchange]) {
            let dials = ConnectionPool.enclosingDials.filter { $0.pool == ObjectIdentifier(pool) }.map(\.id)
            let holders = dials + exchanges.filter { $0.lease.pool === pool && !$0.isFinished }.map(\.lease.id)
            if !holders.isEmpty { pool.perform { $0.machine.nest(id, in: holders) } }
        }

        package func lease() async throws(ExchangeError) -> Lease {
            switch await waiter.result.wait(until: totalDeadline, on: pool.loop) {
            case .value(.success(let lease)): return lease
            case .value(.failure(let error)): throw error
            case .timedOut: throw timedOut()
            case .interrupted: throw ExchangeError(cause: .cancelled, phase: .waiting, wasSent: false)
            }
        }

        /// Leaves the line when the total clock has run out. Not inlined, so that waiting takes no room for it.
        @inline(never) private func timedOut() -> ExchangeError {
            let (isDialling, shortage) = pool.state.withLock { ($0.machine.isDialling(for: id), $0.shortage(of: id)) }
            // A connection granted in this very moment finds the place settled and goes back by itself.
            pool.cancel(id)
            return ExchangeError(
                cause: .timedOut(.total), phase: isDialling ? .connecting : .waiting, wasSent: false,
                waited: MonotonicTime.now().since(waiter.start), shortage: shortage)
        }
    }
}

final class PoolWaiter: TimerTarget {
    /// The result, settled by the pool alone.
    let result = OneShot<Result<Lease, ExchangeError>>()
    let dialer: Dialer
    let start: MonotonicTime
    private let id: PoolWaiterID
    private let pool: ConnectionPool

    init(id: PoolWaiterID, pool: ConnectionPool, dialer: Dialer, start: MonotonicTime) {
        self.id = id
        self.pool = pool
        self.dialer = dialer
        self.start = start
    }

    /// The token of the timer that reports a long wait; 0 is that of the deadlines.
    static let longWaitToken: UInt64 = 1

    func timerFired(token: UInt64, now: MonotonicTime) -> MonotonicTime? {
        token == PoolWaiter.longWaitToken ? pool.longWaitTimerFired(id, now: now) : pool.waiterTimerFired(id, now: now)
    }
}

/// The clocks of one request that waits for a connection, and the timer that ends the wait.
///
/// While a connection is opened for the request, the connect clock runs; otherwise the pool clock does. Each time that
/// this changes, ``dialBegan(at:)`` or ``dialEnded(at:)`` says for when a timer is to be set, so that there is always
/// one that fires no later than the wait has to end.
struct PoolWaiterClock: Sendable {
    /// The consequence of a timer that fired.
    enum Verdict: Equatable, Sendable {
        /// The wait continues. The timer is set again for that instant; `nil` if another is set, or no clock runs.
        case goOn(MonotonicTime?)
        /// The clock ran out.
        case timedOut(ExchangeError.Clock)
    }

    let connectTimeout: Duration?
    /// The end of the wait for a free connection.
    private let poolDeadline: MonotonicTime
    /// The end of the wait for a connection that is being opened.
    private var connectDeadline: MonotonicTime
    /// The time of the first timer, `.distantFuture` for none; later that of the next one, which may have passed.
    private(set) var firstTimer: MonotonicTime

    /// Creates the clocks of a request that begins to wait.
    init(connectTimeout: Duration?, poolTimeout: Duration?, now: MonotonicTime) {
        self.connectTimeout = connectTimeout
        poolDeadline = now.deadline(after: poolTimeout)
        connectDeadline = Self.connectDeadline(connectTimeout, from: now)
        firstTimer = min(poolDeadline, connectDeadline)
    }

    /// Starts the connect clock: a connection is opened for the request from now on.
    /// - Returns: The time of a new timer; `nil` if one is set that fires in time.
    mutating func dialBegan(at now: MonotonicTime) -> MonotonicTime? {
        connectDeadline = Self.connectDeadline(connectTimeout, from: now)
        return timer(noLaterThan: connectDeadline, now)
    }

    /// Stops the connect clock: no connection is opened for the request any more, and it waits for a free one.
    /// - Returns: The time of a new timer; `nil` if one is set that fires in time.
    mutating func dialEnded(at now: MonotonicTime) -> MonotonicTime? { timer(noLaterThan: poolDeadline, now) }

    /// Judges the wait when a timer has fired.
    mutating func timerFired(isDialling: Bool, now: MonotonicTime) -> Verdict {
        let deadline = deadline(isDialling: isDialling)
        if now >= deadline { return .timedOut(isDialling ? .connect : .poolWait) }
        return .goOn(timer(noLaterThan: deadline, now))
    }

    /// The end of the wait as things are.
    func deadline(isDialling: Bool) -> MonotonicTime { isDialling ? connectDeadline : poolDeadline }

    private mutating func timer(noLaterThan deadline: MonotonicTime, _ now: MonotonicTime) -> MonotonicTime? {
        guard deadline != .distantFuture, firstTimer <= now || firstTimer > deadline else { return nil }
        firstTimer = max(deadline, now)
        return firstTimer
    }

    /// A second after the deadline of the dial, which knows more of the failure and so should report it first.
    private static func connectDeadline(_ timeout: Duration?, from now: MonotonicTime) -> MonotonicTime {
        now.deadline(after: timeout.map { min($0, .longest) + .seconds(1) })
    }
}

/// The right to use one connection, until it is given back; once. A lease that is dropped closes its connection: one
/// that was not given back in order cannot be trusted to be in order. Once given back, it watches the connection while
/// that idles: nothing else has to be made for it.
package final class Lease: IdleStreamObserver {
    package let connection: HTTP1Connection
    /// Whether it has carried an exchange before.
    package let isReused: Bool
    let id: PoolConnectionID
    let pool: ConnectionPool
    private let isReleased: Atomic<Bool>

    /// - Parameter isReleased: Whether the connection idles, unused, from its beginning.
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

    deinit { release(isReusable: false) }

    /// Gives the connection back; the first call counts.
    /// - Parameters:
    ///   - isReusable: Whether the exchange ended in order; the connection decides as well.
    ///   - now: The present instant, if it is known.
    package func release(isReusable: Bool, at now: MonotonicTime? = nil) {
        guard !isReleased.exchange(true, ordering: .relaxed) else { return }
        pool.release(self, isReusable: isReusable, at: now ?? MonotonicTime.now())
    }

    /// Gives back a connection on which nothing was begun.
    package func returnUnused() {
        guard !isReleased.exchange(true, ordering: .relaxed) else { return }
        pool.returnUnused(self)
    }

    /// Gives up a connection that its holder does not want, and on which nothing was begun; its pool does the rest.
    func refuse() { isReleased.store(true, ordering: .relaxed) }

    /// Whether the connection is open, and has received nothing unsolicited, at this moment: queries the kernel.
    package var isQuiet: Bool { connection.stream.probe() == .quiet }

    package func idleStreamBecameReadable() {
        // The watch may have been set after the connection was leased again: what is read then is the holder's.
        guard pool.state.withLock({ $0.machine.isIdle(id) }), connection.stream.probe() == .unusable else { return }
        pool.perform { $0.machine.connectionDied(id) }
    }

    /// Stops counting the connection against the pool's limits, until it is given back at the latest.
    fileprivate func exempt() { if !isReleased.load(ordering: .relaxed) { pool.perform { $0.machine.exempt(id) } } }

    /// Counts the connection against the pool's limits again.
    fileprivate func endExemption() { pool.state.withLock { $0.machine.endExemption(id) } }
}

/// Keeps a connection out of its pool's limits while the call that holds it waits for code of the program. That code
/// may make calls to the same host, or wait for other calls that do. The exemption begins after a grace period, so that
/// code which returns immediately does not make the pool open connections above its limits.
package final class Exemption: TimerTarget {
    /// The time after which the connection no longer counts.
    package static let grace = Duration.milliseconds(20)

    private enum State { case pending, exempt, ended }

    private let lease: Lease
    /// Guards the state: the loop's thread, and the call that ends the exemption.
    private let state = Mutex(State.pending)

    init(_ lease: Lease, loop: EventLoop) {
        self.lease = lease
        loop.schedule(self, token: 0, at: MonotonicTime.now().advanced(by: Exemption.grace))
    }

    package func timerFired(token: UInt64, now: MonotonicTime) -> MonotonicTime? {
        let begins = state.withLock { state in
            guard state == .pending else { return false }
            state = .exempt
            return true
        }
        guard begins else { return nil }
        lease.exempt()
        // The call may have ended the exemption before the pool began it.
        if state.withLock({ $0 == .ended }) { lease.endExemption() }
        return nil
    }

    /// Ends the exemption. Only the first call counts.
    package func end() {
        let wasExempt = state.withLock { state in
            defer { state = .ended }
            return state == .exempt
        }
        if wasExempt { lease.endExemption() }
    }
}
