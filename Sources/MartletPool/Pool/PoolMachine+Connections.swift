// A dial is assigned to a waiting request. If that request no longer needs it, the dial is reassigned to the first
// request of its host without a dial. Without such a request, the dial is spare (its request was served in another way)
// or abandoned (its request was cancelled). A spare dial is assigned to the next request that arrives.

// MARK: Dials

extension PoolMachine {
    /// The connections that count against the total limit.
    var countedCount: Int { connections.count - exemptCount }

    /// Whether connections have to be closed to satisfy the limits that apply to this host.
    @inline(__always) func isOverLimit(_ host: Int) -> Bool {
        countedCount > amounts.total || hosts.records[host].counted > hosts.records[host].limit
    }

    /// Completes an event of a host: starts the dials that became possible, and removes the host if it is empty.
    mutating func settle(_ host: Int, _ effects: inout Effects) {
        // A request whose dial failed may be without a dial although a spare dial exists.
        while let waiter = hosts.records[host].waitersWithoutDial.first?.index, assignSpareDial(to: waiter, of: host) {
            effects.orders.append(.dialAssignmentChanged(waiters.name(waiter)))
        }
        reconsider(host)
        dialForBlocked(&effects)
        forgetIfEmpty(host)
    }

    /// Starts the dials that the limits permit, and those that may exceed them.
    mutating func dialForBlocked(_ effects: inout Effects) {
        dialBelowLimit(&effects)
        while !nested.isEmpty, lendSlot() { dialBelowLimit(&effects) }
    }

    /// Starts dials for hosts while the total limit permits them, or a connection can be closed for them.
    private mutating func dialBelowLimit(_ effects: inout Effects) {
        while let host = blocked.first?.index {
            while countedCount >= amounts.total, idle.count > 0 { closeIdle(idle.oldest, &effects) }
            guard countedCount < amounts.total else { return }
            dial(host, &effects)
            reconsider(host)
        }
    }

    /// Dials for the first request of a host that has no dial.
    private mutating func dial(_ host: Int, _ effects: inout Effects) {
        guard let waiter = hosts.records[host].waitersWithoutDial.first?.index, let key = hosts.records[host].key else {
            assertionFailure("a dial without a request")
            return
        }
        let index = connections.insert(PoolConnectionRecord(host: host))
        hosts.records[host].open += 1
        hosts.records[host].dialing += 1
        dialingCount += 1
        assignDial(index, to: waiter, as: .dialing)
        effects.orders.append(.dial(Dial(connection: connections.name(index), key: key)))
    }

    /// Ends a dial: its request, if it has one, no longer has a dial. The caller then sets the state of the connection.
    mutating func endDial(_ index: Int) {
        endLoan(by: index)
        detachDial(index)
        hosts.records[connections.records[index].host].dialing -= 1
        dialingCount -= 1
    }

    /// Separates a dial from its request, or from the spare dials.
    private mutating func detachDial(_ index: Int) {
        let waiter = connections.records[index].waiter
        if waiter != PoolIndex.none {
            waiters.records[waiter].state = .withoutDial
            updateRank(waiter)
            connections.records[index].waiter = PoolIndex.none
        } else if connections.records[index].state == .spare {
            hosts.records[connections.records[index].host].spareDials.removeAll { $0 == index }
        }
    }

    /// Reports a request whose dial has ended, if it still waits.
    func reportMissingDial(_ waiter: Int, _ effects: inout Effects) {
        guard waiter != PoolIndex.none, waiters.records[waiter].isWithoutDial else { return }
        effects.orders.append(.dialAssignmentChanged(waiters.name(waiter)))
    }

    /// Passes a dial whose request has left to the first request without a dial. Returns whether there was one.
    mutating func reassignDial(_ index: Int, _ effects: inout Effects) -> Bool {
        connections.records[index].waiter = PoolIndex.none
        guard let waiter = hosts.records[connections.records[index].host].waitersWithoutDial.first?.index else {
            return false
        }
        assignDial(index, to: waiter, as: .adopted)
        effects.orders.append(.dialAssignmentChanged(waiters.name(waiter)))
        return true
    }

    /// Assigns a spare dial of its host to a waiter. Returns whether there was one.
    private mutating func assignSpareDial(to waiter: Int, of host: Int) -> Bool {
        guard let index = hosts.records[host].spareDials.popLast() else { return false }
        assignDial(index, to: waiter, as: .adopted)
        return true
    }

