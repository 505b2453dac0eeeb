import MartletTransport
import Synchronization

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
