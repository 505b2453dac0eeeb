package import MartletTransport
package import MartletWire
import Synchronization

/// The connections of a session: a ``PoolMachine`` that decides, and here what it decides about.
///
/// A lock and not an actor, so that giving a connection back is synchronous: it needs no task, cannot be cancelled, and
/// works in a `deinit`. The lock is held for the machine's decision alone; connections are opened, closed and handed over
/// after it is given up.
package final class ConnectionPool: TimerTarget {
    /// What the lock guards.
    struct State {
        var machine: PoolMachine<ConnectionKey>
        /// By the index of their names.
        var connections: [HTTP1Connection?] = []
        var waiters: [PoolWaiterID: PoolWaiter] = [:]
        /// Dials that have not begun yet.
        var gate = DialGate<PendingDial>()
        var dials: [PoolConnectionID: Task<Void, Never>] = [:]
        /// Dials that were given up before their task was known.
        var abandoned: Set<PoolConnectionID> = []
        /// What the timer is armed for, on the pool's clock.
        var armed = UInt64.max
        var reusedCount: UInt64 = 0
        var openedCount: UInt64 = 0
        var addresses = AddressLoss()
        /// When long waits were reported last.
        var longWaitsReported: MonotonicTime?

        /// A dial as it begins, with the time that the request it is made for has for it.
        mutating func beginning(_ dial: PendingDial) -> PendingDial {
            var dial = dial
            let waiter = machine.waiter(of: dial.id).flatMap { waiters[$0] }
            // What the dial waited at the gate does not count. The timer that is set may fire before that, and is set again.
            _ = waiter?.clock.dialBegan(at: MonotonicTime.now())
            dial.timeout = waiter.map { $0.clock.connectTimeout } ?? .seconds(10)
            return dial
        }

        /// A dial has ended.
        mutating func forgetDial(_ id: PoolConnectionID) {
            dials[id] = nil
            abandoned.remove(id)
            gate.ended(id)
        }
    }

    let state: Mutex<State>
    let loop: EventLoop
    let alarm = PoolAlarm()
    let onLongWait: (@Sendable ([LongWait]) -> Void)?
    private let wireLimits: WireLimits

    /// An empty pool.
    /// - Parameter onLongWait: Called when requests have waited for ``longWait``, once for each request, on a task of its own.
    package init(
        limits: PoolLimits, wireLimits: WireLimits, loop: EventLoop,
        onLongWait: (@Sendable ([LongWait]) -> Void)? = nil
    ) {
        self.onLongWait = onLongWait
        let machine = PoolMachine<ConnectionKey>(limits: limits) { key, limits in
            limits.connections(to: key.destination.host, port: key.destination.port)
        }
        state = Mutex(State(machine: machine))
        self.loop = loop
        self.wireLimits = wireLimits
    }

    deinit {
        let connections = state.withLock { $0.connections }
        for connection in connections { connection?.stream.close() }
    }

    // MARK: Taking a connection

    /// Asks for a connection.
    /// - Parameters:
    ///   - destination: Where to.
    ///   - dialer: How a connection is opened.
    ///   - proxy: The proxy it leads through; where requests are handed to the proxy itself, the destination is the
    ///     proxy's.
    ///   - request: What else the pool needs to know.
    /// - Returns: A connection, or a place in the line for one, which may have carried an exchange whatever was asked for.
    /// - Throws: `.transport(.closed)` when the pool is shut down.
    package func acquire(
        _ destination: consuming Destination, by dialer: Dialer, through proxy: ProxyServer? = nil,
        _ request: Request
    ) throws(ExchangeError) -> Acquisition {
        let key = ConnectionKey(destination: destination, dialer: dialer.number, proxy: proxy)
        // Nearly every request of a busy session: an idle connection, and nothing else to do.
        let candidate = request.isFresh || request.arrival != nil ? nil : idleConnection(key, request)
        if let (id, connection) = candidate, request.accepts(connection) {
            return .lease(Lease(connection: connection, id: id, isReused: true, pool: self))
        }
        return try acquire(key, dialer, request, after: candidate)
    }

    /// Asks for another connection than one that was waited for, which is closed. The request keeps its place in the line, and
    /// the connection that is opened in place of that one is its own.
    /// - Throws: `.transport(.closed)` when the pool is shut down.
    package func acquire(
        _ destination: consuming Destination, by dialer: Dialer, through proxy: ProxyServer? = nil,
        _ request: Request, insteadOf lease: Lease
    ) throws(ExchangeError) -> Acquisition {
        let key = ConnectionKey(destination: destination, dialer: dialer.number, proxy: proxy)
        lease.refuse()
        return try acquire(key, dialer, request, after: (lease.id, lease.connection))
    }

    /// The idle connection that a request gets where there is a good one.
    private func idleConnection(_ key: ConnectionKey, _ request: Request) -> Candidate? {
        state.withLock { state in
            guard
                let id = state.machine.takeIdle(
                    key, priority: request.priority, order: request.order, now: PoolClock.now()),
                let connection = state.connections[id.index]
            else { return nil }
            state.reusedCount += 1
            return (id, connection)
        }
    }

    /// Finds a request a connection, or its place in the line.
    /// - Parameter refused: The one that it was given and that had ended, or spoken out of turn, while nobody looked
    ///   (RFC 9112 §9.3): the next one, please.
    @inline(never)
    private func acquire(
        _ key: ConnectionKey, _ dialer: Dialer, _ request: Request, after refused: Candidate?
    ) throws(ExchangeError) -> Acquisition {
        var refused = refused
        while true {
            let decision = state.withLock { state in
                let admission =
                    if let refused {
                        state.machine.checkoutRefused(refused.id, now: PoolClock.now())
                    } else {
                        state.machine.request(
                            key, priority: request.priority, order: request.order,
                            arrival: request.arrival, now: PoolClock.now())
                    }
                return note(admission, dialer, request, &state)
            }
            run(decision.work)
            if let (id, connection) = decision.candidate {
                if !(request.isFresh && connection.hasCarriedExchange), request.accepts(connection) {
                    // One that was opened for another, and has carried nothing, is what is wanted.
                    return .lease(
                        Lease(connection: connection, id: id, isReused: !request.isFresh, pool: self))
                }
                refused = decision.candidate
                continue
            }
            guard let ticket = decision.ticket else {
                throw ExchangeError(cause: .transport(.closed), phase: .waiting, wasSent: false)
            }
            if decision.timer != .distantFuture { loop.schedule(ticket.waiter, token: 0, at: decision.timer) }
            if onLongWait != nil {
                loop.schedule(
                    ticket.waiter, token: PoolWaiter.longWaitToken,
                    at: ticket.waiter.start.advanced(by: ConnectionPool.longWait))
            }
            return .ticket(ticket)
        }
    }

    /// A connection that lay idle, and is not looked at yet.
    private typealias Candidate = (id: PoolConnectionID, connection: HTTP1Connection)

    private struct Decision {
        var candidate: Candidate?
        var ticket: Ticket?
        /// When the timer of the one that waits fires first.
        var timer = MonotonicTime.distantFuture
        var work: Work?
    }

    /// What is left to do when the lock is given up.
    struct Work {
        var grants: [(PoolWaiter, Lease)] = []
        var failures: [(PoolWaiter, ExchangeError)] = []
        var closes: [HTTP1Connection] = []
        var dials: [PendingDial] = []
        var abandons: [Task<Void, Never>] = []
        var waiterTimers: [(PoolWaiter, MonotonicTime)] = []
        var timer: MonotonicTime?
    }

    /// A connection that is to be opened.
    struct PendingDial {
        var id: PoolConnectionID
        var key: ConnectionKey
        var dialer: Dialer
        /// How long it may take, from its beginning; `nil` for ever.
        var timeout: Duration?
    }

    private func note(
        _ admission: PoolMachine<ConnectionKey>.Admission, _ dialer: Dialer, _ request: Request,
        _ state: inout State
    ) -> Decision {
        var decision = Decision()
        if let id = admission.lease, let connection = state.connections[id.index] {
            state.reusedCount += 1
            decision.candidate = (id, connection)
        }
        if let id = admission.waiter {
            let waiter = PoolWaiter(
                id: id, pool: self, dialer: dialer, connectTimeout: request.connectTimeout,
                poolTimeout: request.poolTimeout, now: request.waitStart)
            state.waiters[id] = waiter
            // Another request's dial serves it: that begins for it now, and not when it first asked.
            if state.machine.isDialling(for: id) { _ = waiter.clock.dialBegan(at: MonotonicTime.now()) }
            decision.timer = waiter.clock.firstTimer
            decision.ticket = Ticket(
                id: id, waiter: waiter, pool: self, totalDeadline: request.totalDeadline,
                arrival: state.machine.arrival(of: id))
        }
        decision.work = collect(admission.effects, &state)
        return decision
    }

    // MARK: Giving it back

    func release(_ lease: Lease, isReusable: Bool, at now: MonotonicTime) {
        let verdict = lease.connection.conclude(at: now)
        let isReusable = isReusable && verdict.isReusable && lease.connection.lossOfAddress == nil
        finish(lease, isReusable: isReusable, keepAliveTimeout: verdict.keepAliveTimeout)
    }

    func returnUnused(_ lease: Lease) { finish(lease, isReusable: true, keepAliveTimeout: nil) }

    private func finish(_ lease: Lease, isReusable: Bool, keepAliveTimeout: UInt64?) {
        let (work, isReusable, isIdle) = state.withLock { state -> (Work?, Bool, Bool) in
            // Whoever is in the line may get it at once, without the look that an idle one is taken out with.
            let isReusable =
                isReusable
                && (state.machine.waitingCount == 0 || lease.connection.isQuiet(at: MonotonicTime.now()))
            let effects = state.machine.released(
                lease.id, isReusable: isReusable, keepAliveTimeout: keepAliveTimeout, now: PoolClock.now())
            let work = collect(effects, &state)
            let isIdle =
                isReusable && effects.grant == nil && state.connections[lease.id.index] === lease.connection
            return (work, isReusable, isIdle)
        }
        if !isReusable { lease.connection.stream.close() }
        run(work)
        // One that its server closes is closed here at once, not at its next use. Lease and connection refer to each other
        // only while it idles: taking it out, and closing it, end the watch.
        if isIdle { lease.connection.stream.watchWhileIdle(lease) }
    }

    /// Whether nobody has a connection, which is open.
    func isIdle(_ id: PoolConnectionID) -> Bool { state.withLock { $0.machine.isIdle(id) } }

    /// Forgets an idle connection that its server has closed, or that has spoken out of turn.
    func idleConnectionDied(_ id: PoolConnectionID) {
        let work = state.withLock { state in collect(state.machine.connectionDied(id), &state) }
        run(work)
    }

    // MARK: Waiting

    /// Whether a connection is being opened for a request in the line.
    func isDialling(for id: PoolWaiterID) -> Bool { state.withLock { $0.machine.isDialling(for: id) } }

    func cancel(_ id: PoolWaiterID) {
        let (waiter, work) = state.withLock { state -> (PoolWaiter?, Work?) in
            let cancellation = state.machine.cancelWaiter(id)
            guard case .withdrawn = cancellation.outcome else { return (nil, nil) }
            return (state.waiters.removeValue(forKey: id), collect(cancellation.effects, &state))
        }
        waiter?.result.interrupt()
        run(work)
    }

    func setPriority(_ priority: RequestPriority, of id: PoolWaiterID) {
        state.withLock { $0.machine.setPriority(priority, of: id) }
    }

    func waiterTimerFired(_ id: PoolWaiterID, now: MonotonicTime) -> MonotonicTime? {
        let (next, waiter, error, work) = state.withLock {
            state -> (MonotonicTime?, PoolWaiter?, ExchangeError?, Work?) in
            guard let waiter = state.waiters[id] else { return (nil, nil, nil, nil) }
            let isDialling = state.machine.isDialling(for: id)
            let clock: ExchangeError.Clock
            switch waiter.clock.timerFired(isDialling: isDialling, now: now) {
            case .goOn(let next): return (next, nil, nil, nil)
            case .timedOut(let expired): clock = expired
            }
            let shortage = state.shortage(of: id)
            let cancellation = state.machine.cancelWaiter(id)
            guard case .withdrawn = cancellation.outcome else { return (nil, nil, nil, nil) }
            state.waiters[id] = nil
            let error = ExchangeError(
                cause: .timedOut(clock), phase: isDialling ? .connecting : .waiting,
                wasSent: false, waited: now.since(waiter.start), shortage: shortage)
            return (nil, waiter, error, collect(cancellation.effects, &state))
        }
        if let waiter, let error { waiter.result.fulfil(.failure(error)) }
        run(work)
        return next
    }

    // MARK: Opening

    /// Begins to open a connection.
    func begin(_ dial: PendingDial) {
        // Unstructured: a dial belongs to the pool, and may serve another request than the one that caused it.
        let dials = Self.enclosingDials + [EnclosingDial(pool: ObjectIdentifier(self), id: dial.id)]
        let task = Task {
            await Self.$enclosingDials.withValue(dials) {
                let deadline = MonotonicTime.now().deadline(after: dial.timeout)
                do throws(ExchangeError) {
                    self.dialSucceeded(dial.id, try await self.open(dial, until: deadline))
                } catch {
                    self.dialFailed(dial.id, error)
                }
            }
        }
        let isAbandoned = state.withLock { state in
            if state.abandoned.remove(dial.id) != nil { return true }
            if state.machine.isDialling(dial.id) { state.dials[dial.id] = task }
            return false
        }
        if isAbandoned { task.cancel() }
    }

    private func open(
        _ dial: PendingDial, until deadline: MonotonicTime
    ) async throws(ExchangeError) -> ProxyDial.Way {
        if let proxy = dial.key.proxy {
            let way = ProxyDial(
                dialer: dial.dialer, proxy: proxy, destination: dial.key.destination, limits: wireLimits,
                until: deadline)
            return try await way.run()
        }
        do throws(DialError) {
            return ProxyDial.Way(
                connected: try await dial.dialer.dial(dial.key.destination, until: deadline))
        } catch {
            throw ExchangeError(error)
        }
    }

    private func dialSucceeded(_ id: PoolConnectionID, _ way: ProxyDial.Way) {
        let connected = way.connected
        let connection = HTTP1Connection(
            stream: connected.stream, timings: connected.timings, tunnelHeads: way.heads, limits: wireLimits)
        let (work, isKnown, isIdle) = state.withLock { state -> (Work?, Bool, Bool) in
            state.forgetDial(id)
            guard state.machine.isDialling(id) else { return (nil, false, false) }
            if state.addresses.isLost(connected.stream.information.localAddress) {
                // The address went while the connection was being made: it will never carry anything.
                let failure = ExchangeError(
                    cause: .transport(.addressLost), phase: .connecting, wasSent: false)
                return (collect(state.machine.dialFailed(id), &state, failure: failure), false, false)
            }
            while state.connections.count <= id.index { state.connections.append(nil) }
            state.connections[id.index] = connection
            state.openedCount += 1
            let effects = state.machine.dialSucceeded(id, now: PoolClock.now())
            let work = collect(effects, &state, isFresh: true)
            return (work, true, effects.grant == nil && state.connections[id.index] === connection)
        }
        if !isKnown { connection.stream.close() }
        run(work)
        if isIdle {
            connection.stream.watchWhileIdle(
                Lease(connection: connection, id: id, isReused: false, pool: self, isReleased: true))
        }
    }

    private func dialFailed(_ id: PoolConnectionID, _ failure: ExchangeError) {
        let work = state.withLock { state in
            state.forgetDial(id)
            return collect(state.machine.dialFailed(id), &state, failure: failure)
        }
        run(work)
    }

    package func timerFired(token: UInt64, now: MonotonicTime) -> MonotonicTime? {
        let work = state.withLock { state -> Work? in
            state.armed = .max
            return collect(state.machine.expire(now: PoolClock.now()), &state)
        }
        run(work)
        return nil
    }

    // MARK: The whole pool

    /// Closes what is idle, gives up what is being opened, fails who waits; connections in use close when they are
    /// given back. Further requests are refused.
    package func shutDown() {
        let work = state.withLock { state in collect(state.machine.shutdown(), &state) }
        run(work)
        alarm.disarm()
    }

    /// Changes the limits while requests run.
    /// - Parameter limits: Gives the limits as they are to be now. It is called under the pool's lock, so that of several
    ///   changes at once the last has the last word; it must not call the pool.
    package func setLimits(_ limits: () -> PoolLimits) {
        let work = state.withLock { state in
            collect(state.machine.setLimits(limits(), now: PoolClock.now()), &state)
        }
        run(work)
    }

    /// Closes the idle connections of a key: one of them has just been found dead, and its companions are as old.
    package func closeIdle(destination: Destination, dialer: Dialer, proxy: ProxyServer? = nil) {
        let key = ConnectionKey(destination: destination, dialer: dialer.number, proxy: proxy)
        let work = state.withLock { state in collect(state.machine.closeIdle(key), &state) }
        run(work)
    }
}

