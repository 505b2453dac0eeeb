package import MartletTransport
package import MartletWire
import Synchronization

/// The connection pool of a session: a ``PoolMachine``, and the connections and requests that the machine decides
/// about. The pool has a lock and is not an actor, so that a connection can be returned synchronously, even in a
/// `deinit`. The lock is held only for the machine's decision; the effects are performed after it.
package final class ConnectionPool: TimerTarget {
    struct State {
        /// A queued request, with the timeouts of its wait.
        struct Waiting {
            let waiter: PoolWaiter
            var timeouts: PoolWaiterTimeouts
            /// Whether the long wait of the request was reported.
            var isReported = false
        }

        var machine: PoolMachine<ConnectionKey>
        /// The connections by the index of their identifiers.
        var connections: [HTTP1Connection?] = []
        /// The leases of the last exchanges on idle connections, by the same index, to be renewed.
        var idleLeases: [Lease?] = []
        var waiters: [PoolWaiterID: Waiting] = [:]
        /// Dials that have not started yet.
        var gate = DialThrottle<PendingDial>()
        var dials: [PoolConnectionID: Task<Void, Never>] = [:]
        /// Dials that were cancelled before their task was known.
        var abandoned: Set<PoolConnectionID> = []
        /// The time of the timer, on the pool's clock; `.max` if it is not set.
        var armed = UInt64.max
        var openedCount: UInt64 = 0
        var addresses = LostAddresses()
        var memory = MemoryTrimRule()
        /// The time of the last report of long waits.
        var longWaitsReported: MonotonicTime?

        /// Starts or stops the connect timeout of a waiting request.
        mutating func recordDialing(_ isDialing: Bool, _ id: PoolWaiterID, _ work: inout Work) {
            let now = MonotonicTime.now()
            let deadline =
                isDialing ? waiters[id]?.timeouts.dialBegan(at: now) : waiters[id]?.timeouts.dialEnded(at: now)
            if let deadline, let waiter = waiters[id]?.waiter { work.waiterTimers.append((waiter, deadline)) }
        }
    }

    let state: Mutex<State>
    /// The number of requests that were sent on open connections. Counted when a request is sent, outside of the lock:
    /// a connection that was acquired may be rejected or returned unused.
    let reusedCount = Atomic<UInt64>(0)
    let loop: EventLoop
    let wireLimits: WireLimits
    let onLongWait: (@Sendable ([LongWait]) -> Void)?
    private let alarm = PoolAlarm()
    private let trimmer: MemoryTrimmer

    /// Creates an empty pool.
    /// - Parameters:
    ///   - trimmer: Called when a burst of requests has ended.
    ///   - onLongWait: Called in a task of its own when requests have waited for ``longWait``, once for each.
    package init(
        limits: PoolLimits, wireLimits: WireLimits, loop: EventLoop, trimmer: MemoryTrimmer = .shared,
        onLongWait: (@Sendable ([LongWait]) -> Void)? = nil
    ) {
        (self.onLongWait, self.trimmer) = (onLongWait, trimmer)
        let machine = PoolMachine<ConnectionKey>(limits: limits) { key, limits in
            limits.connections(to: key.destination.host, port: key.destination.port)
        }
        state = Mutex(State(machine: machine))
        (self.loop, self.wireLimits) = (loop, wireLimits)
    }

    deinit {
        let connections = state.withLock { $0.connections }
        for connection in connections { connection?.stream.close() }
    }

    // MARK: Acquiring a connection

    /// Acquires a connection, or queues the request.
    /// - Parameters:
    ///   - destination: The server; or the proxy, if requests are sent to the proxy itself.
    ///   - dialer: Opens a new connection.
    ///   - proxy: The proxy that the connection leads through.
    ///   - rejected: An unusable connection that the request received after a wait. It is closed. The request gets
    ///     another idle connection, or returns to its position in the queue.
    /// - Returns: A connection, or a ticket to wait for one. In both cases the connection may have carried an exchange.
    /// - Throws: `.transport(.closed)` when the pool is shut down.
    package func acquire(
        _ destination: consuming Destination, by dialer: Dialer, through proxy: ProxyServer? = nil, _ request: Request,
        insteadOf rejected: Lease? = nil
    ) throws(ExchangeError) -> Acquisition {
        let key = ConnectionKey(destination: destination, dialer: dialer.number, proxy: proxy)
        if let rejected {
            rejected.reject()
            return try acquire(key, dialer, request, after: (rejected.id, rejected.connection))
        }
        // The common case in a busy session: an idle connection, and nothing else to do.
        var former: Lease?
        let candidate = state.withLock { state -> Candidate? in
            let id = state.machine.takeIdle(
                key, priority: request.priority, order: request.order, arrival: request.arrival, now: PoolClock.now())
            guard let id else { return nil }
            former = state.idleLeases[id.index].take()
            return state.candidate(id)
        }
        if let candidate, request.accepts(candidate.connection) { return lease(candidate, request, renewing: &former) }
        return try acquire(key, dialer, request, after: candidate)
    }

    /// Finds a connection for a request, or queues the request.
    /// - Parameter rejected: A connection that the request received but cannot use: it has ended or received
    ///   unsolicited bytes (RFC 9112 §9.3), or it is not new although the request needs a new one.
    @inline(never) private func acquire(
        _ key: ConnectionKey, _ dialer: Dialer, _ request: Request, after rejected: Candidate?
    ) throws(ExchangeError) -> Acquisition {
        var rejected = rejected
        while true {
            let (candidate, ticket, timer, work) = state.withLock {
                state -> (Candidate?, Ticket?, MonotonicTime?, Work?) in
                let now = PoolClock.now()
                let admission =
                    if let rejected { state.machine.checkoutRejected(rejected.id, now: now) } else {
                        state.machine.request(
                            key, priority: request.priority, order: request.order, arrival: request.arrival, now: now)
                    }
                let candidate = admission.lease.flatMap { state.candidate($0) }
                let (ticket, timer) = admission.waiter.map { enqueue($0, dialer, request, &state) } ?? (nil, nil)
                return (candidate, ticket, timer, collect(admission.effects, &state))
            }
            run(work)
            if let candidate {
                var former: Lease?
                if request.accepts(candidate.connection) { return lease(candidate, request, renewing: &former) }
                rejected = candidate
                continue
            }
            guard let ticket else { throw ExchangeError(cause: .transport(.closed), phase: .waiting, wasSent: false) }
            if let timer, timer != .distantFuture { loop.schedule(ticket.waiter, token: 0, at: timer) }
            if onLongWait != nil {
                loop.schedule(
                    ticket.waiter, token: PoolWaiter.longWaitToken,
                    at: ticket.waiter.start.advanced(by: ConnectionPool.longWait))
            }
            return .ticket(ticket)
        }
    }

    /// An idle connection that has not been checked yet.
    fileprivate typealias Candidate = (id: PoolConnectionID, connection: HTTP1Connection)

    /// - Parameter former: The lease of the last exchange. It is renewed to save an allocation, unless something else
    ///   still holds it, and could release it a second time.
    private func lease(_ candidate: Candidate, _ request: Request, renewing former: inout Lease?) -> Acquisition {
        if isKnownUniquelyReferenced(&former), let former {
            former.renew(isReused: !request.isFresh)
            return .lease(former)
        }
        return .lease(Lease(connection: candidate.connection, id: candidate.id, isReused: !request.isFresh, pool: self))
    }

    /// - Returns: The request's ticket, and the time of the first timer of its timeouts.
    private func enqueue(_ id: PoolWaiterID, _ dialer: Dialer, _ request: Request, _ state: inout State) -> (
        Ticket?, MonotonicTime?
    ) {
        let waiter = PoolWaiter(id: id, pool: self, dialer: dialer, start: request.waitStart)
        var timeouts = PoolWaiterTimeouts(
            connectTimeout: request.connectTimeout, poolTimeout: request.poolTimeout, now: waiter.start)
        // No effect reports a spare dial that was assigned to the request: its connect timeout starts here.
        if state.machine.isDialing(for: id) { _ = timeouts.dialBegan(at: MonotonicTime.now()) }
        state.waiters[id] = State.Waiting(waiter: waiter, timeouts: timeouts)
        let ticket = Ticket(
            id: id, waiter: waiter, pool: self, totalDeadline: request.totalDeadline,
            arrival: state.machine.arrival(of: id))
        return (ticket, timeouts.nextTimer)
    }

    // MARK: Releasing a connection

    func release(_ lease: Lease, isReusable: Bool, at now: MonotonicTime) {
        let (canReuse, keepAliveTimeout) = lease.connection.finishExchange(at: now)
        let isReusable = isReusable && canReuse && lease.connection.localAddressError == nil
        finish(lease, isReusable: isReusable, keepAliveTimeout: keepAliveTimeout)
    }

    func returnUnused(_ lease: Lease) {
        finish(lease, isReusable: lease.connection.localAddressError == nil, isUnused: true)
    }

    private func finish(_ lease: Lease, isReusable: Bool, isUnused: Bool = false, keepAliveTimeout: UInt64? = nil) {
        let (work, isReusable, isIdle, endsBurst) = state.withLock { state -> (Work?, Bool, Bool, Bool) in
            let counts = state.machine.counts
            let endsBurst = state.memory.isDue(inFlight: counts.leased + counts.waiting)
            // A waiter would get the connection without the check of an idle one, so it is checked now.
            let isReusable =
                isReusable && (state.machine.waitingCount == 0 || lease.connection.isQuiet(at: MonotonicTime.now()))
            let effects = state.machine.released(
                lease.id, isReusable: isReusable, isUnused: isUnused, keepAliveTimeout: keepAliveTimeout,
                now: PoolClock.now())
            let work = collect(effects, &state)
            let isIdle = isReusable && effects.grant == nil && state.connections[lease.id.index] === lease.connection
            if isIdle { state.idleLeases[lease.id.index] = lease }
            return (work, isReusable, isIdle, endsBurst)
        }
        if endsBurst { trimmer.schedule() }
        if !isReusable { lease.connection.stream.close() }
        run(work)
        // Observed, so that it is closed as soon as the server closes it, not at its next use. Lease and connection
        // retain each other until the connection is leased or closed, which ends the observation.
        if isIdle { lease.connection.stream.observeIdle(lease) }
    }

    // MARK: Waiting

    func cancel(_ id: PoolWaiterID) {
        let (waiter, work) = state.withLock { state -> (PoolWaiter?, Work?) in
            guard let effects = state.machine.cancelWaiter(id) else { return (nil, nil) }
            return (state.waiters.removeValue(forKey: id)?.waiter, collect(effects, &state))
        }
        waiter?.result.interrupt()
        run(work)
    }

    /// Ends the wait of a request whose timeout expired.
    /// - Returns: The time of the next call.
    func waiterTimerFired(_ id: PoolWaiterID, now: MonotonicTime) -> MonotonicTime? {
        let (next, waiter, error, work) = state.withLock {
            state -> (MonotonicTime?, PoolWaiter?, ExchangeError?, Work?) in
            let isDialing = state.machine.isDialing(for: id)
            let timeout: ExchangeError.Timeout
            switch state.waiters[id]?.timeouts.timerFired(isDialing: isDialing, now: now) {
            case nil: return (nil, nil, nil, nil)
            case .continueWaiting(let next): return (next, nil, nil, nil)
            case .timedOut(let expired): timeout = expired
            }
            let shortage = state.shortage(of: id)
            guard let effects = state.machine.cancelWaiter(id),
                let waiter = state.waiters.removeValue(forKey: id)?.waiter
            else { return (nil, nil, nil, nil) }
            let error = ExchangeError(
                cause: .timedOut(timeout), phase: isDialing ? .connecting : .waiting, wasSent: false,
                waited: now.since(waiter.start), shortage: shortage)
            return (nil, waiter, error, collect(effects, &state))
        }
        if let waiter, let error { waiter.result.fulfill(.failure(error)) }
        run(work)
        return next
    }

    // MARK: The whole pool

    /// Closes idle connections, cancels dials and fails waiting requests; connections in use close when they are
    /// returned. Further requests are rejected.
    package func shutDown() {
        perform { $0.machine.shutdown() }
        alarm.disarm()
    }

    /// Changes the limits while requests run.
    /// - Parameter limits: Returns the new limits. Called under the pool's lock, so that the last of concurrent changes
    ///   wins; it must not call the pool.
    package func setLimits(_ limits: () -> PoolLimits) {
        perform { $0.machine.setLimits(limits(), now: PoolClock.now()) }
    }

    /// Closes the idle connections of a key. Called when one of them was found dead: the others are probably dead, too.
    package func closeIdle(destination: Destination, dialer: Dialer, proxy: ProxyServer? = nil) {
        let key = ConnectionKey(destination: destination, dialer: dialer.number, proxy: proxy)
        perform { $0.machine.closeIdle(key) }
    }

    package func timerFired(token: UInt64, now: MonotonicTime) -> MonotonicTime? {
        perform { state in
            state.armed = .max
            return state.machine.expire(now: PoolClock.now())
        }
        return nil
    }

    package var limits: PoolLimits { state.withLock { $0.machine.limits } }

    package var snapshot: PoolStatus {
        state.withLock { state in
            let counts = state.machine.counts
            return PoolStatus(
                idle: counts.idle, leased: counts.leased, dialing: counts.dialing, waiting: counts.waiting,
                opened: state.openedCount, reused: reusedCount.load(ordering: .relaxed))
        }
    }

    /// The counts of each host with a connection or a waiting request. Takes time in proportion to their number.
    package var hostCounts: [ConnectionKey: PoolCounts] { state.withLock { $0.machine.hostCounts } }

    // MARK: Effects

    /// The actions to perform after the lock is released.
    struct Work {
        var grant: (waiter: PoolWaiter, lease: Lease)?
        var failures: [(PoolWaiter, ExchangeError)] = []
        var closes: [HTTP1Connection] = []
        var dials: [PendingDial] = []
        var abandons: [Task<Void, Never>] = []
        var waiterTimers: [(PoolWaiter, MonotonicTime)] = []
        var timer: MonotonicTime?
    }

    func perform(_ event: (inout State) -> PoolMachine<ConnectionKey>.Effects) {
        run(state.withLock { state in collect(event(&state), &state) })
    }

    /// Looks up the objects for the machine's identifiers, under the lock.
    func collect(
        _ effects: PoolMachine<ConnectionKey>.Effects, _ state: inout State, isFresh: Bool = false,
        failure: ExchangeError? = nil
    ) -> Work? {
        if effects.isEmpty, state.gate.waitingCount == 0 { return timer(&state).map { Work(timer: $0) } }
        var work = Work()
        if let grant = effects.grant, let connection = state.connections[grant.connection.index],
            let waiter = state.waiters.removeValue(forKey: grant.waiter)?.waiter
        {
            let lease = Lease(connection: connection, id: grant.connection, isReused: !isFresh, pool: self)
            work.grant = (waiter, lease)
        }
        for order in effects.orders {
            switch order {
            case .fail(let id):
                guard let waiter = state.waiters.removeValue(forKey: id)?.waiter else { continue }
                let closed = ExchangeError(cause: .transport(.closed), phase: .waiting, wasSent: false)
                work.failures.append((waiter, failure ?? closed))
            case .close(let id):
                guard id.index < state.connections.count else { continue }
                if let connection = state.connections[id.index].take() { work.closes.append(connection) }
                state.idleLeases[id.index] = nil
            case .dial(let dial):
                // The pool does not store dialers: the request that the dial is made for provides one.
                guard let id = state.machine.waiter(of: dial.connection), let waiting = state.waiters[id] else {
                    continue
                }
                state.recordDialing(true, id, &work)
                let pending = PendingDial(id: dial.connection, key: dial.key, dialer: waiting.waiter.dialer)
                if let dial = state.gate.admit(pending.id, pending, now: PoolClock.now()) {
                    work.dials.append(state.beginning(dial))
                }
            case .dialAssignmentChanged(let id): state.recordDialing(state.machine.isDialing(for: id), id, &work)
            case .abandon(let id):
                if let task = state.dials[id] {
                    work.abandons.append(task)
                } else {
                    state.abandoned.insert(id)
                    // A queued dial is started and cancelled, so that its end is reported like that of other dials.
                    if let dial = state.gate.withdraw(id) { work.dials.append(dial) }
                }
            }
        }
        if state.gate.waitingCount > 0 {
            for dial in state.gate.next(now: PoolClock.now()) { work.dials.append(state.beginning(dial)) }
        }
        work.timer = timer(&state)
        return work
    }

    /// The new time of the pool's timer; `nil` if it need not be set.
    private func timer(_ state: inout State) -> MonotonicTime? {
        let deadline = min(state.machine.nextDeadline ?? .max, state.gate.nextDeadline ?? .max)
        guard deadline < state.armed else { return nil }
        state.armed = deadline
        return MonotonicTime.now().advanced(by: PoolClock.until(deadline))
    }

    /// Performs the actions, outside of the lock.
    func run(_ work: Work?) {
        guard let work else { return }
        for connection in work.closes { connection.stream.close() }
        for task in work.abandons { task.cancel() }
        if let (waiter, lease) = work.grant, !waiter.result.fulfill(.success(lease)) {
            // The wait has just ended, so nothing was written on the connection.
            lease.returnUnused()
        }
        for (waiter, error) in work.failures { waiter.result.fulfill(.failure(error)) }
        for (waiter, deadline) in work.waiterTimers { loop.schedule(waiter, token: 0, at: deadline) }
        for dial in work.dials { begin(dial) }
        if let timer = work.timer { alarm.set(for: self, at: timer) }
    }
}

