package import MartletTransport
import Synchronization

extension ConnectionPool {
    /// What an acquisition needs to know beside where to: numbers, which cost nothing to hand on.
    package struct Request: Sendable {
        /// Who goes first when several wait.
        package var priority: RequestPriority
        /// Who goes first of those that are equally urgent.
        package var order: WaitingOrder
        /// How long to wait for a connection to be free; `nil` for ever.
        package var poolTimeout: Duration?
        /// How long opening one may take; `nil` for ever.
        package var connectTimeout: Duration?
        /// When the whole call must be over.
        package var totalDeadline: MonotonicTime
        /// When it is asked for: the present instant.
        package var start: MonotonicTime
        /// Whether one that has carried an exchange will not do: a kept one has died under the request.
        package var isFresh: Bool
        /// When it came first, by ``Ticket/arrival``: it gave up its place in the line, and has it back. `nil` for now.
        package var arrival: UInt64?
        /// How long it has waited before, by the pool clock.
        package var waited = Duration.zero
        /// Whether the socket of a kept connection has to be looked at right before: the request may not be sent again, should
        /// the connection have ended.
        package var mustLook: Bool

        /// A request for a connection.
        package init(
            priority: RequestPriority = .normal, order: WaitingOrder = .firstComeFirstServed,
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

        /// When it would have begun to wait, had it waited all at once.
        var waitStart: MonotonicTime { waited == .zero ? start : start.advanced(by: .zero - waited) }

        /// Whether a kept connection is fit for the request.
        func accepts(_ connection: HTTP1Connection) -> Bool {
            connection.isQuiet(at: start, mustLook: mustLook)
        }
    }

    /// What an acquisition came to at once.
    package enum Acquisition: Sendable {
        /// An idle connection.
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
        /// When the request came, on the pool's clock: with it, one that gave up its place gets it back.
        package let arrival: UInt64?

        /// Gives the place up; the wait throws. Any thread may call it, any number of times.
        package func cancel() { pool.cancel(id) }

        /// Changes how urgent the request is, from now on. Any thread may call it, at any time.
        package func setPriority(_ priority: RequestPriority) { pool.setPriority(priority, of: id) }

        /// Notes that the request was made by calls that run, such as a request in the closure of a stream, or while a
        /// connection is opened, such as one of a resolver. It does not wait for the connections that are held meanwhile.
        /// - Parameter exchanges: The exchanges of those calls, the outermost first.
        package func nest(in exchanges: [Exchange]) {
            let dials = ConnectionPool.enclosingDials.filter { $0.pool == ObjectIdentifier(pool) }.map(\.id)
            let holders =
                dials + exchanges.filter { $0.lease.pool === pool && !$0.isFinished }.map(\.lease.id)
            if !holders.isEmpty { pool.nest(id, in: holders) }
        }

        /// Waits for the connection.
        package func lease() async throws(ExchangeError) -> Lease {
            switch await waiter.result.wait(until: totalDeadline, on: pool.loop) {
            case .value(.success(let lease)): return lease
            case .value(.failure(let error)): throw error
            case .timedOut: throw timedOut()
            case .interrupted: throw ExchangeError(cause: .cancelled, phase: .waiting, wasSent: false)
            }
        }

        /// Leaves the line when the total clock has run out. It stands by itself, so that waiting takes no room for it.
        @inline(never)
        private func timedOut() -> ExchangeError {
            let isDialling = pool.isDialling(for: id)
            let shortage = pool.shortage(of: id)
            // A connection granted in this very moment finds the place settled and goes back by itself.
            pool.cancel(id)
            return ExchangeError(
                cause: .timedOut(.total), phase: isDialling ? .connecting : .waiting, wasSent: false,
                waited: MonotonicTime.now().since(waiter.start), shortage: shortage)
        }
    }
}

// What the machine decided becomes what is done: names become things under the lock, and the rest comes after it.
extension ConnectionPool {
    /// Turns the machine's names into the things they name, under the lock.
    func collect(
        _ effects: PoolMachine<ConnectionKey>.Effects, _ state: inout State, isFresh: Bool = false,
        failure: ExchangeError? = nil
    ) -> Work? {
        if effects.isEmpty, state.gate.waitingCount == 0 {
            guard let timer = timer(&state) else { return nil }
            return Work(timer: timer)
        }
        var work = Work()
        if let grant = effects.grant, let connection = state.connections[grant.connection.index],
            let waiter = state.waiters.removeValue(forKey: grant.waiter)
        {
            if !isFresh { state.reusedCount += 1 }
            let lease = Lease(connection: connection, id: grant.connection, isReused: !isFresh, pool: self)
            work.grants.append((waiter, lease))
        }
        for id in effects.failures {
            guard let waiter = state.waiters.removeValue(forKey: id) else { continue }
            let closed = ExchangeError(cause: .transport(.closed), phase: .waiting, wasSent: false)
            work.failures.append((waiter, failure ?? closed))
        }
        for id in effects.closes {
            guard id.index < state.connections.count else { continue }
            if let connection = state.connections[id.index].take() { work.closes.append(connection) }
        }
        for dial in effects.dials {
            // The pool does not keep dialers: the request that the dial is made for brings its own.
            guard let id = state.machine.waiter(of: dial.connection), let waiter = state.waiters[id]
            else { continue }
            work.noteDialling(true, waiter)
            let pending = PendingDial(id: dial.connection, key: dial.key, dialer: waiter.dialer)
            if let dial = state.gate.admit(pending.id, pending, now: PoolClock.now()) {
                work.dials.append(state.beginning(dial))
            }
        }
        for id in effects.coverageChanges {
            guard let waiter = state.waiters[id] else { continue }
            work.noteDialling(state.machine.isDialling(for: id), waiter)
        }
        for id in effects.abandons {
            if let task = state.dials[id] {
                work.abandons.append(task)
            } else {
                state.abandoned.insert(id)
                // One that has not begun begins to be given up: it ends as the others do.
                if let dial = state.gate.withdraw(id) { work.dials.append(dial) }
            }
        }
        if state.gate.waitingCount > 0 {
            for dial in state.gate.next(now: PoolClock.now()) { work.dials.append(state.beginning(dial)) }
        }
        work.timer = timer(&state)
        return work
    }

