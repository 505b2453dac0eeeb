import MartletConnections
import Synchronization

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

/// Keeps the limits of a session's pool what the pool's settings, the policy and the network's condition make of them.
final class ConcurrencyControl: Sendable {
    private struct State {
        var limits: PoolLimits
        var policy: ConcurrencyPolicy?
        var condition = NetworkCondition.unknown
        var pool: ConnectionPool?
        var followers: [Task<Void, Never>] = []
        var isEnded = false

        var effective: PoolLimits {
            policy?.applied(to: limits, under: condition) ?? limits
        }
    }

    /// Guards the above: whoever changes a part. It may be taken under the pool's lock, and never the other way round.
    private let state: Mutex<State>

    /// Control of no pool yet.
    init(limits: PoolLimits, policy: ConcurrencyPolicy?) {
        state = Mutex(State(limits: limits, policy: policy))
    }

    /// The limits that are in force, or about to be.
    var limits: PoolLimits { state.withLock { $0.effective } }

    /// The network's condition, as far as it was told.
    var condition: NetworkCondition { state.withLock { $0.condition } }

    /// How many downloads may ask for at once, each of its own file; `nil` for as many as they like.
    var segments: Int? {
        state.withLock { state in state.policy?[state.condition].segments.map { max(1, $0) } }
    }

    /// Begins to keep a pool's limits, and to follow conditions and paths where there is somebody to tell them.
    func govern(
        _ pool: ConnectionPool, conditions: (any AsyncSequence<NetworkCondition, Never> & Sendable)?,
        monitor: NetworkMonitor? = nil
    ) {
        state.withLock { $0.pool = pool }
        // Unstructured, both: they are the session's, and end with it. They hold neither the session nor, once that has
        // ended, the pool, however long a sequence takes to notice that it was cancelled.
        if let conditions { keep(Task { await self.follow(conditions) }) }
        if let monitor {
            let tellsConditions = conditions == nil
            keep(Task { await self.follow(monitor.views, tellsConditions: tellsConditions) })
        }
    }

    private func keep(_ follower: Task<Void, Never>) {
        let isEnded = state.withLock { state in
            state.followers.append(follower)
            return state.isEnded
        }
        if isEnded { follower.cancel() }
    }

    /// Lets go of the pool, and ends the following.
    func end() {
        let (followers, pool) = state.withLock { state in
            state.isEnded = true
            defer { state.followers = [] }
            return (state.followers, state.pool.take())
        }
        for follower in followers { follower.cancel() }
        // Released outside of the lock: it may be the last reference to many connections.
        _ = consume pool
    }

    /// Changes what the pool's own settings say.
    func setLimits(_ limits: PoolLimits) {
        change { $0.limits = limits }
    }

    /// Changes the policy.
    func setPolicy(_ policy: ConcurrencyPolicy?) {
        change { $0.policy = policy }
    }

    /// Notes what the network is like now.
    func conditionChanged(to condition: NetworkCondition) {
        change { $0.condition = condition }
    }

    private func change(_ body: (inout State) -> Void) {
        let pool = state.withLock { state in
            body(&state)
            return state.pool
        }
        // Read again under the pool's lock: of two changes at once, what both made is what remains.
        pool?.setLimits { self.limits }
    }

    private func follow(_ conditions: some AsyncSequence<NetworkCondition, Never> & Sendable) async {
        for await condition in conditions { conditionChanged(to: condition) }
    }

    private func follow(_ views: NetworkViews, tellsConditions: Bool) async {
        var views = views
        while let view = await views.next() {
            if let addresses = view.addresses { state.withLock { $0.pool }?.localAddresses(are: addresses) }
            // Where there is no way at all there is nothing to adapt to: what comes back is mostly what went.
            if tellsConditions, view.path.status != .unsatisfied {
                conditionChanged(to: view.path.condition)
            }
        }
    }
}

/// What the network is like, as far as it matters to how much is asked of it at once.
public enum NetworkCondition: String, Hashable, Codable, Sendable, CaseIterable {
    /// A cable, or whatever else costs nothing by the byte and has room to spare.
    case unmetered
    /// A wireless network that costs nothing by the byte.
    case wifi
    /// A mobile network, or any other that is expensive: little room, and each connection takes a share of it.
    case mobile
    /// Nobody has said; a session's condition until somebody does.
    case unknown
}

extension HTTPSession {
    /// How many connections there may be at present: ``SessionConfiguration/pool``, or what ``setPoolLimits(_:)`` said last,
    /// with the numbers that ``SessionConfiguration/concurrency`` has for the network's condition.
    public nonisolated var poolLimits: PoolLimits {
        core.concurrency.limits
    }

    /// The network's condition as the session was told; ``NetworkCondition/unknown`` until it is.
    public nonisolated var networkCondition: NetworkCondition {
        core.concurrency.condition
    }

    /// The most connections that one download uses at present, by the session's policy and the network's condition; `nil` for
    /// what its options say.
    public nonisolated var segmentLimit: Int? {
        core.concurrency.segments
    }

    /// Tells the session and its views what the network is like now, where no sequence does.
    ///
    /// It acts at once, on calls that wait too; nothing that runs is cut.
    public nonisolated func networkConditionChanged(to condition: NetworkCondition) {
        core.concurrency.conditionChanged(to: condition)
    }

    /// Changes how many requests run at once by the network's condition, while calls run; views share the change.
    /// - Parameter policy: `nil` for the same at all times.
    public nonisolated func setConcurrency(_ policy: ConcurrencyPolicy?) {
        core.concurrency.setPolicy(policy)
    }
}
