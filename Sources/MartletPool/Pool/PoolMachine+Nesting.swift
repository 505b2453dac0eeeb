/// Connections that are in use and do not count against the limits.
///
/// A call may hold its connection while user code runs, and that code may make further calls to the same host. If such
/// calls held all slots, all would wait for each other. So the next waiter gets the slot of such a connection. When the
/// connection counts again, the pool may be above its limits, and closes connections that become free.
extension PoolMachine {
    /// Stops counting a connection in use against the limits. Its release ends this as well.
    mutating func exempt(_ connection: PoolConnectionID) -> Effects {
        var effects = Effects()
        let index = connection.index
        guard state(of: connection) == .leased, !connections.records[index].isExempt else { return effects }
        let host = connections.records[index].host
        connections.records[index].isExempt = true
        hosts.records[host].exempt += 1
        exemptCount += 1
        settle(host, &effects)
        return effects
    }

    /// Counts a connection in use again. Does nothing if it counts already, or was returned.
    mutating func endExemption(_ connection: PoolConnectionID) {
        guard let index = connections.index(of: connection), connections.records[index].isExempt else { return }
        count(index)
        reconsider(connections.records[index].host)
    }

    /// Counts an exempt connection again. The caller then has to reconsider its host.
    mutating func count(_ index: Int) {
        connections.records[index].isExempt = false
        hosts.records[connections.records[index].host].exempt -= 1
        exemptCount -= 1
    }
}

/// Requests made while a connection is held. Examples are a request in the closure of a stream, and a resolver's
/// request while a connection is being opened.
///
/// A call that holds a connection returns it only when the nested request has ended. If that request waited for a slot
/// below the limits, calls could wait for each other forever. So it is served before all others, and each held
/// connection lends one slot above the limits to one such request at a time. Each level of nesting thus adds at most as
/// many connections as the limits permit.
extension PoolMachine {
    /// Records that calls which hold connections made a waiting request. Ignored if the request no longer waits, or if
    /// the connections are no longer held.
    mutating func nest(_ waiter: PoolWaiterID, in holders: [PoolConnectionID]) -> Effects {
        var effects = Effects()
        guard let index = waiters.index(of: waiter), waiters.records[index].connection == nil,
            waiters.records[index].holders.isEmpty
        else { return effects }
        let held = holders.filter { isHeld($0) }
        guard !held.isEmpty else { return effects }
        waiters.records[index].holders = held
        waiters.records[index].place.isNested = true
        nested.append(index)
        updateRank(index)
        settle(waiters.records[index].host, &effects)
        return effects
    }

    /// Lends slots to the nested requests without a dial. Returns whether it lent any.
    mutating func lendSlots() -> Bool {
        var hasLent = false
        for index in nested
        where waiters.records[index].isWithoutDial && waiters.records[index].lender == PoolIndex.none {
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

    /// Takes back the slot that was lent to a request.
    private mutating func endLoan(of waiter: Int) {
        let lender = waiters.records[waiter].lender
        guard lender != PoolIndex.none else { return }
        waiters.records[waiter].lender = PoolIndex.none
        connections.records[lender].borrower = PoolIndex.none
        let host = waiters.records[waiter].host
        hosts.records[host].exempt -= 1
        exemptCount -= 1
        reconsider(host)
    }

    /// Takes back the slot that a connection lends.
    mutating func endLoan(by connection: Int) {
        let borrower = connections.records[connection].borrower
        if borrower != PoolIndex.none { endLoan(of: borrower) }
    }

    /// Removes the record of a request that no longer waits, and no longer has a connection.
    mutating func forgetWaiter(_ index: Int) {
        endLoan(of: index)
        waiters.remove(index)
    }

    /// Whether a connection is in use, or being opened.
    private func isHeld(_ connection: PoolConnectionID) -> Bool {
        let state = state(of: connection)
        return state == .leased || state.isDialing
    }
}
