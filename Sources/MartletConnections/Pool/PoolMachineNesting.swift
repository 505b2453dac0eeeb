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
        guard connections.holds(connection.index, connection.generation) else { return false }
        let state = connections.records[connection.index].state
        return state == .leased || state == .dialling
    }
}
