/// What a pool holds at one moment, for diagnostics and tests.
package struct PoolSnapshot<Key: Hashable & Sendable>: Hashable, Sendable, CustomStringConvertible {
    /// All hosts together.
    package var total: PoolCounts
    /// Every host with a connection or a waiting request.
    package var hosts: [Key: PoolCounts]

    /// Creates a snapshot.
    package init(total: PoolCounts, hosts: [Key: PoolCounts]) {
        self.total = total
        self.hosts = hosts
    }

    /// One line for the whole and one for each host, in the order of their names.
    ///
    /// For example:
    /// ```
    /// pool: 2 leased, 1 idle, 0 dialling, 3 waiting
    /// example.com: 2 leased, 1 idle, 0 dialling, 3 waiting
    /// ```
    package var description: String {
        let lines = hosts.map { (name: String(describing: $0.key), counts: $0.value) }
        let sorted = lines.sorted { $0.name < $1.name }.map { "\($0.name): \($0.counts)" }
        return (["pool: \(total)"] + sorted).joined(separator: "\n")
    }
}
