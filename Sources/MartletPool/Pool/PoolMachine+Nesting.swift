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
/// connection lends one slot above the limits to one such request at a time. The pool exceeds its limits by at most
/// the number of connections whose calls wait for nested requests. The innermost requests are served first, because
/// their ends let other calls continue.
///
/// A request that cannot be served borrows from all of its holders, because another nested request may use a slot that
/// was lent to it. If all connections are held by calls whose nested requests wait, all of them therefore lend a slot:
/// none counts against the limits, and a request is served.
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
        waiters.records[index].place.depth = UInt8(clamping: held.count)
        nested.append(index)
        updateRank(index)
        settle(waiters.records[index].host, &effects)
        return effects
    }

    /// Lends a slot to the first nested request without a dial that has a holder which lends none, the innermost one.
    /// Returns whether there was one.
    mutating func lendSlot() -> Bool {
        for index in nested where waiters.records[index].isWithoutDial {
            let lender = waiters.records[index].holders.last {
                isHeld($0) && connections.records[$0.index].borrower == PoolIndex.none
            }
            guard let lender else { continue }
            let host = waiters.records[index].host
            connections.records[lender.index].borrower = index
            hosts.records[host].exempt += 1
            exemptCount += 1
            reconsider(host)
            return true
        }
        return false
    }

    /// Takes back the slot that a connection lends.
    mutating func endLoan(by connection: Int) {
        let borrower = connections.records[connection].borrower
        guard borrower != PoolIndex.none else { return }
        connections.records[connection].borrower = PoolIndex.none
        let host = waiters.records[borrower].host
        hosts.records[host].exempt -= 1
        exemptCount -= 1
        reconsider(host)
    }

    /// Removes the record of a request that no longer waits, and no longer has a connection.
    mutating func forgetWaiter(_ index: Int) {
        for holder in waiters.records[index].holders where connections.records[holder.index].borrower == index {
            endLoan(by: holder.index)
        }
        waiters.remove(index)
    }

    /// Whether a connection is in use, or being opened.
    private func isHeld(_ connection: PoolConnectionID) -> Bool {
        let state = state(of: connection)
        return state == .leased || state.isDialing
    }
}
