/// How many connections a pool may hold, and for how long.
///
/// A "host" here is everything that keeps connections apart: scheme, host, port, proxy, TLS identity and trust.
/// Numbers below their range are raised to its lower end, negative durations to zero.
public struct PoolLimits: Hashable, Codable, Sendable {
    /// The most connections to one host at a time: dialling, in use and idle together.
    ///
    /// At least 1; 16 by default. Browsers use 6, AFNetworking 4 and 6, OkHttp 5 requests, async-http-client 8, Go
    /// sets no limit. The limit keeps a burst of requests from looking like an attack to the host.
    ///
    /// A call made by the closure of a stream, or by a handler, does not wait for the connection that its own call holds: it
    /// is served first, and one such call for each connection held may exceed the limits. Waits for other reasons that last
    /// longer than 10 s are logged with their reason (`notice`), and a call that runs out of time says who holds the
    /// connections.
    public var connectionsPerHost: Int

    /// Other limits than ``connectionsPerHost`` for single hosts; none by default.
    ///
    /// A host is named as in URLs, in lower case: `images.example.com` for all of its ports, `images.example.com:8443` for
    /// one of them, which goes before. Where a proxy is handed the requests, its own name counts.
    public var connectionsToHosts: [String: Int]

    /// The most connections to all hosts together: dialling, in use and idle.
    ///
    /// At least 1; 256 by default. OkHttp runs 64 requests at once, httpx 100 connections, Go sets no limit. The
    /// limit keeps the process well below the usual 1,024 descriptors. When it stands in the way of a dial, the
    /// longest idle connection of another host is closed to make room.
    public var totalConnections: Int

    /// The most idle connections kept for one host; 16 by default. Go keeps 2, httpx 20 in all.
    ///
    /// Zero keeps none: a connection is then used again only when a request waits for it as it becomes free.
    public var idleConnectionsPerHost: Int

    /// The most idle connections kept for all hosts together; 256 by default. Go keeps 100, OkHttp 5.
    public var idleConnections: Int

    /// How long a connection may lie idle before it is closed; 60 seconds by default.
    ///
    /// It should be shorter than what servers use (nginx 75 s), so that the client is the first to close and no
    /// request meets a connection that is just going away. Go waits 90 s, OkHttp 5 min, httpx 5 s.
    public var idleLifetime: Duration

    /// How old a connection may grow before it is used no more; `nil`, the default, for no limit.
    ///
    /// Useful behind load balancers and changing DNS. A connection in use is not disturbed: the age is looked at
    /// when it becomes free, while it is idle and before it is used again.
    public var maximumAge: Duration?

    /// How many requests a connection may carry before it is closed; at least 1; `nil`, the default, for no limit.
    public var maximumUses: Int?

    /// How long before the end of a server's `Keep-Alive: timeout=N` a connection counts as closed; 1 s by default.
    ///
    /// It covers the time a request needs to reach the server. At most half of N is taken off.
    public var keepAliveMargin: Duration

    /// How long a request waits to gain one level of ``RequestPriority``; 5 seconds by default.
    ///
    /// With it the lowest priority overtakes newcomers of the highest after 20 s. Zero serves all requests first
    /// come, first served; `nil` never raises a priority, so urgent requests can hold up others without end.
    public var ageingInterval: Duration?

    /// Creates limits; what is not given has its default.
    public init(
        connectionsPerHost: Int = 16, connectionsToHosts: [String: Int] = [:], totalConnections: Int = 256,
        idleConnectionsPerHost: Int = 16, idleConnections: Int = 256, idleLifetime: Duration = .seconds(60),
        maximumAge: Duration? = nil, maximumUses: Int? = nil, keepAliveMargin: Duration = .seconds(1),
        ageingInterval: Duration? = .seconds(5)
    ) {
        self.connectionsPerHost = connectionsPerHost
        self.connectionsToHosts = connectionsToHosts
        self.totalConnections = totalConnections
        self.idleConnectionsPerHost = idleConnectionsPerHost
        self.idleConnections = idleConnections
        self.idleLifetime = idleLifetime
        self.maximumAge = maximumAge
        self.maximumUses = maximumUses
        self.keepAliveMargin = keepAliveMargin
        self.ageingInterval = ageingInterval
    }

    /// What ``connectionsToHosts`` says of a host; `nil` for nothing.
    func connections(to host: String, port: Int) -> Int? {
        guard !connectionsToHosts.isEmpty else { return nil }
        let name = host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]" : host
        return connectionsToHosts["\(name):\(port)"] ?? connectionsToHosts[name]
    }
}

/// How urgent a request is while it waits for a connection.
///
/// Priorities order waiting requests only; a request that has its connection is never disturbed. Requests of one
/// priority are served first come, first served, unless they ask for another ``WaitingOrder``. A waiting request gains
/// one level for every ``PoolLimits/ageingInterval`` it has waited, so a low priority is served later, never never.
///
/// The five levels are those of Foundation's operation queues, which AFNetworking and MKNetworkKit handed on to
/// their users.
public enum RequestPriority: UInt8, Comparable, CaseIterable, Codable, Sendable {
    /// Work nobody waits for: prefetching, telemetry.
    case lowest
    /// Work that may take a while: bulk uploads.
    case low
    /// The default.
    case normal
    /// Work somebody looks at: thumbnails.
    case high
    /// Work everything else waits for: a token refresh.
    case highest

    /// Orders priorities from the least to the most urgent.
    public static func < (left: RequestPriority, right: RequestPriority) -> Bool {
        left.rawValue < right.rawValue
    }
}
