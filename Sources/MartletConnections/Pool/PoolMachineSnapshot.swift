extension PoolMachine: CustomStringConvertible {
    /// What the pool holds now. Takes time in proportion to the number of hosts.
    package var snapshot: PoolSnapshot<Key> {
        PoolSnapshot(
            total: counts,
            hosts: hostPlaces.mapValues { place in
                let host = hosts.records[place]
                return PoolCounts(
                    leased: host.leased, idle: host.idle, dialling: host.dialling, waiting: host.waiting)
            })
    }

    /// The counts of all hosts together. Takes constant time.
    package var counts: PoolCounts {
        PoolCounts(leased: leasedCount, idle: idleCount, dialling: diallingCount, waiting: waitingCount)
    }

    /// The snapshot as text.
    package var description: String { snapshot.description }
}
