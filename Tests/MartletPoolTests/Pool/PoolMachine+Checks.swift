@testable import MartletPool

// The effects of an event, grouped by kind.
extension PoolMachine.Effects {
    init(
        grant: PoolGrant? = nil, failures: [PoolWaiterID] = [], closes: [PoolConnectionID] = [],
        dials: [PoolMachine.Dial] = [], abandons: [PoolConnectionID] = [],
        dialAssignmentChanges: [PoolWaiterID] = []
    ) {
        var orders = failures.map(Order.fail) + closes.map(Order.close) + dials.map(Order.dial)
        orders += abandons.map(Order.abandon) + dialAssignmentChanges.map(Order.dialAssignmentChanged)
        self.init(grant: grant, orders: orders)
    }

    var failures: [PoolWaiterID] { orders.compactMap { if case .fail(let id) = $0 { id } else { nil } } }
    var closes: [PoolConnectionID] { orders.compactMap { if case .close(let id) = $0 { id } else { nil } } }
    var dials: [PoolMachine.Dial] { orders.compactMap { if case .dial(let dial) = $0 { dial } else { nil } } }
    var abandons: [PoolConnectionID] {
        orders.compactMap { if case .abandon(let id) = $0 { id } else { nil } }
    }
    var dialAssignmentChanges: [PoolWaiterID] {
        orders.compactMap { if case .dialAssignmentChanged(let id) = $0 { id } else { nil } }
    }
}

extension PoolMachine.Admission {
    /// Whether the pool is shut down and rejected the request.
    var isRejected: Bool { lease == nil && waiter == nil }
}

extension PoolMachine {
    /// A cancellation, and the state of the request before it.
    struct Cancellation: Equatable {
        enum Outcome: Equatable {
            case withdrawn
            case alreadyGranted(PoolConnectionID)
            case unknown
        }

        var outcome: Outcome
        var effects = Effects(orders: [])
    }

    mutating func cancel(_ waiter: PoolWaiterID) -> Cancellation {
        let granted = waiters.index(of: waiter).flatMap { waiters.records[$0].connection }
        if let effects = cancelWaiter(waiter) { return Cancellation(outcome: .withdrawn, effects: effects) }
        return Cancellation(outcome: granted.map { .alreadyGranted(connections.name($0)) } ?? .unknown)
    }

    /// Whether the pool is shut down and its last connection is closed.
    var isDrained: Bool { isShutDown && connections.count == 0 }

    /// Returns the key of a connection, or `nil` if it is closed.
    func key(of connection: PoolConnectionID) -> Key? {
        connections.index(of: connection).flatMap { hosts.records[connections.records[$0].host].key }
    }
}

// The invariants of a pool, computed again from its records.
extension PoolMachine {
    /// Checks the whole pool and returns a sentence for each violation.
    /// - Parameter isDraining: Whether limits were lowered and connections in use may still exceed them.
    func checkInvariants(isDraining: Bool = false) -> [String] {
        var faults: [String] = []
        var recount = PoolCounts()
        for (key, place) in hostIndexes {
            let host = hosts.records[place]
            let own = recountConnections(of: place, &faults)
            recount.leased += own.leased
            recount.idle += own.idle
            recount.dialing += own.dialing
            recount.waiting += own.waiting
            if own != host.counts { faults.append("\(key) has \(own), its counters say \(host.counts)") }
            if host.key != key { faults.append("the table names \(key) otherwise") }
            checkRules(of: host, key, isDraining: isDraining, &faults)
        }
        if recount != counts { faults.append("the pool has \(recount), its counters say \(counts)") }
        if recount.leased + recount.idle + recount.dialing != connections.count {
            faults.append("a connection belongs to no host")
        }
        let lent = connections.records.indices.filter {
            connections.records[$0].state != .gone && connections.records[$0].borrower != PoolIndex.none
        }
        for index in lent
        where !waiters.records[connections.records[index].borrower].holders.contains(connections.name(index)) {
            faults.append("a slot is lent to a request of another call")
        }
        for index in nested where waiters.records[index].holders.isEmpty {
            faults.append("a request is among the nested ones, and nobody waits for it")
        }
        let exempt = connections.records.count { $0.state == .leased && $0.isExempt } + lent.count
        if exempt != exemptCount || exempt != hostIndexes.values.reduce(0, { $0 + hosts.records[$1].exempt }) {
            faults.append("\(exempt) connections are exempt, the counters say \(exemptCount)")
        }
        if hosts.count != hostIndexes.count { faults.append("the table holds forgotten hosts") }
        if let recent, hostIndexes[recent.key] != recent.host {
            faults.append("\(recent.key) is remembered elsewhere")
        }
        let granted = connections.records.count { $0.state == .leased && $0.waiter != PoolIndex.none }
        if waiters.count != recount.waiting + granted { faults.append("a waiter is in no queue") }
        checkTotals(isDraining: isDraining, &faults)
        return faults
    }

