import MartletTransport

/// The limits of the number and the lifetime of connections.
///
/// Here, connections to one “host” have the same scheme, host, port, proxy, TLS identity and trust. A number below its
/// range counts as the minimum, and a negative duration as zero.
public struct PoolLimits: Hashable, Codable, Sendable {
    /// The maximum number of connections to one host: dialing, in use and idle together. At least 1; 16 by default.
    ///
    /// Browsers use 6, AFNetworking 4 and 6, OkHttp 5 requests, async-http-client 8; Go sets no limit. The limit keeps
    /// a burst of requests from looking like an attack to the host.
    ///
    /// A call made inside the closure of a stream, or inside a handler, does not wait for the connection that the outer
    /// call holds. It is served first, and one such call per held connection may exceed the limits. A wait of more than
    /// 10 s is logged with its reason (`notice`). If the wait times out, the error reports the use of the connections.
    public var connectionsPerHost: Int
    /// Limits for single hosts that replace ``connectionsPerHost``; none by default.
    ///
    /// A host is named as in URLs, in lower case: `images.example.com` for all of its ports, `images.example.com:8443`
    /// for one of them, which takes precedence. If requests are sent to a proxy itself, the proxy's name counts.
    public var connectionsToHosts: [String: Int]
    /// The maximum number of connections to all hosts together: dialing, in use and idle. At least 1; 256 by default.
    ///
    /// OkHttp allows 64 concurrent requests, httpx 100 connections, Go any number. The default is well below the usual
    /// limit of 1,024 descriptors. At the limit, a new connection replaces the least recently used idle one.
    public var totalConnections: Int
    /// The maximum number of idle connections to one host; 16 by default. Go keeps 2, httpx 20 in all.
    ///
    /// With zero, a connection is reused only if a request already waits when it becomes free.
    public var idleConnectionsPerHost: Int
    /// The maximum number of idle connections to all hosts together; 256 by default. Go keeps 100, OkHttp 5.
    public var idleConnections: Int
    /// The time after which an idle connection is closed; 60 seconds by default.
    ///
    /// It should be shorter than the keep-alive timeout of servers (nginx 75 s). Then the client closes first, and no
    /// request uses a connection that is being closed. Go waits 90 s, OkHttp 5 min, httpx 5 s.
    public var idleLifetime: Duration
    /// The age after which a connection carries no further request; `nil`, the default, for no limit.
    ///
    /// Useful with load balancers and changing DNS. A connection in use is not disturbed: the age is checked when it
    /// becomes free, while it is idle and before it is used again.
    public var maximumAge: Duration?
    /// The maximum number of requests on a connection; at least 1; `nil`, the default, for no limit.
    public var maximumUses: Int?
    /// The time before the end of `Keep-Alive: timeout=N` at which a connection counts as closed; 1 s by default.
    ///
    /// It covers the time that a request needs to reach the server. At most half of N is subtracted.
    public var keepAliveMargin: Duration
    /// The time after which a waiting request gains one level of ``RequestPriority``; 5 seconds by default.
    ///
    /// With 5 s, a request of the lowest priority is served before new ones of the highest after 20 s. Zero serves all
    /// requests first come, first served; `nil` never raises a priority, so others may wait indefinitely.
    public var agingInterval: Duration?

    /// Creates limits with the documented defaults.
    public init(
        connectionsPerHost: Int = 16, connectionsToHosts: [String: Int] = [:], totalConnections: Int = 256,
        idleConnectionsPerHost: Int = 16, idleConnections: Int = 256, idleLifetime: Duration = .seconds(60),
        maximumAge: Duration? = nil, maximumUses: Int? = nil, keepAliveMargin: Duration = .seconds(1),
        agingInterval: Duration? = .seconds(5)
    ) {
        (self.connectionsPerHost, self.connectionsToHosts) = (connectionsPerHost, connectionsToHosts)
        (self.totalConnections, self.idleConnectionsPerHost) = (totalConnections, idleConnectionsPerHost)
        (self.idleConnections, self.idleLifetime) = (idleConnections, idleLifetime)
        (self.maximumAge, self.maximumUses) = (maximumAge, maximumUses)
        (self.keepAliveMargin, self.agingInterval) = (keepAliveMargin, agingInterval)
    }

    private enum CodingKeys: CodingKey {
        case connectionsPerHost, connectionsToHosts, totalConnections, idleConnectionsPerHost, idleConnections
        case idleLifetime, maximumAge, maximumUses, keepAliveMargin, agingInterval
    }