extension ConnectionPool {
    /// This machine has these addresses now. Connections from one that it had before are closed where they are idle, and
    /// fail where they are in use, as though the peer had gone: no byte will come on them any more, and waiting for one
    /// would last until a clock runs out.
    package func localAddresses(are addresses: Set<IPAddress>) {
        let (works, busy) = state.withLock { state -> ([Work], [HTTP1Connection]) in
            guard state.addresses.update(addresses) else { return ([], []) }
            var works: [Work] = []
            var busy: [HTTP1Connection] = []
            for (index, connection) in state.connections.enumerated() {
                guard let connection, state.addresses.isLost(connection.stream.information.localAddress)
                else { continue }
                if let id = state.machine.idleConnection(at: index) {
                    if let work = collect(state.machine.connectionDied(id), &state) { works.append(work) }
                } else {
                    busy.append(connection)
                }
            }
            return (works, busy)
        }
        for work in works { run(work) }
        for connection in busy { connection.loseAddress() }
    }
}

extension ConnectionPool {
    /// The limits in force.
    package var limits: PoolLimits { state.withLock { $0.machine.limits } }

    /// Counts of the present moment.
    package var snapshot: PoolStatus {
        state.withLock { state in
            PoolStatus(
                idle: state.machine.idleCount, leased: state.machine.leasedCount,
                dialling: state.machine.diallingCount,
                waiting: state.machine.waitingCount, opened: state.openedCount, reused: state.reusedCount)
        }
    }

    /// Counts of the present moment for every host with a connection or a request that waits. Takes time in proportion to
    /// their number.
    package var hostCounts: [ConnectionKey: PoolCounts] { state.withLock { $0.machine.snapshot.hosts } }
}
