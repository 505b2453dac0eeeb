/// How many requests run at once, by the network's condition.
///
/// Over HTTP/1.1 each request that runs has a connection of its own, so that limits on connections are limits on requests.
/// A policy replaces the numbers of ``PoolLimits`` where it names some, and leaves the rest to them.
///
/// A change of the condition acts on a session that runs, at once: where more is allowed, connections are opened for those
/// who wait; where less is, nothing that runs is cut, idle connections are closed, and connections in use are not used
/// again until the limits hold.
///
/// ```swift
/// var configuration = SessionConfiguration.default
/// configuration.concurrency = ConcurrencyPolicy()             // 6 to a host over Wi-Fi, 2 over mobile networks
/// configuration.networkMonitor = .system                      // or networkConditions, any AsyncSequence of them
/// ```
public struct ConcurrencyPolicy: Hashable, Codable, Sendable {
    /// The numbers for one condition.
    public struct Limits: Hashable, Codable, Sendable {
        /// The most requests to one host; at least 1; `nil` for ``PoolLimits/connectionsPerHost``.
        public var perHost: Int?

        /// The most requests to all hosts together; at least 1; `nil` for ``PoolLimits/totalConnections``.
        public var total: Int?

        /// The most requests to single hosts, which goes before `perHost`; named as in
        /// ``PoolLimits/connectionsToHosts``, whose other entries stay in force.
        ///
        /// Where these limits have a `perHost`, entries of ``PoolLimits/connectionsToHosts`` above it count as that number:
        /// what was meant for a good network is not for a poor one.
        public var hosts: [String: Int]

        /// The most connections that one download uses; at least 1; `nil` for what its options say.
        public var segments: Int?

        /// The numbers for one condition; what is not given is the pool's, and the downloads'.
        public init(
            perHost: Int? = nil, total: Int? = nil, hosts: [String: Int] = [:], segments: Int? = nil
        ) {
            self.segments = segments
            self.perHost = perHost
            self.total = total
            self.hosts = hosts
        }
    }

    /// The limits over a cable; the pool's by default.
    public var unmetered: Limits
    /// The limits over Wi-Fi; 6 to a host by default.
    public var wifi: Limits
    /// The limits over a mobile network; 2 to a host, and 1 connection for a download, by default.
    public var mobile: Limits
    /// The limits as long as the condition is not known; the pool's by default, since most Linux machines hang on a cable.
    public var unknown: Limits

    /// A policy; what is not given has its default.
    public init(
        unmetered: Limits = Limits(), wifi: Limits = Limits(perHost: 6),
        mobile: Limits = Limits(perHost: 2, segments: 1), unknown: Limits = Limits()
    ) {
        self.unmetered = unmetered
        self.wifi = wifi
        self.mobile = mobile
        self.unknown = unknown
    }

    /// What MKNetworkKit did: 6 requests at once to all hosts together, and 2 over a mobile network.
    public static let sharedQueue = ConcurrencyPolicy(
        unmetered: Limits(perHost: 6, total: 6), wifi: Limits(perHost: 6, total: 6),
        mobile: Limits(perHost: 2, total: 2, segments: 1), unknown: Limits(perHost: 6, total: 6))

    /// The numbers for a condition.
    public subscript(condition: NetworkCondition) -> Limits {
        get {
            switch condition {
            case .unmetered: unmetered
            case .wifi: wifi
            case .mobile: mobile
            case .unknown: unknown
            }
        }
        set {
            switch condition {
            case .unmetered: unmetered = newValue
            case .wifi: wifi = newValue
            case .mobile: mobile = newValue
            case .unknown: unknown = newValue
            }
        }
    }

    /// Limits of a pool as they are under a condition.
    public func applied(to pool: PoolLimits, under condition: NetworkCondition) -> PoolLimits {
        let own = self[condition]
        var limits = pool
        if let perHost = own.perHost {
            limits.connectionsPerHost = perHost
            limits.connectionsToHosts = limits.connectionsToHosts.mapValues { min($0, perHost) }
        }
        if let total = own.total { limits.totalConnections = total }
        limits.connectionsToHosts.merge(own.hosts) { _, own in own }
        return limits
    }
}
