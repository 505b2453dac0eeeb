/// What must be true of a pool at all times, counted anew from its records. Slow; for tests.
extension PoolMachine {
    /// Checks the whole pool and returns a sentence for each thing that is wrong; nothing when all is well.
    ///
    /// - Parameter isDraining: Whether limits were lowered and connections in use may still exceed them.
    package func checkInvariants(isDraining: Bool = false) -> [String] {
        var faults: [String] = []
        var recount = PoolCounts()
        for (key, place) in hostPlaces {
            let host = hosts.records[place]
            let own = recountConnections(of: place, &faults)
            recount.leased += own.leased
            recount.idle += own.idle
            recount.dialling += own.dialling
            recount.waiting += own.waiting
            let counters = PoolCounts(
                leased: host.leased, idle: host.idle, dialling: host.dialling, waiting: host.waiting)
            if own != counters { faults.append("\(key) has \(own), its counters say \(counters)") }
            if host.key != key { faults.append("the table names \(key) otherwise") }
            checkRules(of: host, key, isDraining: isDraining, &faults)
        }
        if recount != counts { faults.append("the pool has \(recount), its counters say \(counts)") }
        if recount.connections != connections.count { faults.append("a connection belongs to no host") }
        let lent = connections.records.indices.filter {
            connections.records[$0].state != .gone && connections.records[$0].borrower != PoolIndex.none
        }
        for index in lent where waiters.records[connections.records[index].borrower].lender != index {
            faults.append("a place is lent to a request that does not have it")
        }
        for index in nested where waiters.records[index].holders.isEmpty {
            faults.append("a request is among the nested ones, and nobody waits for it")
        }
        let exempt = connections.records.count { $0.state == .leased && $0.isExempt } + lent.count
        if exempt != exemptCount || exempt != hostPlaces.values.reduce(0, { $0 + hosts.records[$1].exempt }) {
            faults.append("\(exempt) connections are exempt, the counters say \(exemptCount)")
        }
        if hosts.count != hostPlaces.count { faults.append("the table holds forgotten hosts") }
        if let recent, hostPlaces[recent.key] != recent.host {
            faults.append("\(recent.key) is remembered elsewhere")
        }
        if waiters.count != recount.waiting + grantedCount { faults.append("a waiter is in no line") }
        checkTotals(isDraining: isDraining, &faults)
        return faults
    }

    private var grantedCount: Int {
        connections.records.count { $0.state == .leased && $0.waiter != PoolIndex.none }
    }

    /// Counts what belongs to a host by walking its lists.
    private func recountConnections(of place: Int, _ faults: inout [String]) -> PoolCounts {
        let host = hosts.records[place]
        var own = PoolCounts()
        for record in connections.records where record.host == place {
            switch record.state {
            case .dialling: own.dialling += 1
            case .idle: own.idle += 1
            case .leased: own.leased += 1
            case .gone: break
            }
        }
        var uncovered = 0
        for waiter in host.line.waiters {
            let record = waiters.records[waiter]
            own.waiting += 1
            if record.host != place { faults.append("a request waits in a foreign line") }
            if record.connection != PoolIndex.none { faults.append("a served request waits") }
            let isUncovered = record.positions[PoolLine.Role.uncovered.rawValue] != PoolIndex.none
            if isUncovered != (record.dial == PoolIndex.none) {
                faults.append("covered and uncovered at once")
            }
            if record.dial == PoolIndex.none {
                uncovered += 1
            } else if connections.records[record.dial].waiter != waiter
                || connections.records[record.dial].state != .dialling
            {
                faults.append("a request counts on a dial that is not made for it")
            }
        }
        for line in [host.line, host.uncoveredLine] where !line.isInOrder(waiters, ageing: amounts.ageing) {
            faults.append("a line is out of order")
        }
        if uncovered != host.uncovered { faults.append("\(uncovered) uncovered, not \(host.uncovered)") }
        var idle = 0
        var index = host.newestIdle
        while index != PoolIndex.none {
            idle += 1
            if connections.records[index].state != .idle { faults.append("an idle stack holds another") }
            index = connections.records[index].below
        }
        if idle != own.idle { faults.append("the idle stack has \(idle) of \(own.idle)") }
        return own
    }

    /// Checks what must hold for one host.
    private func checkRules(
        of host: PoolHostRecord<Key>, _ key: Key, isDraining: Bool, _ faults: inout [String]
    ) {
        if host.open == 0, host.waiting == 0 { faults.append("\(key) should be forgotten") }
        if !isDraining, host.counted > host.limit { faults.append("\(key) is over its limit") }
        if host.idle > amounts.idlePerHost { faults.append("\(key) has too many idle connections") }
        if host.idle > 0, host.waiting > 0 {
            faults.append("a request to \(key) waits beside an idle connection")
        }
        if host.spareDial != PoolIndex.none, host.uncovered > 0 {
            faults.append("a request to \(key) has no dial beside a spare one")
        }
        let isInHeap = host.heapPosition != PoolIndex.none
        let wants = host.uncovered > 0 && host.counted < host.limit && !isShutDown
        if isInHeap != wants { faults.append("\(key) is in the heap: \(isInHeap), should be: \(wants)") }
        if wants, countedCount < amounts.total || idleCount > 0 {
            faults.append("a request to \(key) waits though a dial is possible")
        }
        if host.waiting > 0, host.dialling + host.leased == 0, !wants {
            faults.append("a request to \(key) waits without hope")
        }
    }

    /// Checks what must hold for the pool as a whole.
    private func checkTotals(isDraining: Bool, _ faults: inout [String]) {
        if !isDraining, countedCount > amounts.total { faults.append("the pool is over its limit") }
        if idleCount > amounts.idleTotal { faults.append("the pool has too many idle connections") }
        if isShutDown, waitingCount + idleCount > 0 { faults.append("something outlived the shutdown") }
        for (position, host) in blocked.enumerated() {
            if hosts.records[host].heapPosition != position {
                faults.append("the heap's positions are wrong")
            }
            let parent = blocked[max(0, position - 1) / 2]
            if hosts.records[host].demand < hosts.records[parent].demand {
                faults.append("the heap is unordered")
            }
        }
        var idle = 0
        var index = oldestIdle
        while index != PoolIndex.none {
            idle += 1
            if connections.records[index].deadline < earliestDeadline {
                faults.append("the timer is too late")
            }
            index = connections.records[index].newer
        }
        if idle != idleCount { faults.append("the list of idle connections has \(idle) of \(idleCount)") }
    }
}