    mutating func abandon(_ index: Int, _ effects: inout Effects) {
        connections.records[index].state = .abandoned
        effects.orders.append(.abandon(connections.name(index)))
    }

    /// Cancels all dials, for shutdown.
    mutating func abandonDials(_ effects: inout Effects) {
        for index in connections.records.indices
        where connections.records[index].state.isDialing && connections.records[index].state != .abandoned {
            detachDial(index)
            abandon(index, &effects)
        }
    }
}

// MARK: Leased and idle connections

extension PoolMachine {
    /// Leases the idle connection of a host that was used last, if it is still usable.
    @inline(__always) mutating func takeIdle(of host: Int, for place: PoolWaiterPosition, now: Instant)
        -> PoolConnectionID?
    {
        let index = hosts.records[host].idle.newest
        guard index != PoolIndex.none, connections.records[index].deadline > now else { return nil }
        endIdle(index)
        lease(index, place)
        return connections.name(index)
    }

    mutating func grant(_ index: Int, to waiter: Int, _ effects: inout Effects) {
        if let dial = dequeue(waiter), !reassignDial(dial, &effects) {
            connections.records[dial].state = .spare
            hosts.records[waiters.records[waiter].host].spareDials.append(dial)
        }
        waiters.records[waiter].state = .granted(index)
        lease(index, waiters.records[waiter].place)
        connections.records[index].waiter = waiter
        effects.grant = PoolGrant(waiter: waiters.name(waiter), connection: connections.name(index))
    }

    /// Marks a free connection as held by the request with that position.
    private mutating func lease(_ index: Int, _ place: PoolWaiterPosition) {
        connections.records[index].state = .leased
        connections.records[index].place = place
        connections.records[index].uses &+= 1
    }

    /// Separates a connection from its request. The caller then sets the connection's state, or drops it.
    mutating func endLease(_ index: Int) {
        let waiter = connections.records[index].waiter
        if waiter != PoolIndex.none {
            connections.records[index].waiter = PoolIndex.none
            forgetWaiter(waiter)
        }
        endLoan(by: index)
        if connections.records[index].isExempt { count(index) }
    }

    /// Adds a free connection to the idle ones, and closes the connections that the idle limits do not allow.
    mutating func becomeIdle(_ index: Int, now: Instant, _ effects: inout Effects) {
        let host = connections.records[index].host
        connections.records[index].idleSince = now
        let deadline = idleDeadline(index)
        guard deadline > now, amounts.idlePerHost > 0, amounts.idleTotal > 0 else {
            drop(index, &effects)
            return
        }
        if hosts.records[host].idle.count >= amounts.idlePerHost {
            closeIdle(hosts.records[host].idle.oldest, &effects)
        } else if idle.count >= amounts.idleTotal {
            closeIdle(idle.oldest, &effects)
        }
        connections.records[index].state = .idle
        connections.records[index].deadline = deadline
        earliestDeadline = idle.count == 0 ? deadline : min(earliestDeadline, deadline)
        hosts.records[host].idle.append(index, .host, &connections)
        idle.append(index, .pool, &connections)
    }

    /// The time from which a connection must not carry another request, by its age and the server's `Keep-Alive`.
    @inline(__always) func useDeadline(_ index: Int) -> Instant {
        let oldAge = PoolAmounts.sum(connections.records[index].openedAt, amounts.age)
        return min(oldAge, connections.records[index].serverDeadline)
    }

    /// The time at which an idle connection must be closed.
    private func idleDeadline(_ index: Int) -> Instant {
        let idleEnd = PoolAmounts.sum(connections.records[index].idleSince, amounts.idleLifetime)
        return min(idleEnd, useDeadline(index))
    }

    /// Removes a connection from the lists of idle ones. The caller then sets its state, or drops it.
    mutating func endIdle(_ index: Int) {
        hosts.records[connections.records[index].host].idle.remove(index, .host, &connections)
        idle.remove(index, .pool, &connections)
    }

    /// Closes an idle connection, and removes its host if that has no other connection and no request.
    mutating func closeIdle(_ index: Int, _ effects: inout Effects) {
        endIdle(index)
        drop(index, &effects)
        forgetIfEmpty(connections.records[index].host)
    }

    /// Requests the closing of a connection that was removed from all lists.
    mutating func drop(_ index: Int, _ effects: inout Effects) {
        effects.orders.append(.close(connections.name(index)))
        forget(index)
    }

