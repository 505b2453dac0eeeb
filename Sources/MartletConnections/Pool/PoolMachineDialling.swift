/// Which dials are made, and for whom.
///
/// A waiting request is *covered* when a dial is made for it. A dial whose request needs it no more is passed on to
/// the first uncovered request of its host; if there is none, it is spare (kept, because its request was served
/// otherwise) or abandoned (its request was cancelled). A spare dial covers the next request that comes.
extension PoolMachine {
    /// Whether connections have to be closed to get below the limits that concern this host.
    func isOverLimit(_ host: Int) -> Bool {
        // The connection in question may just have been taken off its host's counters, never off the table.
        countedCount > amounts.total || hosts.records[host].counted + 1 > hosts.records[host].limit
    }

    /// Whether all hosts together have more connections than they may.
    var isOverTotals: Bool { countedCount > amounts.total || idleCount > amounts.idleTotal }

    /// After an event that concerned a host: makes the dials that became possible, forgets the host if it is empty.
    mutating func settle(_ host: Int, _ effects: inout Effects) {
        // A request whose dial came to nothing may be left uncovered beside a spare one.
        while hosts.records[host].uncovered > 0, hosts.records[host].spareDial != PoolIndex.none {
            let waiter = firstUncovered(of: host)
            guard waiter != PoolIndex.none, coverBySpare(waiter, of: host) else { break }
            effects.changeCoverage(of: waiterName(waiter))
        }
        reconsider(host)
        dialForBlocked(&effects)
        forgetIfEmpty(host)
    }

    /// Makes the dials that the limits permit, and those that are made above them.
    mutating func dialForBlocked(_ effects: inout Effects) {
        dialBelowLimit(&effects)
        if !nested.isEmpty, lendPlaces() { dialBelowLimit(&effects) }
    }

    /// Makes dials for hosts as long as there is room below the total limit, or room can be made.
    private mutating func dialBelowLimit(_ effects: inout Effects) {
        while let host = blocked.first {
            while countedCount >= amounts.total, oldestIdle != PoolIndex.none {
                let other = connections.records[oldestIdle].host
                closeIdle(oldestIdle, &effects)
                forgetIfEmpty(other)
            }
            guard countedCount < amounts.total else { return }
            dial(host, &effects)
            reconsider(host)
        }
    }

    /// Dials for the first uncovered request of a host.
    private mutating func dial(_ host: Int, _ effects: inout Effects) {
        let waiter = firstUncovered(of: host)
        guard waiter != PoolIndex.none, let key = hosts.records[host].key else {
            assertionFailure("a dial for nobody")
            return
        }
        var record = PoolConnectionRecord(state: .dialling, host: host)
        record.waiter = waiter
        let index = connections.insert(record)
        hosts.records[host].dialling += 1
        diallingCount += 1
        cover(waiter, by: index)
        effects.dial(Dial(connection: name(index), key: key))
    }

    /// Ends a dial: its request, if it has one, is uncovered again. The state of the connection is about to be set.
    mutating func endDial(_ index: Int) {
        endLoan(by: index)
        let host = connections.records[index].host
        let waiter = connections.records[index].waiter
        if waiter != PoolIndex.none {
            uncover(waiter)
            connections.records[index].waiter = PoolIndex.none
        } else if !connections.records[index].isAbandoned {
            unlinkSpare(index)
        }
        connections.records[index].isAdopted = false
        connections.records[index].isAbandoned = false
        hosts.records[host].dialling -= 1
        diallingCount -= 1
    }

    /// Reports a request whose dial has ended, if it still waits.
    func noteUncovered(_ waiter: Int, _ effects: inout Effects) {
        guard waiter != PoolIndex.none, waiters.records[waiter].connection == PoolIndex.none,
            waiters.records[waiter].dial == PoolIndex.none
        else { return }
        effects.changeCoverage(of: waiterName(waiter))
    }

    /// Passes a dial whose request has left on to the first uncovered one. Returns whether there was one.
    mutating func passOn(_ index: Int, _ effects: inout Effects) -> Bool {
        let host = connections.records[index].host
        connections.records[index].waiter = PoolIndex.none
        let waiter = firstUncovered(of: host)
        guard waiter != PoolIndex.none else { return false }
        adopt(index, by: waiter)
        effects.changeCoverage(of: waiterName(waiter))
        return true
    }

    /// Makes a waiter the one a dial is made for.
    private mutating func adopt(_ index: Int, by waiter: Int) {
        connections.records[index].waiter = waiter
        connections.records[index].isAdopted = true
        cover(waiter, by: index)
    }

    /// Keeps a dial nobody waits for: its connection will be idle, or serve a request that comes meanwhile.
    mutating func keepSpare(_ index: Int) {
        let host = connections.records[index].host
        let below = hosts.records[host].spareDial
        connections.records[index].below = below
        connections.records[index].above = PoolIndex.none
        if below != PoolIndex.none { connections.records[below].above = index }
        hosts.records[host].spareDial = index
    }

    /// Covers a new waiter by a spare dial of its host. Returns whether there was one.
    mutating func coverBySpare(_ waiter: Int, of host: Int) -> Bool {
        let index = hosts.records[host].spareDial
        guard index != PoolIndex.none else { return false }
        unlinkSpare(index)
        adopt(index, by: waiter)
        return true
    }

    private mutating func unlinkSpare(_ index: Int) {
        let below = connections.records[index].below
        let above = connections.records[index].above
        if below != PoolIndex.none { connections.records[below].above = above }
        if above != PoolIndex.none {
            connections.records[above].below = below
        } else {
            hosts.records[connections.records[index].host].spareDial = below
        }
    }

