/// Connections as they go to requests and lie idle between them.
extension PoolMachine {
    /// The idle connection that a request for `key` would get, if there is one that is good; it holds it from now on.
    ///
    /// The short form of ``request(_:priority:order:now:)`` where nothing but the lease changes: `nil` means that that one has
    /// to be asked.
    package mutating func takeIdle(
        _ key: Key, priority: RequestPriority = .normal, order: WaitingOrder = .firstComeFirstServed,
        now: Instant
    ) -> PoolConnectionID? {
        guard !isShutDown, let host = host(of: key) else { return nil }
        let index = hosts.records[host].newestIdle
        guard index != PoolIndex.none, connections.records[index].deadline > now else { return nil }
        let place = PoolPlace(arrival: now, sequence: nextSequence, priority: priority, order: order)
        nextSequence &+= 1
        endIdle(index)
        lease(index, place)
        return name(index)
    }

    /// Gives a request of `host` an idle connection, or a place in the line.
    mutating func admit(
        _ place: PoolPlace, to host: Int, now: Instant, effects: consuming Effects = Effects()
    ) -> Admission {
        while true {
            let index = hosts.records[host].newestIdle
            guard index != PoolIndex.none else { break }
            if connections.records[index].deadline > now {
                endIdle(index)
                lease(index, place)
                return Admission(lease: name(index), effects: effects)
            }
            closeIdle(index, &effects)
        }
        let waiter = enterLine(place, of: host)
        reconsider(host)
        dialForBlocked(&effects)
        return Admission(waiter: waiterName(waiter), effects: effects)
    }

    /// Gives a free connection to a waiting request.
    mutating func grant(_ index: Int, to waiter: Int, _ effects: inout Effects) {
        let dial = leaveLine(waiter)
        if dial != PoolIndex.none, !passOn(dial, &effects) { keepSpare(dial) }
        waiters.records[waiter].connection = index
        lease(index, waiters.records[waiter].place)
        connections.records[index].waiter = waiter
        effects.grant = PoolGrant(waiter: waiterName(waiter), connection: name(index))
    }

    /// Marks a free connection as held by the request with that place.
    private mutating func lease(_ index: Int, _ place: PoolPlace) {
        connections.records[index].state = .leased
        connections.records[index].place = place
        connections.records[index].uses &+= 1
        hosts.records[connections.records[index].host].leased += 1
        leasedCount += 1
    }

    /// Takes a connection from its request. Its state is about to be set, or it is about to be dropped.
    mutating func endLease(_ index: Int) {
        let waiter = connections.records[index].waiter
        if waiter != PoolIndex.none {
            connections.records[index].waiter = PoolIndex.none
            forgetWaiter(waiter)
        }
        endLoan(by: index)
        if connections.records[index].isExempt { count(index) }
        hosts.records[connections.records[index].host].leased -= 1
        leasedCount -= 1
    }

    /// Keeps a free connection for later, or closes what the idle limits do not allow.
    mutating func becomeIdle(_ index: Int, now: Instant, _ effects: inout Effects) {
        let host = connections.records[index].host
        connections.records[index].idleSince = now
        let deadline = idleDeadline(index)
        guard deadline > now, amounts.idlePerHost > 0, amounts.idleTotal > 0 else {
            drop(index, &effects)
            return
        }
        if hosts.records[host].idle >= amounts.idlePerHost {
            closeIdle(hosts.records[host].oldestIdle, &effects)
        } else if idleCount >= amounts.idleTotal {
            let oldest = connections.records[oldestIdle].host
            closeIdle(oldestIdle, &effects)
            if oldest != host { forgetIfEmpty(oldest) }
        }
        connections.records[index].state = .idle
        connections.records[index].deadline = deadline
        earliestDeadline = idleCount == 0 ? deadline : min(earliestDeadline, deadline)
        link(idle: index, of: host)
    }

    /// From when on a connection must not carry another request: the server's word and its age.
    func useDeadline(_ index: Int) -> Instant {
        let oldAge = PoolAmounts.sum(connections.records[index].openedAt, amounts.age)
        return min(oldAge, connections.records[index].serverDeadline)
    }

