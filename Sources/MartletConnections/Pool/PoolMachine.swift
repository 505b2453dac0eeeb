/// Decides which request may use which connection: reuse, dial, wait, close.
///
/// The machine never sees a socket, a clock or a continuation. Each event is one `mutating` function that takes the
/// time where it matters and returns what has to be done (``Effects``). It is not safe for concurrent use: its owner
/// guards it by a lock or an actor, and runs the effects afterwards.
///
/// The rules, in order:
/// 1. A request takes the idle connection of its host that was used last (last in, first out), if it is still good.
/// 2. Else it waits, and a dial is made for it unless a limit forbids. When only the total limit does, the
///    connection of another host that has been idle the longest is closed to make room.
/// 3. A connection that becomes free, or is just made, goes to the first waiting request of its host, whoever caused
///    its dial, unless it has to make room for another host (rule 4). The order is first come, first served within
///    a priority, or last come, first served for those that
///    ask for it; waiting raises the priority (``PoolLimits/ageingInterval``), and it can be changed meanwhile.
/// 4. A place that becomes free below the total limit goes to the first request, of all hosts, without a dial. A
///    free connection is closed for a request to another host that comes first and is more urgent, or that came
///    ``patience`` earlier: hosts with many requests do not keep the places for themselves.
/// 5. A dial that fails is reported to the request that caused it, if that still waits. A request that merely took
///    over a dial caused by another is not told: a dial of its own is made for it as soon as limits permit.
///
/// So no request waits without hope: its host has a dial or a connection in use, or all places of the total limit
/// are taken by connections that are being made or in use.
///
/// A request that finds an idle connection costs one dictionary look-up at most, a release none; both take constant time and
/// no memory.
package struct PoolMachine<Key: Hashable & Sendable>: Sendable {
    /// Nanoseconds of one clock that goes on while the computer is suspended (`CLOCK_BOOTTIME`, which is Swift's
    /// `ContinuousClock` on Linux), so that a connection that slept too long is never handed out. An integer, because
    /// comparing `Duration`s costs more than the rest of a hot event.
    package typealias Instant = UInt64

    /// The limits in force.
    package internal(set) var limits: PoolLimits
    /// Whether `shutdown` was called.
    package internal(set) var isShutDown = false

    var amounts: PoolAmounts
    var hostPlaces: [Key: Int] = [:]
    var hosts = PoolTable<PoolHostRecord<Key>>()
    /// The host that was asked for last, which most programs ask for again: to compare a key costs a fraction of hashing it.
    var recent: (key: Key, host: Int)?
    var connections = PoolTable<PoolConnectionRecord>()
    var waiters = PoolTable<PoolWaiterRecord>()
    /// Hosts with a waiter that only the total limit keeps from a dial: a binary heap, the first to be served on top.
    var blocked: [Int] = []
    var oldestIdle = PoolIndex.none
    var newestIdle = PoolIndex.none
    var idleCount = 0
    var leasedCount = 0
    var diallingCount = 0
    var waitingCount = 0
    /// How many connections do not count against the limits.
    var exemptCount = 0
    /// The waiting requests that were made by calls which hold connections, by their places in the table; see `nest`.
    var nested: [Int] = []
    /// No idle connection has to be closed before this time; may be too early, never too late.
    var earliestDeadline = UInt64.max
    var nextSequence: UInt64 = 0

    private let hostLimit: (@Sendable (Key, PoolLimits) -> Int?)?

    /// Creates an empty pool.
    /// - Parameter hostLimit: How many connections one host may have by the limits, where these say something of it; asked
    ///   when a host is met and when the limits change.
    package init(limits: PoolLimits = PoolLimits(), hostLimit: (@Sendable (Key, PoolLimits) -> Int?)? = nil) {
        self.hostLimit = hostLimit
        self.limits = limits
        self.amounts = PoolAmounts(limits)
    }

    /// When `expire` has to be called next; `nil` when nothing is idle.
    ///
    /// One timer suffices: re-arm it when this is earlier than what it is armed for, and whenever it fired. The time
    /// may be too early (its connection is in use meanwhile); `expire` then does nothing but find the next.
    package var nextDeadline: Instant? { idleCount == 0 ? nil : earliestDeadline }

    /// Whether the pool is shut down and its last connection is closed.
    package var isDrained: Bool { isShutDown && connections.count == 0 }

    /// Where the connection leads; `nil` when it is gone.
    package func key(of connection: PoolConnectionID) -> Key? {
        guard connections.holds(connection.index, connection.generation) else { return nil }
        return hosts.records[connections.records[connection.index].host].key
    }

    // MARK: Requests

    /// A request asks for a connection to `key`.
    ///
    /// The caller that gets a lease must release it, or return it with `checkoutRefused`, exactly once.
    /// - Parameter arrival: When it came first, for a request that gave up its place in the line and has it back; `nil` for now.
    package mutating func request(
        _ key: Key, priority: RequestPriority = .normal, order: WaitingOrder = .firstComeFirstServed,
        arrival: Instant? = nil, now: Instant
    ) -> Admission {
        guard !isShutDown else { return Admission() }
        let place = PoolPlace(
            arrival: min(arrival ?? now, now), sequence: nextSequence, priority: priority, order: order)
        nextSequence &+= 1
        if let host = host(of: key) { return admit(place, to: host, now: now) }
        let host = hosts.insert(PoolHostRecord(key: key, limit: limit(of: key)))
        hostPlaces[key] = host
        return admit(place, to: host, now: now)
    }

    /// Where a host is in the table; `nil` where the pool knows none of that key.
    mutating func host(of key: Key) -> Int? {
        if let recent, recent.key == key { return recent.host }
        guard let host = hostPlaces[key] else { return nil }
        recent = (key, host)
        return host
    }

    /// The host at a place is about to be forgotten.
    mutating func forgetRecent(_ host: Int) { if host == recent?.host { recent = nil } }

    /// The request that was just given `connection` found it dead before using it.
    ///
    /// The connection is closed. The request gets another idle one, or waits at its old place in the line, where a
    /// dial takes the dead connection's place. For a connection that is not in use the answer is empty.
    package mutating func checkoutRefused(_ connection: PoolConnectionID, now: Instant) -> Admission {
        guard let index = position(of: connection, .leased) else { return Admission() }
        let host = connections.records[index].host
        let place = connections.records[index].place
        endLease(index)
        var effects = Effects()
        drop(index, &effects)
        guard !isShutDown else {
            forgetIfEmpty(host)
            return Admission(effects: effects)
        }
        return admit(place, to: host, now: now, effects: effects)
    }

    /// A request needs no connection any more. May be called at any time and any number of times.
    package mutating func cancelWaiter(_ waiter: PoolWaiterID) -> Cancellation {
        let index = waiter.index
        guard waiters.holds(index, waiter.generation) else { return Cancellation(outcome: .unknown) }
        let granted = waiters.records[index].connection
        guard granted == PoolIndex.none else { return Cancellation(outcome: .alreadyGranted(name(granted))) }
        var effects = Effects()
        let host = waiters.records[index].host
        let dial = leaveLine(index)
        forgetWaiter(index)
        if dial != PoolIndex.none, !passOn(dial, &effects) {
            connections.records[dial].isAbandoned = true
            effects.abandon(name(dial))
        }
        settle(host, &effects)
        return Cancellation(outcome: .withdrawn, effects: effects)
    }

    // MARK: Connections

    /// The place of a connection that is in this state; `nil` where it is not, or not any more.
    func position(of connection: PoolConnectionID, _ state: PoolConnectionRecord.State) -> Int? {
        let index = connection.index
        return connections.holds(index, connection.generation) && connections.records[index].state == state
            ? index : nil
    }

    /// The connection is made, and ready for use.
    package mutating func dialSucceeded(_ connection: PoolConnectionID, now: Instant) -> Effects {
        var effects = Effects()
        guard let index = position(of: connection, .dialling) else { return effects }
        let host = connections.records[index].host
        let owner = connections.records[index].waiter
        // The request that caused a dial was the first of all hosts at that time. An adopted dial has no such claim.
        let isOwn = owner != PoolIndex.none && !connections.records[index].isAdopted
        endDial(index)
        connections.records[index].openedAt = now
        if isShutDown || isOverLimit(host) || (!isOwn && yieldsPlace(host)) {
            drop(index, &effects)
        } else if let waiter = firstWaiter(of: host) {
            grant(index, to: waiter, &effects)
        } else {
            becomeIdle(index, now: now, &effects)
        }
        noteUncovered(owner, &effects)
        settle(host, &effects)
        return effects
    }

    /// The connection could not be made. The request it was dialled for is told, if it still waits.
    package mutating func dialFailed(_ connection: PoolConnectionID) -> Effects {
        var effects = Effects()
        guard let index = position(of: connection, .dialling) else { return effects }
        let host = connections.records[index].host
        let owner = connections.records[index].waiter
        let waiter = connections.records[index].isAdopted ? PoolIndex.none : owner
        endDial(index)
        forget(index)  // There is nothing to close.
        if waiter != PoolIndex.none {
            effects.fail(waiterName(waiter))
            _ = leaveLine(waiter)
            forgetWaiter(waiter)
        } else {
            noteUncovered(owner, &effects)
        }
        settle(host, &effects)
        return effects
    }

    /// A request gives its connection back.
    ///
    /// - Parameters:
    ///   - isReusable: Whether another request may follow on it: the last exchange was complete and neither side
    ///     said `Connection: close` (RFC 9112 §9.3).
    ///   - keepAliveTimeout: The server's `Keep-Alive: timeout=N` in nanoseconds; `nil` when it said nothing.
    package mutating func released(
        _ connection: PoolConnectionID, isReusable: Bool, keepAliveTimeout: UInt64? = nil, now: Instant
    ) -> Effects {
        var effects = Effects()
        guard let index = position(of: connection, .leased) else { return effects }
        let host = connections.records[index].host
        endLease(index)
        connections.records[index].serverDeadline = amounts.serverDeadline(keepAliveTimeout, now: now)
        let mayGoOn =
            isReusable && !isShutDown && !isOverLimit(host) && connections.records[index].uses < amounts.uses
            && useDeadline(index) > now && !yieldsPlace(host)
        if !mayGoOn {
            drop(index, &effects)
            settle(host, &effects)
        } else if let waiter = firstWaiter(of: host) {
            grant(index, to: waiter, &effects)
            settle(host, &effects)
        } else {
            becomeIdle(index, now: now, &effects)
            if effects.hasRare || !blocked.isEmpty || !nested.isEmpty { settle(host, &effects) }
        }
        return effects
    }

    /// An idle connection was closed by its server, or sent bytes nobody asked for.
    ///
    /// For a connection in use nothing happens: its request will find out and release it as not reusable.
    package mutating func connectionDied(_ connection: PoolConnectionID) -> Effects {
        var effects = Effects()
        guard let index = position(of: connection, .idle) else { return effects }
        let host = connections.records[index].host
        closeIdle(index, &effects)
        settle(host, &effects)
        return effects
    }

    /// The timer fired: closes the idle connections whose time is up.
    package mutating func expire(now: Instant) -> Effects {
        var effects = Effects()
        closeExpired(now: now, &effects)
        dialForBlocked(&effects)
        return effects
    }

    // MARK: The whole pool

    /// The most connections to a host, at least 1.
    private func limit(of key: Key) -> Int {
        guard let limit = hostLimit?(key, limits) else { return amounts.perHost }
        return max(1, limit)
    }

    /// Changes the limits of the running pool.
    ///
    /// Higher limits raise dials for waiting requests. Lower limits close idle connections at once; connections in
    /// use or being made are closed as they become free, until the limits hold.
    package mutating func setLimits(_ limits: PoolLimits, now: Instant) -> Effects {
        self.limits = limits
        let ageing = amounts.ageing
        amounts = PoolAmounts(limits)
        if amounts.ageing != ageing { rebuildLines() }
        for (key, host) in hostPlaces { hosts.records[host].limit = limit(of: key) }
        var effects = Effects()
        let places = hostPlaces.values.sorted()
        for host in places { trimIdle(of: host, &effects) }
        while oldestIdle != PoolIndex.none, isOverTotals {
            let host = connections.records[oldestIdle].host
            closeIdle(oldestIdle, &effects)
            forgetIfEmpty(host)
        }
        renewDeadlines()
        closeExpired(now: now, &effects)
        rebuildBlocked()
        dialForBlocked(&effects)
        return effects
    }

    /// Ends the pool: waiting requests fail, idle connections close, dials are given up, and connections in use
    /// close when they are released. Requests are refused from now on.
    package mutating func shutdown() -> Effects {
        var effects = Effects()
        guard !isShutDown else { return effects }
        isShutDown = true
        while oldestIdle != PoolIndex.none {
            let host = connections.records[oldestIdle].host
            closeIdle(oldestIdle, &effects)
            forgetIfEmpty(host)
        }
        abandonDials(&effects)
        failWaiters(&effects)
        return effects
    }
}

