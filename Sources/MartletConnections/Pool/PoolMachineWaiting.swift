/// The lines of waiting requests, and the heap of hosts that wait for the total limit.
extension PoolMachine {
    /// Puts a request into its host's line. Returns its place in the table.
    ///
    /// One that had a connection before has its old rank, and so its old place.
    mutating func enterLine(_ place: PoolPlace, of host: Int) -> Int {
        let waiter = waiters.insert(PoolWaiterRecord(place: place, host: host))
        hosts.records[host].line.insert(waiter, place.rank(ageing: amounts.ageing), &waiters)
        waitingCount += 1
        if !coverBySpare(waiter, of: host) { uncover(waiter) }
        return waiter
    }

    /// Takes a request out of its line. Returns the dial that was made for it, which is now made for nobody, or none.
    mutating func leaveLine(_ waiter: Int) -> Int {
        let host = waiters.records[waiter].host
        let dial = waiters.records[waiter].dial
        waiters.records[waiter].dial = PoolIndex.none
        hosts.records[host].line.remove(waiter, &waiters)
        hosts.records[host].uncoveredLine.remove(waiter, &waiters)
        waitingCount -= 1
        if !waiters.records[waiter].holders.isEmpty { nested.removeAll { $0 == waiter } }
        return dial
    }

    /// Notes that a dial is made for a request.
    mutating func cover(_ waiter: Int, by dial: Int) {
        waiters.records[waiter].dial = dial
        hosts.records[waiters.records[waiter].host].uncoveredLine.remove(waiter, &waiters)
    }

    /// Notes that no dial is made for a request.
    mutating func uncover(_ waiter: Int) {
        waiters.records[waiter].dial = PoolIndex.none
        let rank = waiters.records[waiter].place.rank(ageing: amounts.ageing)
        hosts.records[waiters.records[waiter].host].uncoveredLine.insert(waiter, rank, &waiters)
    }

    /// The request of a host that is served next.
    func firstWaiter(of host: Int) -> Int? {
        let first = hosts.records[host].line.first
        return first == PoolIndex.none ? nil : first
    }

    /// The first request of a host no dial is made for, or none.
    func firstUncovered(of host: Int) -> Int { hosts.records[host].uncoveredLine.first }

    /// Changes how urgent a request is, while it waits: it stands at once where it would if it had come with that
    /// priority. One that holds a connection keeps it, and gets the priority should that turn out dead. Nothing for one
    /// that is gone.
    package mutating func setPriority(_ priority: RequestPriority, of waiter: PoolWaiterID) {
        let index = waiter.index
        guard waiters.holds(index, waiter.generation), waiters.records[index].place.priority != priority
        else { return }
        waiters.records[index].place.priority = priority
        let granted = waiters.records[index].connection
        guard granted == PoolIndex.none else {
            connections.records[granted].place.priority = priority
            return
        }
        let host = waiters.records[index].host
        let rank = waiters.records[index].place.rank(ageing: amounts.ageing)
        hosts.records[host].line.update(index, rank, &waiters)
        hosts.records[host].uncoveredLine.update(index, rank, &waiters)
        reconsider(host)
    }

    /// Orders all lines anew, after a change of the ageing interval.
    mutating func rebuildLines() {
        for host in hostPlaces.values {
            hosts.records[host].line.rebuild(ageing: amounts.ageing, &waiters)
            hosts.records[host].uncoveredLine.rebuild(ageing: amounts.ageing, &waiters)
        }
    }

    /// Takes all waiting requests out of their lines, for shutdown. They are told in the order they came.
    mutating func failWaiters(_ effects: inout Effects) {
        var all: [Int] = []
        for host in hostPlaces.values { all += hosts.records[host].line.waiters }
        all.sort { waiters.records[$0].place.sequence < waiters.records[$1].place.sequence }
        for waiter in all {
            effects.fail(waiterName(waiter))
            let host = waiters.records[waiter].host
            _ = leaveLine(waiter)
            forgetWaiter(waiter)
            reconsider(host)
            forgetIfEmpty(host)
        }
    }

    // MARK: Hosts that wait for the total limit

    /// How much earlier than its host's first request a request to another host must have come to get the place of a
    /// free connection, in nanoseconds. Without it, two busy hosts at the total limit would open a connection for each
    /// request.
    package static var patience: UInt64 { 1_000_000_000 }

    /// Whether a free connection of a host is closed, so that the first blocked request gets its place.
    ///
    /// Hosts are blocked only while the total limit is reached and nothing is idle.
    func yieldsPlace(_ host: Int) -> Bool {
        guard let first = blocked.first, first != host, let own = hosts.records[host].line.firstRank,
            hosts.records[first].demand < own
        else { return false }
        let place = waiters.records[hosts.records[host].line.first].place
        let other = waiters.records[firstUncovered(of: first)].place
        return other.priority > place.priority
            || PoolAmounts.sum(other.arrival, Self.patience) <= place.arrival
    }

    /// Puts a host into the heap, moves it there, or takes it out, as its requests and its own limit demand.
    mutating func reconsider(_ host: Int) {
        let position = hosts.records[host].heapPosition
        let wants =
            !isShutDown && hosts.records[host].uncovered > 0
            && hosts.records[host].counted < hosts.records[host].limit
        guard wants, let rank = hosts.records[host].uncoveredLine.firstRank else {
            if position != PoolIndex.none { removeBlocked(at: position) }
            return
        }
        hosts.records[host].demand = rank
        if position == PoolIndex.none {
            blocked.append(host)
            hosts.records[host].heapPosition = blocked.count - 1
            siftUp(blocked.count - 1)
        } else {
            siftUp(position)
            siftDown(hosts.records[host].heapPosition)
        }
    }

    /// Builds the heap anew, after a change of limits.
    mutating func rebuildBlocked() {
        for host in blocked { hosts.records[host].heapPosition = PoolIndex.none }
        blocked.removeAll(keepingCapacity: true)
        for host in hostPlaces.values { reconsider(host) }
    }

    private mutating func removeBlocked(at position: Int) {
        let last = blocked.count - 1
        hosts.records[blocked[position]].heapPosition = PoolIndex.none
        let moved = blocked.removeLast()
        guard position != last else { return }
        blocked[position] = moved
        hosts.records[moved].heapPosition = position
        siftUp(position)
        siftDown(hosts.records[moved].heapPosition)
    }

    private mutating func siftUp(_ start: Int) {
        var position = start
        while position > 0 {
            let parent = (position - 1) / 2
            guard isBefore(position, parent) else { return }
            exchange(position, parent)
            position = parent
        }
    }

    private mutating func siftDown(_ start: Int) {
        var position = start
        while true {
            var first = position
            for child in [2 * position + 1, 2 * position + 2] where child < blocked.count {
                if isBefore(child, first) { first = child }
            }
            guard first != position else { return }
            exchange(position, first)
            position = first
        }
    }

    private func isBefore(_ left: Int, _ right: Int) -> Bool {
        hosts.records[blocked[left]].demand < hosts.records[blocked[right]].demand
    }

    private mutating func exchange(_ left: Int, _ right: Int) {
        blocked.swapAt(left, right)
        hosts.records[blocked[left]].heapPosition = left
        hosts.records[blocked[right]].heapPosition = right
    }
}
