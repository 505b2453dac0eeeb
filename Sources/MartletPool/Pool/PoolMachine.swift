/// The state machine that decides which request may use which connection: reuse, dial, wait or close.
///
/// The machine never sees a socket, a clock or a continuation. Each event is one `mutating` function that receives the
/// time if needed and returns the required actions (``Effects``). The machine is not safe for concurrent use: its owner
/// guards it by a lock, and runs the effects afterwards.
///
/// The rules, in order:
/// 1. A request gets the idle connection of its host that was used last (last in, first out), if it is still usable.
/// 2. Otherwise the request waits, and a dial is made for it unless a limit prevents that. If only the total limit
///    does, the least recently used idle connection of another host is closed to make room.
/// 3. A free or new connection is granted to the first waiting request of its host, even if another request caused its
///    dial. Rule 4 is the exception. The order is first come, first served within a priority, or last come, first
///    served for requests with that ``QueueOrder``. Waiting raises the priority (``PoolLimits/agingInterval``), and the
///    priority of a waiting request can be changed.
/// 4. A slot that becomes free below the total limit goes to the first request without a dial, of all hosts. For such a
///    request, a free connection of another host is closed if the first request waiting for that host is less urgent,
///    or arrived ``minimumLead`` later: hosts with many requests do not keep the slots for themselves.
/// 5. A dial that fails is reported to the request that caused it, if that request still waits. A request that adopted
///    the dial is not notified: a new dial is made for it as soon as the limits permit.
///
/// So every request makes progress: either its host has a dial or a connection in use, or other dials and connections
/// in use occupy all slots of the total limit. A request that finds an idle connection costs at most one dictionary
/// look-up, and a release costs none. Neither allocates memory.
struct PoolMachine<Key: Hashable & Sendable>: Sendable {
    /// Nanoseconds of a clock that also runs while the computer is suspended (`CLOCK_BOOTTIME`), so that a connection
    /// that expired by then is never used. An integer: comparing `Duration`s costs more than a frequent event.
    typealias Instant = UInt64

    /// The limits in force.
    private(set) var limits: PoolLimits
    private(set) var isShutDown = false
    private(set) var amounts: PoolAmounts
    /// The index in ``hosts`` of each host with a connection or a waiting request.
    private(set) var hostIndexes: [Key: Int] = [:]
    /// The host of the last request, which most programs use again. Comparing its key is faster than hashing a key.
    private(set) var recent: (key: Key, host: Int)?
    var hosts = PoolTable<PoolHostRecord<Key>, Never>()
    var connections = PoolTable<PoolConnectionRecord, HTTP1Connection>()
    var waiters = PoolTable<PoolWaiterRecord, ConnectionPool.Ticket>()
    /// The positions of waiters in ``PoolHostRecord/queue`` and in ``PoolHostRecord/waitersWithoutDial``.
    var queuePositions: [Int] = []
    var positionsWithoutDial: [Int] = []
    /// The hosts with a waiter whose dial only the total limit prevents, by the rank of the first waiter.
    var blocked = PoolHeap()
    var blockedPositions: [Int] = []
    /// All idle connections.
    var idle = PoolList()
    /// No idle connection has to be closed before this time. May be too early, never too late.
    var earliestDeadline = UInt64.max
    var dialingCount = 0
    var waitingCount = 0
    /// The number of connections that do not count against the limits.
    var exemptCount = 0
    /// The waiting requests that were made by calls which hold connections; see ``nest(_:in:)``.
    var nested: [Int] = []
    private var nextSequence: UInt64 = 0
    private let hostLimit: (@Sendable (Key, PoolLimits) -> Int?)?

    /// Creates an empty pool.
    /// - Parameter hostLimit: The maximum number of connections to a host, if the limits specify one. It is called for
    ///   each new host and when the limits change.
    init(limits: PoolLimits = PoolLimits(), hostLimit: (@Sendable (Key, PoolLimits) -> Int?)? = nil) {
        (self.hostLimit, self.limits) = (hostLimit, limits)
        self.amounts = PoolAmounts(limits)
    }

