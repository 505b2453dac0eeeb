/// What the pool's owner asks between events.
extension PoolMachine {
    /// Whether a connection is being made under this name.
    package func isDialling(_ connection: PoolConnectionID) -> Bool {
        connections.holds(connection.index, connection.generation)
            && connections.records[connection.index].state == .dialling
    }

    /// Whether a waiting request has a dial made for it.
    package func isDialling(for waiter: PoolWaiterID) -> Bool {
        waiters.holds(waiter.index, waiter.generation) && waiters.records[waiter.index].dial != PoolIndex.none
    }

    /// When a request that waits, or was granted a connection, came.
    package func arrival(of waiter: PoolWaiterID) -> Instant? {
        guard waiters.holds(waiter.index, waiter.generation) else { return nil }
        return waiters.records[waiter.index].place.arrival
    }

    /// The request a dial is made for; `nil` when it has left.
    package func waiter(of dial: PoolConnectionID) -> PoolWaiterID? {
        guard isDialling(dial) else { return nil }
        let waiter = connections.records[dial.index].waiter
        return waiter == PoolIndex.none ? nil : waiterName(waiter)
    }

    /// Whether nobody has a connection, which is open.
    package func isIdle(_ connection: PoolConnectionID) -> Bool {
        connections.holds(connection.index, connection.generation)
            && connections.records[connection.index].state == .idle
    }

    /// The name of the connection with an index, where it is idle.
    package func idleConnection(at index: Int) -> PoolConnectionID? {
        guard connections.records.indices.contains(index), connections.records[index].state == .idle else {
            return nil
        }
        return name(index)
    }

    /// Closes all idle connections of a key: one of them was found dead, and the others are as old.
    package mutating func closeIdle(_ key: Key) -> Effects {
        var effects = Effects()
        guard let host = hostPlaces[key] else { return effects }
        while hosts.records[host].newestIdle != PoolIndex.none {
            closeIdle(hosts.records[host].newestIdle, &effects)
        }
        settle(host, &effects)
        return effects
    }
}