/// What the pool's owner asks between events.
extension PoolMachine {
    /// Whether a connection is being made under this name.
    package func isDialling(_ connection: PoolConnectionID) -> Bool {
        position(of: connection, .dialling) != nil
    }

    /// Whether a waiting request has a dial made for it.
    package func isDialling(for waiter: PoolWaiterID) -> Bool {
        waiters.holds(waiter.index, waiter.generation) && waiters.records[waiter.index].dial != PoolIndex.none
    }

    /// When a request that waits, or was granted a connection, came.
    package func arrival(of waiter: PoolWaiterID) -> Instant? {
        guard waiters.holds(waiter.index, waiter.generation) else { return nil }
        return waiters.records[waiter.index].place.arrival
    }

    /// The request a dial is made for; `nil` when it has left.
    package func waiter(of dial: PoolConnectionID) -> PoolWaiterID? {
        guard isDialling(dial) else { return nil }
        let waiter = connections.records[dial.index].waiter
        return waiter == PoolIndex.none ? nil : waiterName(waiter)
    }

    /// Whether nobody has a connection, which is open.
    package func isIdle(_ connection: PoolConnectionID) -> Bool { position(of: connection, .idle) != nil }

    /// The name of the connection with an index, where it is idle.
    package func idleConnection(at index: Int) -> PoolConnectionID? {
        guard connections.records.indices.contains(index), connections.records[index].state == .idle else {
            return nil
        }
        return name(index)
    }

    /// Closes all idle connections of a key: one of them was found dead, and the others are as old.
    package mutating func closeIdle(_ key: Key) -> Effects {
        var effects = Effects()
        guard let host = hostPlaces[key] else { return effects }
        while hosts.records[host].newestIdle != PoolIndex.none {
            closeIdle(hosts.records[host].newestIdle, &effects)
        }
        settle(host, &effects)
        return effects
    }
}

extension PoolMachine: CustomStringConvertible {
    /// What the pool holds now. Takes time in proportion to the number of hosts.
    package var snapshot: PoolSnapshot<Key> {
        PoolSnapshot(
            total: counts,
            hosts: hostPlaces.mapValues { place in
                let host = hosts.records[place]
                return PoolCounts(
                    leased: host.leased, idle: host.idle, dialling: host.dialling, waiting: host.waiting)
            })
    }

    /// The counts of all hosts together. Takes constant time.
    package var counts: PoolCounts {
        PoolCounts(leased: leasedCount, idle: idleCount, dialling: diallingCount, waiting: waitingCount)
    }

    /// The snapshot as text.
    package var description: String { snapshot.description }
}
