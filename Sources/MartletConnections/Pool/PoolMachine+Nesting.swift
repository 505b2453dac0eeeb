/// Connections that are in use and do not count against the limits.
///
/// A call may have to keep its connection while code of the program runs, which may make further calls to the same
/// host. If all places were held by such calls, those further calls would wait for the very calls that wait for them.
/// So the place of such a connection is given to the next waiter. Once the connection counts again, the pool may be
/// over its limits, as after they were lowered: connections that become free are closed until they hold.
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

    /// Counts a connection in use again. Does nothing if it counts, or was given back.
    mutating func endExemption(_ connection: PoolConnectionID) {
        guard let index = connections.index(of: connection), connections.records[index].isExempt else { return }
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
/// Those calls give their connections back only when the request is done. If it waited for a place below the limits,
/// calls could wait for each other without end. So it is served before all others, and each connection held lends one
/// place above the limits to one such request at a time: there are at most twice as many connections as the limits
/// permit for each level of nesting, however many requests are made.
extension PoolMachine {
    /// Notes that a waiting request was made by calls that hold connections, if both are still so.
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

    /// Lends places to the nested requests that no dial is made for. Returns whether it did.
    mutating func lendPlaces() -> Bool {
        var hasLent = false
        for index in nested where waiters.records[index].isUncovered && waiters.records[index].lender == PoolIndex.none
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
        let state = state(of: connection)
        return state == .leased || state.isDialling
    }
}