    /// Removes the record of a connection that was removed from all lists.
    mutating func forget(_ index: Int) {
        connections.records[index].state = .gone
        connections.remove(index)
        hosts.records[connections.records[index].host].open -= 1
    }

    /// Closes the idle connections that have expired, and finds the next deadline.
    mutating func closeExpired(now: Instant, _ effects: inout Effects) {
        earliestDeadline = .max
        for index in idle.indices(.pool, connections) {
            if connections.records[index].deadline <= now {
                closeIdle(index, &effects)
            } else {
                earliestDeadline = min(earliestDeadline, connections.records[index].deadline)
            }
        }
    }

    /// Computes the deadlines of all idle connections again, after a change of limits.
    mutating func renewDeadlines() {
        for index in idle.indices(.pool, connections) { connections.records[index].deadline = idleDeadline(index) }
    }

    /// Closes the idle connections of one host beyond its limits, the longest idle first.
    mutating func trimIdle(of host: Int, _ effects: inout Effects) {
        while hosts.records[host].idle.count > 0,
            hosts.records[host].counted > hosts.records[host].limit
                || hosts.records[host].idle.count > amounts.idlePerHost
        { closeIdle(hosts.records[host].idle.oldest, &effects) }
    }
}

// MARK: Queues of waiting requests

extension PoolMachine {
    /// Adds a request to its host's queue, at its old position if it had a connection before. Returns its index.
    mutating func enqueue(_ place: PoolWaiterPosition, of host: Int) -> Int {
        let waiter = waiters.insert(PoolWaiterRecord(place: place, host: host))
        waitingCount += 1
        _ = assignSpareDial(to: waiter, of: host)
        updateRank(waiter)
        return waiter
    }

    /// Removes a request from its queue. Returns the dial that was made for it, which now has no request.
    mutating func dequeue(_ waiter: Int) -> Int? {
        let host = waiters.records[waiter].host
        let dial = waiters.records[waiter].dial
        waiters.records[waiter].state = .withoutDial
        hosts.records[host].queue.remove(waiter, &queuePositions)
        hosts.records[host].waitersWithoutDial.remove(waiter, &positionsWithoutDial)
        waitingCount -= 1
        if !waiters.records[waiter].holders.isEmpty { nested.removeAll { $0 == waiter } }
        return dial
    }

    /// Assigns a dial to a waiting request.
    private mutating func assignDial(_ dial: Int, to waiter: Int, as state: PoolConnectionRecord.State) {
        connections.records[dial].state = state
        connections.records[dial].waiter = waiter
        waiters.records[waiter].state = .withDial(dial)
        hosts.records[waiters.records[waiter].host].waitersWithoutDial.remove(waiter, &positionsWithoutDial)
    }

    /// Moves a waiting request to the position of its rank.
    mutating func updateRank(_ waiter: Int) {
        let record = waiters.records[waiter]
        let rank = record.place.rank(aging: amounts.aging)
        hosts.records[record.host].queue.set(waiter, rank, &queuePositions)
        if record.isWithoutDial {
            hosts.records[record.host].waitersWithoutDial.set(waiter, rank, &positionsWithoutDial)
        }
    }

    /// The minimum lead with which a request to another host gets the slot of a free connection, in nanoseconds: it
    /// arrived that much earlier than the first request of the connection's host. Without a minimum, two busy hosts
    /// would open a connection for each request.
    static var minimumLead: UInt64 { 1_000_000_000 }

    /// Whether a free connection of a host should be closed, so that the first blocked request gets its slot. Hosts are
    /// blocked only while the total limit is reached and no connection is idle.
    @inline(__always) func yieldsSlot(_ host: Int) -> Bool {
        guard let first = blocked.first, first.index != host, let own = hosts.records[host].queue.first,
            first.rank < own.rank, let candidate = hosts.records[first.index].waitersWithoutDial.first
        else { return false }
        let place = waiters.records[own.index].place
        let other = waiters.records[candidate.index].place
        return other.priority > place.priority || PoolAmounts.sum(other.arrival, Self.minimumLead) <= place.arrival
    }

    /// Adds a host to the blocked ones, moves it, or removes it, depending on its requests and its own limit.
    mutating func reconsider(_ host: Int) {
        if !isShutDown, let first = hosts.records[host].waitersWithoutDial.first,
            hosts.records[host].counted < hosts.records[host].limit
        {
            blocked.set(host, first.rank, &blockedPositions)
        } else {
            blocked.remove(host, &blockedPositions)
        }
    }
}