    /// From when on an idle connection must not be kept.
    private func idleDeadline(_ index: Int) -> Instant {
        let idleEnd = PoolAmounts.sum(connections.records[index].idleSince, amounts.idleLifetime)
        return min(idleEnd, useDeadline(index))
    }

    /// Closes an idle connection. The host may be left without any connection or request.
    mutating func closeIdle(_ index: Int, _ effects: inout Effects) {
        endIdle(index)
        drop(index, &effects)
    }

    /// Has a connection closed that is in no list any more.
    mutating func drop(_ index: Int, _ effects: inout Effects) {
        effects.close(name(index))
        forget(index)
    }

    /// Forgets a connection that is in no list any more.
    mutating func forget(_ index: Int) {
        connections.records[index].state = .gone
        connections.remove(index)
    }

    /// Closes the idle connections whose time is up and finds the next deadline.
    mutating func closeExpired(now: Instant, _ effects: inout Effects) {
        var earliest = UInt64.max
        var index = oldestIdle
        while index != PoolIndex.none {
            let newer = connections.records[index].newer
            if connections.records[index].deadline <= now {
                let host = connections.records[index].host
                closeIdle(index, &effects)
                forgetIfEmpty(host)
            } else {
                earliest = min(earliest, connections.records[index].deadline)
            }
            index = newer
        }
        earliestDeadline = earliest
    }

    /// Calculates the deadlines of all idle connections anew, after a change of limits.
    mutating func renewDeadlines() {
        var index = oldestIdle
        while index != PoolIndex.none {
            connections.records[index].deadline = idleDeadline(index)
            index = connections.records[index].newer
        }
    }

    /// Closes what one host has idle beyond its limits, the longest idle first.
    mutating func trimIdle(of host: Int, _ effects: inout Effects) {
        while hosts.records[host].idle > 0,
            hosts.records[host].counted > hosts.records[host].limit
                || hosts.records[host].idle > amounts.idlePerHost
        {
            closeIdle(hosts.records[host].oldestIdle, &effects)
        }
        forgetIfEmpty(host)
    }

    /// Puts a connection on top of its host's idle stack and at the new end of the list of all.
    private mutating func link(idle index: Int, of host: Int) {
        let below = hosts.records[host].newestIdle
        connections.records[index].below = below
        connections.records[index].above = PoolIndex.none
        if below == PoolIndex.none {
            hosts.records[host].oldestIdle = index
        } else {
            connections.records[below].above = index
        }
        hosts.records[host].newestIdle = index
        hosts.records[host].idle += 1

        connections.records[index].older = newestIdle
        connections.records[index].newer = PoolIndex.none
        if newestIdle == PoolIndex.none {
            oldestIdle = index
        } else {
            connections.records[newestIdle].newer = index
        }
        newestIdle = index
        idleCount += 1
    }

    /// Takes a connection out of its host's idle stack and the list of all.
    private mutating func endIdle(_ index: Int) {
        let host = connections.records[index].host
        let below = connections.records[index].below
        let above = connections.records[index].above
        if below == PoolIndex.none {
            hosts.records[host].oldestIdle = above
        } else {
            connections.records[below].above = above
        }
        if above == PoolIndex.none {
            hosts.records[host].newestIdle = below
        } else {
            connections.records[above].below = below
        }
        hosts.records[host].idle -= 1

        let older = connections.records[index].older
        let newer = connections.records[index].newer
        if older == PoolIndex.none { oldestIdle = newer } else { connections.records[older].newer = newer }
        if newer == PoolIndex.none { newestIdle = older } else { connections.records[newer].older = older }
        idleCount -= 1
    }

    /// The name of a connection by its place.
    func name(_ index: Int) -> PoolConnectionID {
        PoolConnectionID(index: index, generation: connections.generations[index])
    }

    /// The name of a waiter by its place.
    func waiterName(_ index: Int) -> PoolWaiterID {
        PoolWaiterID(index: index, generation: waiters.generations[index])
    }
}

/// Connections that are in use and do not count against the limits.
///
/// A call may have to keep its connection while code of the program runs, which may make further calls to the same host.
/// If all places were held by such calls, those further calls would wait for the very calls that wait for them. So the
/// place of such a connection is given to whoever waits. Once the connection counts again, the pool may be over its
/// limits, as after they were lowered: what becomes free is closed until they hold.
extension PoolMachine {
    /// The connections that count against the total limit.
    var countedCount: Int { connections.count - exemptCount }

