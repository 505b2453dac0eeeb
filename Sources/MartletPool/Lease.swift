package import MartletTransport
import Synchronization

extension ConnectionPool {
    /// The parameters of an acquisition other than the destination: numbers, which are cheap to copy.
    package struct Request: Sendable {
        /// The urgency, which orders waiting requests.
        package var priority: RequestPriority
        /// The order among waiting requests of equal urgency.
        package var order: QueueOrder
        /// The maximum wait for a connection to be free; `nil` for no limit.
        package var poolTimeout: Duration?
        /// The maximum time to open a connection; `nil` for no limit.
        package var connectTimeout: Duration?
        /// The end of the total timeout.
        package var totalDeadline: MonotonicTime
        /// The time at which the connection is requested.
        package var start: MonotonicTime
        /// Whether only a new connection is accepted, because a reused one failed under this request.
        package var isFresh: Bool
        /// The ``Ticket/arrival`` of a request that returns to its position in the queue; `nil` for a new request.
        package var arrival: UInt64?
        /// The time that the request has already waited, counted towards the pool timeout.
        package var waited = Duration.zero
        /// Whether the socket of a reused connection is always checked, because the request must not be sent twice.
        package var alwaysChecksSocket: Bool

        package init(
            priority: RequestPriority = .normal, order: QueueOrder = .firstComeFirstServed,
            poolTimeout: Duration? = nil, connectTimeout: Duration? = nil,
            totalDeadline: MonotonicTime = .distantFuture, start: MonotonicTime = MonotonicTime.now(),
            isFresh: Bool = false, alwaysChecksSocket: Bool = false
        ) {
            (self.isFresh, self.alwaysChecksSocket, self.start) = (isFresh, alwaysChecksSocket, start)
            (self.priority, self.order, self.poolTimeout) = (priority, order, poolTimeout)
            (self.connectTimeout, self.totalDeadline) = (connectTimeout, totalDeadline)
        }

        /// The time from which the pool timeout runs: ``start``, less the time that the request has already waited.
        var waitStart: MonotonicTime { waited == .zero ? start : start.advanced(by: .zero - waited) }

        /// Whether a reused connection can be used for the request.
        func accepts(_ connection: HTTP1Connection) -> Bool {
            !(isFresh && connection.hasCarriedExchange)
                && connection.isQuiet(at: start, alwaysChecksSocket: alwaysChecksSocket)
        }
    }

    package enum Acquisition: Sendable {
        case lease(Lease)
        /// A position in the queue.
        case ticket(Ticket)
    }

    /// A position in the queue for a connection.
    package struct Ticket: Sendable {
        let id: PoolWaiterID
        let waiter: PoolWaiter
        let pool: ConnectionPool
        let totalDeadline: MonotonicTime
        /// The arrival of the request, on the pool's clock. With it, the request can return to its position.
        package let arrival: UInt64?

        /// Leaves the queue: ``lease()`` throws. Any thread may call it, any number of times.
        package func cancel() { pool.cancel(id) }

        /// Changes the urgency of the request. Any thread may call it at any time.
        package func setPriority(_ priority: RequestPriority) {
            pool.state.withLock { $0.machine.setPriority(priority, of: id) }
        }

        /// Records that running calls made the request, for example in the closure of a stream or in a resolver. The
        /// request does not wait for the connections that those calls hold.
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

        /// Leaves the queue after the total timeout. Not inlined, so that the frame of the wait stays small.
        @inline(never) private func timedOut() -> ExchangeError {
            let (isDialing, shortage) = pool.state.withLock { ($0.machine.isDialing(for: id), $0.shortage(of: id)) }
            // A connection that is granted now is too late, and is returned to the pool.
            pool.cancel(id)
            return ExchangeError(
                cause: .timedOut(.total), phase: isDialing ? .connecting : .waiting, wasSent: false,
                waited: MonotonicTime.now().since(waiter.start), shortage: shortage)
        }
    }
}

final class PoolWaiter: TimerTarget {
    /// The result, delivered by the pool only.
    let result = OneShot<Result<Lease, ExchangeError>>()
    let dialer: Dialer
    let start: MonotonicTime
    private let id: PoolWaiterID
    private let pool: ConnectionPool