    /// The time at which ``expire(now:)`` has to be called next; `nil` if nothing is idle. One timer suffices: the
    /// owner sets it when this time is earlier than the timer's, and after each firing. The time may be too early, if a
    /// connection is used again; ``expire(now:)`` then only computes the next time.
    var nextDeadline: Instant? { idle.count == 0 ? nil : earliestDeadline }

    /// The counts of all hosts together, in constant time.
    var counts: PoolCounts {
        PoolCounts(
            leased: connections.count - dialingCount - idle.count, idle: idle.count, dialing: dialingCount,
            waiting: waitingCount)
    }

    /// The counts of each host with a connection or a waiting request. Takes time in proportion to their number.
    var hostCounts: [Key: PoolCounts] { hostIndexes.mapValues { hosts.records[$0].counts } }

    // MARK: Requests

    /// Leases an idle connection for a request for `key`, if a usable one exists: the first step of ``request``.
    mutating func takeIdle(
        _ key: Key, priority: RequestPriority = .normal, order: QueueOrder = .firstComeFirstServed,
        arrival: Instant? = nil, now: Instant
    ) -> PoolConnectionID? {
        guard !isShutDown, let host = host(of: key) else { return nil }
        return takeIdle(of: host, for: newPlace(priority, order, arrival, now), now: now)
    }

    /// Gives a request a connection to `key`, or queues it. A caller that gets a lease must call
    /// ``released(_:isReusable:keepAliveTimeout:now:)`` or ``checkoutRejected(_:now:)`` exactly once.
    /// - Parameter arrival: The arrival of a request that returns to its position in the queue; `nil` for now.
    mutating func request(
        _ key: Key, priority: RequestPriority = .normal, order: QueueOrder = .firstComeFirstServed,
        arrival: Instant? = nil, now: Instant
    ) -> Admission {
        guard !isShutDown else { return Admission() }
        return admit(newPlace(priority, order, arrival, now), to: host(of: key) ?? newHost(key), now: now)
    }

    private mutating func newPlace(
        _ priority: RequestPriority, _ order: QueueOrder, _ arrival: Instant?, _ now: Instant
    ) -> PoolWaiterPosition {
        defer { nextSequence &+= 1 }
        return PoolWaiterPosition(
            arrival: min(arrival ?? now, now), sequence: nextSequence, priority: priority, order: order)
    }

    private mutating func admit(
        _ place: PoolWaiterPosition, to host: Int, now: Instant, effects: consuming Effects = Effects()
    ) -> Admission {
        while hosts.records[host].idle.count > 0 {
            if let lease = takeIdle(of: host, for: place, now: now) { return Admission(lease: lease, effects: effects) }
            let index = hosts.records[host].idle.newest
            endIdle(index)
            drop(index, &effects)
        }
        let waiter = enqueue(place, of: host)
        reconsider(host)
        dialForBlocked(&effects)
        return Admission(waiter: waiters.name(waiter), effects: effects)
    }

