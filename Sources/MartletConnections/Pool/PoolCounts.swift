package import MartletTransport

/// How many connections are in each state, and how many requests wait for one.
package struct PoolCounts: Hashable, Sendable, CustomStringConvertible {
    /// Connections in use.
    package var leased = 0
    /// Connections that wait for a request.
    package var idle = 0
    /// Connections being made, those given up but not yet ended included.
    package var dialling = 0
    /// Requests that wait for a connection.
    package var waiting = 0

    /// All connections that count against the limits.
    package var connections: Int { leased + idle + dialling }

    /// For example `2 leased, 1 idle, 0 dialling, 3 waiting`.
    package var description: String {
        "\(leased) leased, \(idle) idle, \(dialling) dialling, \(waiting) waiting"
    }
}

/// ``PoolLimits`` as the machine uses them: clamped to their ranges, times in nanoseconds.
struct PoolAmounts: Sendable {
    /// The most connections to one host, at least 1.
    let perHost: Int
    /// The most connections in all, at least 1.
    let total: Int
    /// The most idle connections to one host.
    let idlePerHost: Int
    /// The most idle connections in all.
    let idleTotal: Int
    /// How long a connection may be idle.
    let idleLifetime: UInt64
    /// How old a connection may grow.
    let age: UInt64
    /// How many requests a connection may carry, at least 1.
    let uses: Int
    /// What is taken off a server's Keep-Alive timeout.
    let margin: UInt64
    /// How long a request waits to gain a priority level.
    let ageing: UInt64

    /// Longer than any process runs, yet short enough that five of them can be added: nine years.
    private static let forever: UInt64 = 1 << 58

    /// Converts limits.
    init(_ limits: PoolLimits) {
        perHost = max(1, limits.connectionsPerHost)
        total = max(1, limits.totalConnections)
        idlePerHost = max(0, limits.idleConnectionsPerHost)
        idleTotal = max(0, limits.idleConnections)
        idleLifetime = Self.nanoseconds(limits.idleLifetime)
        age = limits.maximumAge.map(Self.nanoseconds) ?? .max
        uses = max(1, limits.maximumUses ?? .max)
        margin = Self.nanoseconds(limits.keepAliveMargin)
        ageing = limits.ageingInterval.map(Self.nanoseconds) ?? Self.forever
    }

    /// When a connection released at `now` counts as closed by its server; never, if that said nothing.
    func serverDeadline(_ timeout: UInt64?, now: UInt64) -> UInt64 {
        guard let timeout else { return .max }
        return Self.sum(now, timeout - min(margin, timeout / 2))
    }

    /// The sum of an instant and a time; the end of all times if there is no such instant.
    static func sum(_ instant: UInt64, _ time: UInt64) -> UInt64 {
        let (sum, isTooLate) = instant.addingReportingOverflow(time)
        return isTooLate ? .max : sum
    }

    private static func nanoseconds(_ duration: Duration) -> UInt64 {
        min(UInt64(max(0, duration.wholeNanoseconds)), forever)
    }
}

/// A connection that goes to a request that waited for it.
package struct PoolGrant: Hashable, Sendable {
    /// The request, which waits no more.
    package let waiter: PoolWaiterID
    /// The connection, which the request now holds and has to release.
    package let connection: PoolConnectionID
}

/// What a pool holds at one moment, for diagnostics and tests.
package struct PoolSnapshot<Key: Hashable & Sendable>: Hashable, Sendable, CustomStringConvertible {
    /// All hosts together.
    package var total: PoolCounts
    /// Every host with a connection or a waiting request.
    package var hosts: [Key: PoolCounts]

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

/// Which of this machine's addresses it had and has no more.
///
/// Only what was there before can be lost: a program may use addresses that no interface has (`IP_FREEBIND`, local routes).
package struct AddressLoss: Sendable {
    /// At how many lost addresses they are forgotten: private addresses of IPv6 change daily, for years.
    private static let countLimit = 1_024

    private var held: Set<IPAddress> = []
    /// Those that are lost, and have not come back.
    package private(set) var lost: Set<IPAddress> = []

    /// Nothing is known yet.
    package init() {}

    /// The machine has these addresses now.
    /// - Returns: Whether any has gone since it was told last.
    package mutating func update(_ now: Set<IPAddress>) -> Bool {
        let gone = held.subtracting(now)
        held = now
        lost.subtract(now)
        if lost.count + gone.count > AddressLoss.countLimit { lost = [] }
        lost.formUnion(gone)
        return !gone.isEmpty
    }

    /// Whether a socket's own address, as it is described, is lost. Those of the loopback network never are: all of it is
    /// this machine.
    package func isLost(_ localAddress: String) -> Bool {
        guard !lost.isEmpty, let address = IPAddress(socket: localAddress) else { return false }
        return !address.isLoopback && lost.contains(address)
    }
}
