/// The lines of waiting requests, and the heap of hosts that wait for the total limit.
extension PoolMachine {
    /// Puts a request into the line of its priority. Returns its place in the table.
    ///
    /// New requests go to the end. One that had a connection before has its old place: before all that came later,
    /// which are all in the line but others of its kind, so the search is short.
    mutating func enterLine(_ place: PoolPlace, of host: Int) -> Int {
        let waiter = waiters.insert(PoolWaiterRecord(place: place, host: host))
        let level = Int(place.priority.rawValue)
        var next = PoolIndex.none
        let last = hosts.records[host].lines[level].last
        if last != PoolIndex.none, waiters.records[last].place.sequence > place.sequence {
            next = hosts.records[host].lines[level].first
            while waiters.records[next].place.sequence < place.sequence { next = waiters.records[next].next }
        }
        let previous = next == PoolIndex.none ? last : waiters.records[next].previous
        waiters.records[waiter].previous = previous
        waiters.records[waiter].next = next
        if previous == PoolIndex.none {
            hosts.records[host].lines[level].first = waiter
        } else {
            waiters.records[previous].next = waiter
        }
        if next == PoolIndex.none {
            hosts.records[host].lines[level].last = waiter
        } else {
            waiters.records[next].previous = waiter
        }
        hosts.records[host].waiting += 1
        waitingCount += 1
        if !coverBySpare(waiter, of: host) { hosts.records[host].uncovered += 1 }
        return waiter
    }

    /// Takes a request out of its line. Returns the dial that was made for it, which is now made for nobody, or none.
    mutating func leaveLine(_ waiter: Int) -> Int {
        let host = waiters.records[waiter].host
        let level = Int(waiters.records[waiter].place.priority.rawValue)
        let previous = waiters.records[waiter].previous
        let next = waiters.records[waiter].next
        if previous == PoolIndex.none {
            hosts.records[host].lines[level].first = next
        } else {
            waiters.records[previous].next = next
        }
        if next == PoolIndex.none {
            hosts.records[host].lines[level].last = previous
        } else {
            waiters.records[next].previous = previous
        }
        hosts.records[host].waiting -= 1
        waitingCount -= 1
        let dial = waiters.records[waiter].dial
        waiters.records[waiter].dial = PoolIndex.none
        if dial == PoolIndex.none { hosts.records[host].uncovered -= 1 }
        return dial
    }

    /// The request of a host that is served next.
    func firstWaiter(of host: Int) -> Int? {
        guard hosts.records[host].waiting > 0 else { return nil }
        var best = PoolIndex.none
        var bestRank = PoolRank(due: .max, behind: .max, sequence: .max)
        for level in 0..<PoolHostRecord<Key>.levelCount {
            let first = hosts.records[host].lines[level].first
            guard first != PoolIndex.none else { continue }
            let rank = waiters.records[first].place.rank(ageing: amounts.ageing)
            if rank < bestRank { (best, bestRank) = (first, rank) }
        }
        return best == PoolIndex.none ? nil : best
    }

    /// The first request of a host no dial is made for. Passes over as many covered ones as the host has dials.
    func firstUncovered(of host: Int) -> Int {
        var best = PoolIndex.none
        var bestRank = PoolRank(due: .max, behind: .max, sequence: .max)
        for level in 0..<PoolHostRecord<Key>.levelCount {
            var waiter = hosts.records[host].lines[level].first
            while waiter != PoolIndex.none, waiters.records[waiter].dial != PoolIndex.none {
                waiter = waiters.records[waiter].next
            }
            guard waiter != PoolIndex.none else { continue }
            let rank = waiters.records[waiter].place.rank(ageing: amounts.ageing)
            if rank < bestRank { (best, bestRank) = (waiter, rank) }
        }
        return best
    }

    /// Takes all waiting requests out of their lines, for shutdown. They are told in the order they came.
    mutating func failWaiters(_ effects: inout Effects) {
        var all: [Int] = []
        for host in hostPlaces.values {
            for level in 0..<PoolHostRecord<Key>.levelCount {
                var waiter = hosts.records[host].lines[level].first
                while waiter != PoolIndex.none {
                    all.append(waiter)
                    waiter = waiters.records[waiter].next
                }
            }
        }
        all.sort { waiters.records[$0].place.sequence < waiters.records[$1].place.sequence }
        for waiter in all {
            effects.fail(waiterName(waiter))
            let host = waiters.records[waiter].host
            _ = leaveLine(waiter)
            waiters.remove(waiter)
            reconsider(host)
            forgetIfEmpty(host)
        }
    }

    // MARK: Hosts that wait for the total limit

    /// Puts a host into the heap, moves it there, or takes it out, as its requests and its own limit demand.
    mutating func reconsider(_ host: Int) {
        let position = hosts.records[host].heapPosition
        let wants =
            !isShutDown && hosts.records[host].uncovered > 0 && hosts.records[host].open < amounts.perHost
        guard wants else {
            if position != PoolIndex.none { removeBlocked(at: position) }
            return
        }
        let waiter = firstUncovered(of: host)
        guard waiter != PoolIndex.none else {
            assertionFailure("an uncovered request is in no line")
            hosts.records[host].uncovered = 0
            reconsider(host)
            return
        }
        hosts.records[host].demand = waiters.records[waiter].place.rank(ageing: amounts.ageing)
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