    /// Handles a dead connection that a request received and has not used. The connection is closed. The request gets
    /// another idle one, or waits at its old position, where a dial replaces the dead connection. For a connection that
    /// is not in use the result is empty.
    mutating func checkoutRejected(_ connection: PoolConnectionID, now: Instant) -> Admission {
        guard state(of: connection) == .leased else { return Admission() }
        let index = connection.index
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

    /// Removes a request that no longer needs a connection from the queue.
    /// - Returns: `nil` if the request is not queued: it has a connection, which it has to release, or was removed.
    mutating func cancelWaiter(_ waiter: PoolWaiterID) -> Effects? {
        guard let index = waiters.index(of: waiter), waiters.records[index].connection == nil else { return nil }
        var effects = Effects()
        let host = waiters.records[index].host
        let dial = dequeue(index)
        forgetWaiter(index)
        if let dial, !reassignDial(dial, &effects) { abandon(dial, &effects) }
        settle(host, &effects)
        return effects
    }

    /// Changes the priority of a waiting request: it moves to the position that it would have had with that priority
    /// from the start. If the request has a connection, the priority applies only if that connection is dead.
    mutating func setPriority(_ priority: RequestPriority, of waiter: PoolWaiterID) {
        guard let index = waiters.index(of: waiter), waiters.records[index].place.priority != priority else { return }
        waiters.records[index].place.priority = priority
        if let connection = waiters.records[index].connection {
            connections.records[connection].place.priority = priority
        } else {
            updateRank(index)
            reconsider(waiters.records[index].host)
        }
    }

    // MARK: Connections

    /// Handles a connection that was opened and is ready for use.
    mutating func dialSucceeded(_ connection: PoolConnectionID, now: Instant) -> Effects {
        var effects = Effects()
        guard let (index, host, owner, isOwn) = takeEndedDial(connection) else { return effects }
        connections.records[index].openedAt = now
        // A request's own dial keeps its slot: the request was the first of all hosts. Other dials may yield.
        if isShutDown || isOverLimit(host) || (!isOwn && yieldsSlot(host)) {
            drop(index, &effects)
        } else if let waiter = hosts.records[host].queue.first?.index {
            grant(index, to: waiter, &effects)
        } else {
            becomeIdle(index, now: now, &effects)
        }
        reportMissingDial(owner, &effects)
        settle(host, &effects)
        return effects
    }

    /// Handles a connection that could not be opened. The request that it was dialed for fails, if it still waits.
    mutating func dialFailed(_ connection: PoolConnectionID) -> Effects {
        var effects = Effects()
        guard let (index, host, owner, isOwn) = takeEndedDial(connection) else { return effects }
        forget(index)  // There is nothing to close.
        if isOwn {
            effects.orders.append(.fail(waiters.name(owner)))
            _ = dequeue(owner)
            forgetWaiter(owner)
        } else {
            reportMissingDial(owner, &effects)
        }
        settle(host, &effects)
        return effects
    }

    /// Ends a dial. Returns the indexes of its connection, host and waiter, and whether that waiter caused the dial;
    /// `nil` if no such dial runs.
    private mutating func takeEndedDial(_ connection: PoolConnectionID) -> (
        index: Int, host: Int, owner: Int, isOwn: Bool
    )? {
        guard isDialing(connection) else { return nil }
        let record = connections.records[connection.index]
        endDial(connection.index)
        return (connection.index, record.host, record.waiter, record.state == .dialing)
    }

    /// Handles a connection that a request returns.
    /// - Parameters:
    ///   - isReusable: Whether another request may follow on it: the last exchange was complete and neither side sent
    ///     `Connection: close` (RFC 9112 §9.3).
    ///   - isUnused: Whether the request sent nothing, so that the server's timeout continues to run.
    ///   - keepAliveTimeout: The server's `Keep-Alive: timeout=N` in nanoseconds; `nil` without one.
    mutating func released(
        _ connection: PoolConnectionID, isReusable: Bool, isUnused: Bool = false, keepAliveTimeout: UInt64? = nil,
        now: Instant
    ) -> Effects {
        var effects = Effects()
        guard state(of: connection) == .leased else { return effects }
        let index = connection.index
        let host = connections.records[index].host
        endLease(index)
        if isUnused {
            connections.records[index].uses -= 1
        } else {
            connections.records[index].serverDeadline = amounts.serverDeadline(keepAliveTimeout, now: now)
        }
        let isKept =
            isReusable && !isShutDown && !isOverLimit(host) && connections.records[index].uses < amounts.uses
            && useDeadline(index) > now && !yieldsSlot(host)
        if !isKept {
            drop(index, &effects)
        } else if let waiter = hosts.records[host].queue.first?.index {
            grant(index, to: waiter, &effects)
        } else {
            becomeIdle(index, now: now, &effects)
            if effects.orders.isEmpty, blocked.count == 0, nested.isEmpty { return effects }
        }
        settle(host, &effects)
        return effects
    }

    /// Handles an idle connection that the server closed, or that received unsolicited bytes. Ignored for a connection
    /// in use: its request detects the error and releases it as not reusable.
    mutating func connectionDied(_ connection: PoolConnectionID) -> Effects {
        var effects = Effects()
        guard isIdle(connection) else { return effects }
        closeIdle(connection.index, &effects)
        settle(connections.records[connection.index].host, &effects)
        return effects
    }

    /// Closes all idle connections of a key. Called when one was found dead: the others are probably dead, too.
    mutating func closeIdle(_ key: Key) -> Effects {
        var effects = Effects()
        guard let host = hostIndexes[key] else { return effects }
        while hosts.records[host].idle.count > 0 { closeIdle(hosts.records[host].idle.newest, &effects) }
        settle(host, &effects)
        return effects
    }

    /// Closes the idle connections that have expired, when the timer fires.
    mutating func expire(now: Instant) -> Effects {
        var effects = Effects()
        closeExpired(now: now, &effects)
        dialForBlocked(&effects)
        return effects
    }

    // MARK: The whole pool

    /// Changes the limits of the running pool. Higher limits start dials for waiting requests. Lower limits close idle
    /// connections immediately, and others above the limits when they become free.
    mutating func setLimits(_ limits: PoolLimits, now: Instant) -> Effects {
        self.limits = limits
        let aging = amounts.aging
        amounts = PoolAmounts(limits)
        let indexes = hostIndexes.values.sorted()
        if amounts.aging != aging {
            for host in indexes { for entry in hosts.records[host].queue.entries { updateRank(entry.index) } }
        }
        for (key, host) in hostIndexes { hosts.records[host].limit = limit(of: key) }
        var effects = Effects()
        for host in indexes { trimIdle(of: host, &effects) }
        while idle.count > 0, countedCount > amounts.total || idle.count > amounts.idleTotal {
            closeIdle(idle.oldest, &effects)
        }
        renewDeadlines()
        closeExpired(now: now, &effects)
        for host in hostIndexes.values { reconsider(host) }
        dialForBlocked(&effects)
        return effects
    }

    /// Ends the pool: waiting requests fail, idle connections close, dials are abandoned, and connections in use close
    /// when they are released. Later requests are rejected.
    mutating func shutdown() -> Effects {
        var effects = Effects()
        guard !isShutDown else { return effects }
        isShutDown = true
        while idle.count > 0 { closeIdle(idle.oldest, &effects) }
        abandonDials(&effects)
        // In order of arrival.
        let waiting = hostIndexes.values.flatMap { hosts.records[$0].queue.entries.map(\.index) }
        for waiter in waiting.sorted(by: { waiters.records[$0].place.sequence < waiters.records[$1].place.sequence }) {
            effects.orders.append(.fail(waiters.name(waiter)))
            let host = waiters.records[waiter].host
            _ = dequeue(waiter)
            forgetWaiter(waiter)
            reconsider(host)
            forgetIfEmpty(host)
        }
        return effects
    }

    // MARK: Hosts

    /// The maximum number of connections to a host, at least 1.
    private func limit(of key: Key) -> Int { max(1, hostLimit?(key, limits) ?? amounts.perHost) }

    /// The index of a host; `nil` for an unknown host.
    private mutating func host(of key: Key) -> Int? {
        if let recent, recent.key == key { return recent.host }
        guard let host = hostIndexes[key] else { return nil }
        recent = (key, host)
        return host
    }

    private mutating func newHost(_ key: Key) -> Int {
        let host = hosts.insert(PoolHostRecord(key: key, limit: limit(of: key)))
        hostIndexes[key] = host
        return host
    }

    /// Removes a host without connections and requests, so that the pool does not grow with every host.
    mutating func forgetIfEmpty(_ host: Int) {
        guard hosts.records[host].open == 0, hosts.records[host].queue.count == 0, let key = hosts.records[host].key
        else { return }
        hostIndexes[key] = nil
        if host == recent?.host { recent = nil }
        hosts.records[host].key = nil
        hosts.remove(host)
    }

    // MARK: Queries

    // These functions are inlined, because the compiler copies the whole machine for a call that only reads it.

    /// The state of a connection; `.gone` if its record was removed.
    @inline(__always) func state(of connection: PoolConnectionID) -> PoolConnectionRecord.State {
        connections.index(of: connection).map { connections.records[$0].state } ?? .gone
    }

    /// Whether a connection with this identifier is being opened.
    func isDialing(_ connection: PoolConnectionID) -> Bool { state(of: connection).isDialing }

    func isIdle(_ connection: PoolConnectionID) -> Bool { state(of: connection) == .idle }

    /// The identifier of the connection with an index, if it is idle.
    func idleConnection(at index: Int) -> PoolConnectionID? {
        guard connections.records.indices.contains(index) else { return nil }
        return connections.records[index].state == .idle ? connections.name(index) : nil
    }

    /// Whether a connection is being opened for a waiting request.
    func isDialing(for waiter: PoolWaiterID) -> Bool {
        waiters.index(of: waiter).map { waiters.records[$0].dial != nil } ?? false
    }

    /// The request that a dial is made for; `nil` if it has left.
    func waiter(of dial: PoolConnectionID) -> PoolWaiterID? {
        guard isDialing(dial), connections.records[dial.index].waiter != PoolIndex.none else { return nil }
        return waiters.name(connections.records[dial.index].waiter)
    }

    /// The arrival time of a request that waits, or was granted a connection.
    func arrival(of waiter: PoolWaiterID) -> Instant? {
        waiters.index(of: waiter).map { waiters.records[$0].place.arrival }
    }
}

extension PoolMachine {
    struct Dial: Equatable, Sendable {
        /// The connection. The owner reports the end of the dial with `dialSucceeded` or `dialFailed`, exactly once.
        let connection: PoolConnectionID
        let key: Key
    }

