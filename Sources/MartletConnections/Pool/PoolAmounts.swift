import MartletTransport

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