    /// Gives up all dials, for shutdown.
    mutating func abandonDials(_ effects: inout Effects) {
        for index in connections.records.indices where connections.records[index].state == .dialling {
            let waiter = connections.records[index].waiter
            if waiter != PoolIndex.none {
                uncover(waiter)
                connections.records[index].waiter = PoolIndex.none
            } else if connections.records[index].isAbandoned {
                continue
            } else {
                unlinkSpare(index)
            }
            connections.records[index].isAbandoned = true
            effects.abandon(name(index))
        }
    }

    /// Forgets a host without connections and requests, so that the pool does not grow with the hosts ever met.
    mutating func forgetIfEmpty(_ host: Int) {
        guard hosts.records[host].open == 0, hosts.records[host].waiting == 0,
            let key = hosts.records[host].key
        else { return }
        hostPlaces[key] = nil
        forgetRecent(host)
        hosts.records[host].key = nil
        hosts.remove(host)
    }
}

extension PoolMachine {
    /// A connection to be made.
    package struct Dial: Hashable, Sendable {
        /// The name of the connection to be. Report its end with `dialSucceeded` or `dialFailed`, exactly once.
        package let connection: PoolConnectionID
        /// Where it leads.
        package let key: Key
    }

    /// What the pool's owner has to do after an event. The parts do not depend on each other.
    ///
    /// Run them after the lock around the machine is given up. Nothing is allocated for empty parts.
    package struct Effects: Hashable, Sendable {
        /// The parts that are empty after the commonest events.
        private struct Rare: Hashable, Sendable {
            var failures: [PoolWaiterID] = []
            var closes: [PoolConnectionID] = []
            var dials: [Dial] = []
            var abandons: [PoolConnectionID] = []
            var coverageChanges: [PoolWaiterID] = []
        }

        /// The one request that gets a connection by this event. It holds the connection from now on.
        package var grant: PoolGrant?
        /// No element or one: four empty arrays cost more to hand around than the rest of a hot event takes.
        private var rare: [Rare] = []

        /// Creates effects; nothing at all by default.
        package init(
            grant: PoolGrant? = nil, failures: [PoolWaiterID] = [], closes: [PoolConnectionID] = [],
            dials: [Dial] = [], abandons: [PoolConnectionID] = [], coverageChanges: [PoolWaiterID] = []
        ) {
            self.grant = grant
            let parts = Rare(
                failures: failures, closes: closes, dials: dials, abandons: abandons,
                coverageChanges: coverageChanges)
            if parts != Rare() { rare = [parts] }
        }

        /// Requests that wait no more and have to be told: the failed dial was theirs, or the pool shuts down.
        package var failures: [PoolWaiterID] { rare.first?.failures ?? [] }

        /// Connections to be closed; the machine has forgotten them.
        package var closes: [PoolConnectionID] { rare.first?.closes ?? [] }

        /// Connections to be made.
        package var dials: [Dial] { rare.first?.dials ?? [] }

        /// Dials nobody needs any more: cancel them, and report their end as for every dial. They count against the
        /// limits until then, and one that succeeds nevertheless is used.
        package var abandons: [PoolConnectionID] { rare.first?.abandons ?? [] }

        /// Requests that went on waiting, but for which a dial of another request is made now, or no dial any more. Ask
        /// ``PoolMachine/isDialling(for:)`` which of the two, and set their clocks.
        package var coverageChanges: [PoolWaiterID] { rare.first?.coverageChanges ?? [] }

        /// Whether there is nothing to do.
        package var isEmpty: Bool { grant == nil && !hasRare }

        /// Whether there is more to do than the grant: failures, closes, dials, abandons or
        /// changes of coverage.
        package var hasRare: Bool { !rare.isEmpty }

        mutating func fail(_ waiter: PoolWaiterID) { orders.failures.append(waiter) }
        mutating func close(_ connection: PoolConnectionID) { orders.closes.append(connection) }
        mutating func dial(_ dial: Dial) { orders.dials.append(dial) }
        mutating func abandon(_ connection: PoolConnectionID) { orders.abandons.append(connection) }
        mutating func changeCoverage(of waiter: PoolWaiterID) { orders.coverageChanges.append(waiter) }

        /// The rare parts, to be added to.
        private var orders: Rare {
            get { rare.first ?? Rare() }
            _modify {
                if rare.isEmpty { rare.append(Rare()) }
                yield &rare[0]
            }
        }
    }

    /// The answer to a request: a connection, a place in the line, or a refusal.
    package struct Admission: Hashable, Sendable {
        /// The idle connection the request holds from now on and has to release.
        package var lease: PoolConnectionID?
        /// The name under which the request waits. It is named again in `grant`, in `failures`, or when cancelled.
        package var waiter: PoolWaiterID?
        /// What else has to be done.
        package var effects = Effects()

        /// Whether the pool is shut down and took the request no more.
        package var isRefused: Bool { lease == nil && waiter == nil }
    }

    /// The answer to a cancellation.
    package struct Cancellation: Hashable, Sendable {
        /// What the request was doing.
        package enum Outcome: Hashable, Sendable {
            /// It waited, and waits no more. Nothing else will be said about it: tell it now.
            case withdrawn
            /// It had been granted this connection before and holds it still: whoever received the grant has to
            /// release it. Cancelling changed nothing.
            case alreadyGranted(PoolConnectionID)
            /// There is no such request: it was cancelled, failed, or gave its connection back.
            case unknown
        }

        /// What the request was doing.
        package var outcome: Outcome
        /// What else has to be done.
        package var effects = Effects()
    }
}