    init(id: PoolWaiterID, pool: ConnectionPool, dialer: Dialer, start: MonotonicTime) {
        (self.id, self.pool, self.dialer, self.start) = (id, pool, dialer, start)
    }

    /// The token of the timer that reports a long wait; token 0 belongs to the deadlines.
    static let longWaitToken: UInt64 = 1

    func timerFired(token: UInt64, now: MonotonicTime) -> MonotonicTime? {
        token == PoolWaiter.longWaitToken ? pool.longWaitTimerFired(id, now: now) : pool.waiterTimerFired(id, now: now)
    }
}

/// The right to use a connection for one exchange. Deallocation without release closes the connection, whose state is
/// then unknown. After the release, the lease also serves as the observer of the idle connection.
package final class Lease: IdleStreamObserver {
    package let connection: HTTP1Connection
    /// Whether the connection was already open: it was idle, or another request released it.
    package var isReused: Bool { reused.load(ordering: .relaxed) }
    let id: PoolConnectionID
    let pool: ConnectionPool
    private let isReleased: Atomic<Bool>
    private let reused: Atomic<Bool>

    /// - Parameter isReleased: Whether the connection is idle and unused from the start.
    init(
        connection: HTTP1Connection, id: PoolConnectionID, isReused: Bool, pool: ConnectionPool,
        isReleased: Bool = false
    ) {
        self.isReleased = Atomic(isReleased)
        reused = Atomic(isReused)
        (self.connection, self.id, self.pool) = (connection, id, pool)
    }

    deinit { release(isReusable: false) }

    /// Makes a released lease valid again, for the next exchange on its connection. Nothing else may hold the lease.
    func renew(isReused: Bool) {
        reused.store(isReused, ordering: .relaxed)
        isReleased.store(false, ordering: .relaxed)
    }

    /// Returns the connection to the pool. Only the first call has an effect.
    /// - Parameters:
    ///   - isReusable: Whether the exchange permits reuse; the state of the connection must permit it as well.
    ///   - now: The current time; `nil` to read the clock.
    package func release(isReusable: Bool, at now: MonotonicTime? = nil) {
        guard !isReleased.exchange(true, ordering: .relaxed) else { return }
        pool.release(self, isReusable: isReusable, at: now ?? MonotonicTime.now())
    }

    /// Returns a connection that was not used.
    package func returnUnused() {
        guard !isReleased.exchange(true, ordering: .relaxed) else { return }
        pool.returnUnused(self)
    }

    /// Marks the lease as released without returning the connection, which the pool then closes.
    func reject() { isReleased.store(true, ordering: .relaxed) }

    /// Whether the connection is open and has received no unsolicited bytes. Queries the kernel.
    package var isQuiet: Bool { connection.stream.probe() == .quiet }

    package func idleStreamBecameReadable() {
        // The observation may start after the connection was leased again: the bytes then belong to its new holder.
        guard pool.state.withLock({ $0.machine.isIdle(id) }), connection.stream.probe() == .unusable else { return }
        pool.perform { $0.machine.connectionDied(id) }
    }

    /// Stops counting the connection against the pool's limits, until ``endExemption()`` or its return.
    fileprivate func exempt() { if !isReleased.load(ordering: .relaxed) { pool.perform { $0.machine.exempt(id) } } }

    /// Counts the connection against the pool's limits again.
    fileprivate func endExemption() { pool.state.withLock { $0.machine.endExemption(id) } }
}

/// The exemption of a connection from its pool's limits while the call that holds it waits for user code. That code may
/// make calls to the same host, or wait for other calls that do. The exemption begins after a grace period, so that the
/// pool does not open connections above its limits for code that returns immediately.
package final class Exemption: TimerTarget {
    /// The grace period, after which the connection no longer counts.
    package static let grace = Duration.milliseconds(20)

    private enum State { case pending, exempt, ended }

    private let lease: Lease
    /// Shared by the loop's thread and the call that ends the exemption.
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
        // The call may have ended the exemption before the pool started it.
        if state.withLock({ $0 == .ended }) { lease.endExemption() }
        return nil
    }

    /// Ends the exemption. Only the first call has an effect.
    package func end() {
        let wasExempt = state.withLock { state in
            defer { state = .ended }
            return state == .exempt
        }
        if wasExempt { lease.endExemption() }
    }
}