    /// Counts the connections of a host by walking its lists.
    private func recountConnections(of place: Int, _ faults: inout [String]) -> PoolCounts {
        let host = hosts.records[place]
        var own = PoolCounts()
        for record in connections.records where record.host == place {
            switch record.state {
            case .dialing, .adopted, .spare, .abandoned:
                own.dialing += 1
                if (record.state == .dialing || record.state == .adopted)
                    != (record.waiter != PoolIndex.none)
                {
                    faults.append("a dial of the wrong kind")
                }
            case .idle: own.idle += 1
            case .leased: own.leased += 1
            case .gone: break
            }
        }
        var countWithoutDial = 0
        for waiter in host.queue.entries.map(\.index) {
            let record = waiters.records[waiter]
            own.waiting += 1
            if record.host != place { faults.append("a request waits in a foreign queue") }
            if record.connection != nil { faults.append("a served request waits") }
            let isInHeap = host.waitersWithoutDial.entries.contains { $0.index == waiter }
            if isInHeap != record.isWithoutDial { faults.append("with and without a dial at once") }
            if record.isWithoutDial { countWithoutDial += 1 }
            if let dial = record.dial,
                connections.records[dial].waiter != waiter || !connections.records[dial].state.isDialing
            {
                faults.append("a request counts on a dial that is not made for it")
            }
        }
        if !isInOrder(host.queue, queuePositions) || !isInOrder(host.waitersWithoutDial, positionsWithoutDial) {
            faults.append("a queue is out of order")
        }
        if countWithoutDial != host.waitersWithoutDial.count {
            faults.append("\(countWithoutDial) without a dial, not \(host.waitersWithoutDial.count)")
        }
        let idle = host.idle.indices(.host, connections)
        if idle.contains(where: { connections.records[$0].state != .idle }) {
            faults.append("an idle stack holds another")
        }
        if idle.count != own.idle { faults.append("the idle stack has \(idle.count) of \(own.idle)") }
        let spare = connections.records.indices.filter {
            connections.records[$0].host == place && connections.records[$0].state == .spare
        }
        if Set(spare) != Set(host.spareDials) { faults.append("a spare dial is not among them") }
        return own
    }

    /// Returns whether each request knows its position and the queue is in order.
    private func isInOrder(_ queue: PoolHeap, _ positions: [Int]) -> Bool {
        queue.entries.enumerated().allSatisfy { position, entry in
            positions[entry.index] == position
                && waiters.records[entry.index].place.rank(aging: amounts.aging) == entry.rank
                && !(entry.rank < queue.entries[max(0, position - 1) / 2].rank)
        }
    }

    /// Checks the invariants of one host.
    private func checkRules(
        of host: PoolHostRecord<Key>, _ key: Key, isDraining: Bool, _ faults: inout [String]
    ) {
        if host.open == 0, host.queue.count == 0 { faults.append("\(key) should be forgotten") }
        if !isDraining, host.counted > host.limit { faults.append("\(key) is over its limit") }
        if host.idle.count > amounts.idlePerHost { faults.append("\(key) has too many idle connections") }
        if host.idle.count > 0, host.queue.count > 0 {
            faults.append("a request to \(key) waits beside an idle connection")
        }
        if !host.spareDials.isEmpty, host.waitersWithoutDial.count > 0 {
            faults.append("a request to \(key) has no dial beside a spare one")
        }
        let isInHeap = blocked.entries.contains { hosts.records[$0.index].key == key }
        let wants = host.waitersWithoutDial.count > 0 && host.counted < host.limit && !isShutDown
        if isInHeap != wants { faults.append("\(key) is in the heap: \(isInHeap), should be: \(wants)") }
        if wants, countedCount < amounts.total || idle.count > 0 {
            faults.append("a request to \(key) waits though a dial is possible")
        }
        if host.queue.count > 0, host.open == host.idle.count, !wants {
            faults.append("a request to \(key) waits without hope")
        }
    }

    /// Checks the invariants of the whole pool.
    private func checkTotals(isDraining: Bool, _ faults: inout [String]) {
        if !isDraining, countedCount > amounts.total { faults.append("the pool is over its limit") }
        if idle.count > amounts.idleTotal { faults.append("the pool has too many idle connections") }
        if isShutDown, waitingCount + idle.count > 0 { faults.append("something outlived the shutdown") }
        for (position, entry) in blocked.entries.enumerated() {
            if blockedPositions[entry.index] != position { faults.append("the heap's positions are wrong") }
            if entry.rank < blocked.entries[max(0, position - 1) / 2].rank {
                faults.append("the heap is unordered")
            }
            if entry.rank != hosts.records[entry.index].waitersWithoutDial.first?.rank {
                faults.append("the heap has another rank than the host's first request")
            }
        }
        let all = idle.indices(.pool, connections)
        if all.contains(where: { connections.records[$0].deadline < earliestDeadline }) {
            faults.append("the timer is too late")
        }
        if all.count != idle.count {
            faults.append("the list of idle connections has \(all.count) of \(idle.count)")
        }
    }
}

extension PoolCounts {
    /// The number of connections that count toward the limits.
    var connections: Int { leased + idle + dialing }
}