    /// The actions that the machine's owner performs after an event, outside of the lock, independent of each other.
    struct Effects: Equatable, Sendable {
        /// An action in addition to the grant.
        enum Order: Equatable, Sendable {
            /// A request stops waiting and fails, because the dial that it caused failed, or the pool shuts down.
            case fail(PoolWaiterID)
            /// A connection is closed; the machine has removed its record.
            case close(PoolConnectionID)
            case dial(Dial)
            /// A dial is cancelled. Its end is reported as for every dial, and it counts against the limits until then.
            /// If it opens a connection nevertheless, the connection is used.
            case abandon(PoolConnectionID)
            /// The timeouts of a waiting request change: another request's dial is now made for it, or no dial at all;
            /// see ``PoolMachine/isDialing(for:)``.
            case dialAssignmentChanged(PoolWaiterID)
        }

        /// The connection that this event grants, and the request that now holds it.
        var grant: PoolGrant?
        /// The other actions; empty, and so without allocated memory, after the most common events.
        var orders: [Order] = []

        var isEmpty: Bool { grant == nil && orders.isEmpty }
    }

    /// The result of a request: a connection, a position in the queue, or neither if the pool is shut down.
    struct Admission: Equatable, Sendable {
        /// The idle connection that the request now holds and has to release.
        var lease: PoolConnectionID?
        /// The identifier of the waiting request, until it is granted a connection, fails or is cancelled.
        var waiter: PoolWaiterID?
        var effects = Effects()
    }
}

/// A connection that goes to a request that waited for it.
struct PoolGrant: Equatable, Sendable {
    /// The request, which no longer waits.
    let waiter: PoolWaiterID
    /// The connection, which the request now holds and has to release.
    let connection: PoolConnectionID
}

/// The number of connections in each state, and of the requests that wait for one.
package struct PoolCounts: Equatable, Sendable {
    /// Connections in use.
    package var leased = 0
    /// Connections that wait for a request.
    package var idle = 0
    /// Connections that are being opened, and abandoned dials that have not ended.
    package var dialing = 0
    /// Requests that wait for a connection.
    package var waiting = 0
}