extension ConnectionPool.State {
    fileprivate func candidate(_ id: PoolConnectionID) -> ConnectionPool.Candidate? {
        connections[id.index].map { (id, $0) }
    }
}

/// The key by which connections are pooled: their destination, proxy and dialer. The dialer identifies everything else
/// that must not be mixed: TLS identity and trust, resolver and overrides, local address, unix domain socket.
package struct ConnectionKey: Hashable, Sendable {
    /// The server, or the proxy that forwards the requests.
    package var destination: Destination
    package var dialer: UInt64
    /// The proxy that the connection leads through, with its credentials and trust; `nil` for none.
    package var proxy: ProxyServer?

    /// Hashes the parts, and the proxy only if there is one, so that it costs nothing for direct connections.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(destination)
        hasher.combine(dialer)
        if let proxy { hasher.combine(proxy) }
    }
}

/// The number of connections of a pool by state, and of the requests that wait for one.
public struct PoolStatus: Hashable, Sendable {
    /// Open connections without a request.
    public var idle: Int
    /// Connections in use by a request.
    public var leased: Int
    /// Connections that are being opened.
    public var dialing: Int
    /// Requests that wait for a connection.
    public var waiting: Int
    /// Connections that were opened since the pool was created.
    public var opened: UInt64
    /// The number of times that a request was sent on an open connection, since the pool was created.
    public var reused: UInt64
}

