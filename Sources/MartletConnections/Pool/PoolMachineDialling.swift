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