    /// Decodes limits. Missing ones have their default.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.init()
        connectionsPerHost = try container.value(.connectionsPerHost, or: connectionsPerHost)
        connectionsToHosts = try container.value(.connectionsToHosts, or: connectionsToHosts)
        totalConnections = try container.value(.totalConnections, or: totalConnections)
        idleConnectionsPerHost = try container.value(.idleConnectionsPerHost, or: idleConnectionsPerHost)
        idleConnections = try container.value(.idleConnections, or: idleConnections)
        idleLifetime = try container.value(.idleLifetime, or: idleLifetime)
        maximumAge = try container.decodeIfPresent(Duration.self, forKey: .maximumAge)
        maximumUses = try container.decodeIfPresent(Int.self, forKey: .maximumUses)
        keepAliveMargin = try container.value(.keepAliveMargin, or: keepAliveMargin)
        // A `null` means that priorities are never raised.
        agingInterval = try container.optional(.agingInterval, or: agingInterval)
    }

    /// Encodes the limits.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(connectionsPerHost, forKey: .connectionsPerHost)
        try container.encode(connectionsToHosts, forKey: .connectionsToHosts)
        try container.encode(totalConnections, forKey: .totalConnections)
        try container.encode(idleConnectionsPerHost, forKey: .idleConnectionsPerHost)
        try container.encode(idleConnections, forKey: .idleConnections)
        try container.encode(idleLifetime, forKey: .idleLifetime)
        try container.encodeIfPresent(maximumAge, forKey: .maximumAge)
        try container.encodeIfPresent(maximumUses, forKey: .maximumUses)
        try container.encode(keepAliveMargin, forKey: .keepAliveMargin)
        try container.encode(agingInterval, forKey: .agingInterval)
    }

    /// The limit of a host in ``connectionsToHosts``; `nil` without an entry.
    func connections(to host: String, port: Int) -> Int? {
        guard !connectionsToHosts.isEmpty else { return nil }
        let name = host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]" : host
        return connectionsToHosts["\(name):\(port)"] ?? connectionsToHosts[name]
    }
}

/// ``PoolLimits`` as the machine uses them: clamped to their ranges, times in nanoseconds.
struct PoolAmounts: Sendable {
    let perHost: Int
    let total: Int
    let idlePerHost: Int
    let idleTotal: Int
    let idleLifetime: UInt64
    let age: UInt64
    let uses: Int
    private let margin: UInt64
    let aging: UInt64
    /// Nine years in nanoseconds: longer than any process runs, and short enough to be added five times.
    private static let forever: UInt64 = 1 << 58

    init(_ limits: PoolLimits) {
        perHost = max(1, limits.connectionsPerHost)
        total = max(1, limits.totalConnections)
        idlePerHost = max(0, limits.idleConnectionsPerHost)
        idleTotal = max(0, limits.idleConnections)
        idleLifetime = Self.nanoseconds(limits.idleLifetime)
        age = limits.maximumAge.map(Self.nanoseconds) ?? .max
        uses = max(1, limits.maximumUses ?? .max)
        margin = Self.nanoseconds(limits.keepAliveMargin)
        aging = limits.agingInterval.map(Self.nanoseconds) ?? Self.forever
    }

    /// The time at which a connection that is released now counts as closed by its server; `.max` without a timeout.
    func serverDeadline(_ timeout: UInt64?, now: UInt64) -> UInt64 {
        guard let timeout else { return .max }
        return Self.sum(now, timeout - min(margin, timeout / 2))
    }

    /// The sum of an instant and a duration; `.max` if it overflows.
    static func sum(_ instant: UInt64, _ time: UInt64) -> UInt64 {
        let (sum, isTooLate) = instant.addingReportingOverflow(time)
        return isTooLate ? .max : sum
    }

    private static func nanoseconds(_ duration: Duration) -> UInt64 {
        min(UInt64(max(0, duration.wholeNanoseconds)), forever)
    }
}

/// The urgency of a request while it waits for a connection.
///
/// Priorities order waiting requests only; a request that has its connection is never disturbed. Requests of one
/// priority are served first come, first served, unless they select another ``QueueOrder``. A waiting request gains one
/// level for every ``PoolLimits/agingInterval``, so that requests of a low priority are served in the end.
///
/// The five levels are those of Foundation's operation queues, which AFNetworking and MKNetworkKit exposed.
public enum RequestPriority: UInt8, Comparable, CaseIterable, Codable, Sendable {
    /// Work without a waiting user: prefetching, telemetry.
    case lowest
    /// Work that may take a while: bulk uploads.
    case low
    /// The default priority.
    case normal
    /// Visible work: thumbnails.
    case high
    /// Work that everything else waits for: a token refresh.
    case highest

    /// Orders priorities from the least to the most urgent.
    public static func < (left: RequestPriority, right: RequestPriority) -> Bool { left.rawValue < right.rawValue }
}

/// The order of waiting requests of equal urgency.
public enum QueueOrder: String, Hashable, Codable, Sendable, CaseIterable {
    /// First come, first served; the default.
    case firstComeFirstServed
    /// Last come, first served: for content that the user currently sees, such as the pictures of a scrolled list.
    ///
    /// This order applies to requests of one priority that arrived within one ``PoolLimits/agingInterval``. A request
    /// that has waited longer is more urgent, so none waits indefinitely. With an interval of `nil`, new requests
    /// always go first; with zero they never do.
    case lastComeFirstServed
}