/// The timer of a pool. The event loop retains the timer until it fires, and the timer retains the pool while it is
/// set. Shutting down the pool disarms the timer, so that the pool is freed before the timer fires. A weak reference
/// would make each retain and release of the pool slow.
private final class PoolAlarm: TimerTarget {
    /// The pool, while the alarm is set.
    private let pool = Mutex<ConnectionPool?>(nil)

    func set(for pool: ConnectionPool, at deadline: MonotonicTime) {
        self.pool.withLock { $0 = pool }
        pool.loop.schedule(self, token: 0, at: deadline, isRetained: true)
    }

    func disarm() {
        // Outside of the lock, because this may release the last reference to the pool.
        _ = pool.withLock { $0.take() }
    }

    func timerFired(token: UInt64, now: MonotonicTime) -> MonotonicTime? {
        let pool = pool.withLock { $0.take() }
        return pool?.timerFired(token: token, now: now)
    }
}

/// The clock of the machine. It runs while the computer is suspended, so that idle connections age during that time.
enum PoolClock {
    /// Nanoseconds since the computer was started.
    static func now() -> UInt64 { MonotonicTime.sinceBoot().nanoseconds }

    /// The time until an instant of this clock.
    static func until(_ instant: UInt64) -> Duration {
        let now = now()
        return .nanoseconds(Int64(clamping: instant > now ? instant - now : 0))
    }
}