    /// Stops counting a connection in use against the limits. Its release ends this as well.
    package mutating func exempt(_ connection: PoolConnectionID) -> Effects {
        var effects = Effects()
        guard let index = position(of: connection, .leased), !connections.records[index].isExempt else {
            return effects
        }
        let host = connections.records[index].host
        connections.records[index].isExempt = true
        hosts.records[host].exempt += 1
        exemptCount += 1
        settle(host, &effects)
        return effects
    }

    /// Counts a connection in use again. Does nothing if it counts, or was given back.
    package mutating func endExemption(_ connection: PoolConnectionID) {
        let index = connection.index
        guard connections.holds(index, connection.generation), connections.records[index].isExempt
        else { return }
        count(index)
        reconsider(connections.records[index].host)
    }

    /// Counts an exempt connection again. Its host has yet to be reconsidered.
    mutating func count(_ index: Int) {
        connections.records[index].isExempt = false
        hosts.records[connections.records[index].host].exempt -= 1
        exemptCount -= 1
    }
}

/// Requests made while a connection is held, such as a request in the closure of a stream, or one that a resolver makes
/// while a connection is being opened.
///
/// Those calls give their connections back only when the request is done. If it waited for a place below the limits, calls
/// could wait for each other without end. So it is served before all others, and each connection held lends one place
/// above the limits to one such request at a time: there are at most twice as many connections as the limits permit for
/// each level of nesting, however many requests are made.
extension PoolMachine {
    /// Notes that a waiting request was made by calls that hold connections. Does nothing if it waits no longer, or if
    /// none of the connections is in use.
    package mutating func nest(_ waiter: PoolWaiterID, in holders: [PoolConnectionID]) -> Effects {
        var effects = Effects()
        let index = waiter.index
        guard waiters.holds(index, waiter.generation),
            waiters.records[index].connection == PoolIndex.none, waiters.records[index].holders.isEmpty
        else { return effects }
        let held = holders.filter { isHeld($0) }
        guard !held.isEmpty else { return effects }
        waiters.records[index].holders = held
        waiters.records[index].place.isNested = true
        nested.append(index)
        let host = waiters.records[index].host
        let rank = waiters.records[index].place.rank(ageing: amounts.ageing)
        hosts.records[host].line.update(index, rank, &waiters)
        hosts.records[host].uncoveredLine.update(index, rank, &waiters)
        settle(host, &effects)
        return effects
    }

    /// Lends places to the nested requests that no dial is made for. Returns whether it did.
    mutating func lendPlaces() -> Bool {
        var hasLent = false
        for index in nested
        where waiters.records[index].dial == PoolIndex.none && waiters.records[index].lender == PoolIndex.none
        {
            let lender = waiters.records[index].holders.last {
                isHeld($0) && connections.records[$0.index].borrower == PoolIndex.none
            }
            guard let lender else { continue }
            let host = waiters.records[index].host
            waiters.records[index].lender = lender.index
            connections.records[lender.index].borrower = index
            hosts.records[host].exempt += 1
            exemptCount += 1
            reconsider(host)
            hasLent = true
        }
        return hasLent
    }

    /// Takes back the place that was lent to a request.
    mutating func endLoan(of waiter: Int) {
        let lender = waiters.records[waiter].lender
        guard lender != PoolIndex.none else { return }
        waiters.records[waiter].lender = PoolIndex.none
        connections.records[lender].borrower = PoolIndex.none
        let host = waiters.records[waiter].host
        hosts.records[host].exempt -= 1
        exemptCount -= 1
        reconsider(host)
    }

    /// Takes back the place that a connection lends.
    mutating func endLoan(by connection: Int) {
        let borrower = connections.records[connection].borrower
        if borrower != PoolIndex.none { endLoan(of: borrower) }
    }

    /// Forgets a request that waits no longer, and no longer has a connection.
    mutating func forgetWaiter(_ index: Int) {
        endLoan(of: index)
        waiters.remove(index)
    }

    /// Whether a connection is in use, or being opened.
    private func isHeld(_ connection: PoolConnectionID) -> Bool {
        position(of: connection, .leased) != nil || position(of: connection, .dialling) != nil
    }
}