    /// When the pool's timer has to be set anew for; `nil` where it is set.
    private func timer(_ state: inout State) -> MonotonicTime? {
        let deadline = min(state.machine.nextDeadline ?? .max, state.gate.nextDeadline ?? .max)
        guard deadline < state.armed else { return nil }
        state.armed = deadline
        return MonotonicTime.now().advanced(by: PoolClock.until(deadline))
    }

    /// Does what is left to do, outside of the lock.
    func run(_ work: Work?) {
        guard let work else { return }
        for connection in work.closes { connection.stream.close() }
        for task in work.abandons { task.cancel() }
        for (waiter, lease) in work.grants where !waiter.result.fulfil(.success(lease)) {
            // The wait ended in the same moment, and so nothing was written on the connection.
            lease.returnUnused()
        }
        for (waiter, error) in work.failures { waiter.result.fulfil(.failure(error)) }
        for (waiter, deadline) in work.waiterTimers { loop.schedule(waiter, token: 0, at: deadline) }
        for dial in work.dials { begin(dial) }
        if let timer = work.timer { alarm.set(for: self, at: timer) }
    }
}

extension ConnectionPool.Work {
    /// A connection is now being opened for a waiter, or is not any more: another of its clocks runs.
    fileprivate mutating func noteDialling(_ isDialling: Bool, _ waiter: PoolWaiter) {
        let now = MonotonicTime.now()
        let deadline = isDialling ? waiter.clock.dialBegan(at: now) : waiter.clock.dialEnded(at: now)
        if let deadline { waiterTimers.append((waiter, deadline)) }
    }
}

/// The timer of a pool, which the event loop keeps until it fires. Without the pool it is a few bytes, so a pool that
/// was shut down is not kept in memory until then.
///
/// The loop could refer to the pool weakly instead, but that would make each of the pool's retains and releases slow.
final class PoolAlarm: TimerTarget {
    /// The pool, while the alarm is set.
    private let pool = Mutex<ConnectionPool?>(nil)

    func set(for pool: ConnectionPool, at deadline: MonotonicTime) {
        self.pool.withLock { $0 = pool }
        pool.loop.schedule(self, token: 0, at: deadline, isRetained: true)
    }

    /// Lets the pool go.
    func disarm() {
        // The last reference to the pool may go here, outside of the lock.
        _ = pool.withLock { $0.take() }
    }

    func timerFired(token: UInt64, now: MonotonicTime) -> MonotonicTime? {
        let pool = pool.withLock { $0.take() }
        return pool?.timerFired(token: token, now: now)
    }
}

/// The clock the pool's machine is told: one that goes on while the computer is suspended, so that a connection which
/// slept through its lifetime is never handed out.
enum PoolClock {
    /// Nanoseconds since the computer was started.
    static func now() -> UInt64 { MonotonicTime.sinceBoot().nanoseconds }

    /// How long it is until an instant of this clock.
    static func until(_ instant: UInt64) -> Duration {
        let now = now()
        return .nanoseconds(Int64(clamping: instant > now ? instant - now : 0))
    }
}
