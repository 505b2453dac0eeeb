public import MartletCore
public import MartletConditions
import Synchronization

/// The limits on concurrent requests, by the network's condition.
///
/// Over HTTP/1.1 each running request has its own connection, so limits on connections are limits on requests. A policy
/// replaces those numbers of ``PoolLimits`` that it sets.
///
/// A change of the condition affects running sessions immediately: with higher limits, connections are opened for
/// waiting requests; with lower ones, running requests continue, and surplus connections are closed when they are free.
///
/// ```swift
/// var configuration = SessionConfiguration.default
/// configuration.concurrency = ConcurrencyPolicy()  // Wi-Fi: 6 to a host, mobile: 2
/// configuration.networkMonitor = .system           // or networkConditions
/// ```
public struct ConcurrencyPolicy: Hashable, Codable, Sendable {
    /// The limits for one condition.
    public struct Limits: Hashable, Codable, Sendable {
        /// The maximum number of requests to one host, at least 1; `nil` for ``PoolLimits/connectionsPerHost``.
        public var perHost: Int?
        /// The maximum number of requests to all hosts together, at least 1; `nil` for ``PoolLimits/totalConnections``.
        public var total: Int?
        /// The maximum numbers of requests to single hosts, which override `perHost`; named as in
        /// ``PoolLimits/connectionsToHosts``. Other entries there remain in effect, but are at most `perHost`.
        public var hosts: [String: Int]
        /// The maximum number of connections of one download, at least 1; `nil` for that of its options.
        public var segments: Int?

        /// Creates limits; by default those of the pool and of the downloads.
        public init(perHost: Int? = nil, total: Int? = nil, hosts: [String: Int] = [:], segments: Int? = nil) {
            (self.segments, self.perHost, self.total, self.hosts) = (segments, perHost, total, hosts)
        }

        /// Decodes limits. Missing ones have their default.
        public init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            self.init(
                perHost: try container.decodeIfPresent(Int.self, forKey: .perHost),
                total: try container.decodeIfPresent(Int.self, forKey: .total),
                hosts: try container.decodeIfPresent([String: Int].self, forKey: .hosts) ?? [:],
                segments: try container.decodeIfPresent(Int.self, forKey: .segments))
        }
    }

    /// The limits over a cable; the pool's by default.
    public var unmetered: Limits
    /// The limits over Wi-Fi; 6 to a host by default.
    public var wifi: Limits
    /// The limits over a mobile network; by default 2 to a host, and 1 connection for a download.
    public var mobile: Limits
    /// The limits while the condition is not known; the pool's by default, because most Linux machines use a cable.
    public var unknown: Limits

    /// Creates a policy with the documented defaults.
    public init(
        unmetered: Limits = Limits(), wifi: Limits = Limits(perHost: 6),
        mobile: Limits = Limits(perHost: 2, segments: 1), unknown: Limits = Limits()
    ) { (self.unmetered, self.wifi, self.mobile, self.unknown) = (unmetered, wifi, mobile, unknown) }

    /// Decodes a policy. Missing limits have their default.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.init()
        unmetered = try container.decodeIfPresent(Limits.self, forKey: .unmetered) ?? unmetered
        wifi = try container.decodeIfPresent(Limits.self, forKey: .wifi) ?? wifi
        mobile = try container.decodeIfPresent(Limits.self, forKey: .mobile) ?? mobile
        unknown = try container.decodeIfPresent(Limits.self, forKey: .unknown) ?? unknown
    }

    /// The policy of MKNetworkKit: 6 concurrent requests to all hosts together, and 2 over a mobile network.
    public static let sharedQueue = ConcurrencyPolicy(
        unmetered: Limits(perHost: 6, total: 6), wifi: Limits(perHost: 6, total: 6),
        mobile: Limits(perHost: 2, total: 2, segments: 1), unknown: Limits(perHost: 6, total: 6))

    /// The limits for a condition.
    public subscript(condition: NetworkCondition) -> Limits {
        get { self[keyPath: condition.limits] }
        set { self[keyPath: condition.limits] = newValue }
    }

    /// Returns the limits of a pool under a condition.
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

extension NetworkCondition {
    fileprivate var limits: WritableKeyPath<ConcurrencyPolicy, ConcurrencyPolicy.Limits> {
        switch self {
        case .unmetered: \.unmetered
        case .wifi: \.wifi
        case .mobile: \.mobile
        case .unknown: \.unknown
        }
    }
}

/// The attachment that adapts the limits of a session's pool to the policy and the network's condition.
final class ConcurrencyControl: SessionAttachment {
    private struct State {
        var policy: ConcurrencyPolicy?
        var condition = NetworkCondition.unknown
        var followers: [Task<Void, Never>] = []
        weak var core: SessionCore?
    }

    /// The lock on the state. It may be taken while the pool's lock is held, never the reverse.
    private let state: Mutex<State>
    /// The same condition, for tasks that wait for a change.
    let reported = CurrentValue(NetworkCondition.unknown)

    init(_ settings: NetworkSettings, _ core: SessionCore) {
        state = Mutex(State(policy: settings.policy, core: core))
        // Both are unstructured, because they belong to the session, which they do not retain, and end with it.
        let conditions = settings.conditions.map { conditions in Task { await self.follow(conditions) } }
        let views = settings.monitor.map { monitor in
            Task { await self.follow(monitor.views(), setsCondition: settings.conditions == nil) }
        }
        state.withLock { $0.followers = [conditions, views].compactMap { $0 } }
    }

    func limits(_ limits: PoolLimits) -> PoolLimits {
        state.withLock { $0.policy?.applied(to: limits, under: $0.condition) } ?? limits
    }

    /// The last reported condition of the network.
    var condition: NetworkCondition { state.withLock { $0.condition } }

    /// The maximum number of concurrent connections of a download; `nil` for no limit.
    var segments: Int? { state.withLock { state in state.policy?[state.condition].segments.map { max(1, $0) } } }

    func end() {
        let followers = state.withLock { state in
            defer { state.followers = [] }
            return state.followers
        }
        for follower in followers { follower.cancel() }
    }

    func setPolicy(_ policy: ConcurrencyPolicy?) { change { $0.policy = policy } }

    func conditionChanged(to condition: NetworkCondition) {
        change { $0.condition = condition }
        // After the change, so that a resumed waiter sees it.
        reported.update { condition }
    }

    private func change(_ body: (inout State) -> Void) {
        let core = state.withLock { state in
            body(&state)
            return state.core
        }
        core?.limitsChanged()
    }

    private func follow(_ conditions: some AsyncSequence<NetworkCondition, Never> & Sendable) async {
        for await condition in conditions { conditionChanged(to: condition) }
    }

    private func follow(_ views: ValueReader<NetworkSnapshot>, setsCondition: Bool) async {
        var views = views
        while let view = await views.next() {
            if let addresses = view.addresses { state.withLock { $0.core }?.pool.localAddresses(are: addresses) }
            // Without a route the limits stay: the next path is usually the same as the previous one.
            if setsCondition, view.path.status != .unsatisfied { conditionChanged(to: view.path.condition) }
        }
    }
}

/// The settings of ``SessionConfiguration`` for the network's state.
struct NetworkSettings: Sendable {
    var policy: ConcurrencyPolicy?
    var conditions: (any AsyncSequence<NetworkCondition, Never> & Sendable)?
    var monitor: NetworkMonitor?
}

enum NetworkSettingsKey: AttachmentKey {
    static var defaultValue: NetworkSettings { NetworkSettings() }

    static func attachment(_ configuration: SessionConfiguration, _ core: SessionCore) -> any SessionAttachment {
        ConcurrencyControl(configuration[NetworkSettingsKey.self], core)
    }
}

extension SessionConfiguration {
    /// The limits on connections by the network's condition; `nil` (the default) for ``pool`` under all conditions.
    ///
    /// The condition is that of ``networkMonitor``, ``networkConditions``, or
    /// ``HTTPSession/networkConditionChanged(to:)``. Views have the policy of their session.
    public var concurrency: ConcurrencyPolicy? {
        get { self[NetworkSettingsKey.self].policy }
        set { self[NetworkSettingsKey.self].policy = newValue }
    }

    /// The network's condition during the session's life; `nil` (the default) for an unknown condition.
    ///
    /// A task of the session reads the values as they arrive. It is cancelled when the session is released.
    public var networkConditions: (any AsyncSequence<NetworkCondition, Never> & Sendable)? {
        get { self[NetworkSettingsKey.self].conditions }
        set { self[NetworkSettingsKey.self].conditions = newValue }
    }

    /// The monitor of the network's path that the session follows; `nil` (the default) for none.
    ///
    /// Connections whose local address was removed are closed. Calls that use them fail as if the peer had closed the
    /// connection, so that they may be retried. ``concurrency`` follows the path, too, unless ``networkConditions`` is
    /// set. Only ``meteredNetworks`` delays or rejects calls because of the path. Views share the monitor.
    public var networkMonitor: NetworkMonitor? {
        get { self[NetworkSettingsKey.self].monitor }
        set { self[NetworkSettingsKey.self].monitor = newValue }
    }
}

extension HTTPSession {
    /// The network's condition as reported to the session; ``NetworkCondition/unknown`` before that.
    public nonisolated var networkCondition: NetworkCondition { concurrencyControl.condition }

    /// The current limit on connections of one download, by policy and condition; `nil` for that of its options.
    public nonisolated var segmentLimit: Int? { concurrencyControl.segments }

    /// Reports the network's condition to the session and its views, if no sequence does.
    ///
    /// This affects waiting calls immediately; running transfers continue.
    public nonisolated func networkConditionChanged(to condition: NetworkCondition) {
        concurrencyControl.conditionChanged(to: condition)
    }

    /// Changes the limits on concurrent requests while calls run; views share the change.
    /// - Parameter policy: The policy; `nil` for the same limits under all conditions.
    public nonisolated func setConcurrency(_ policy: ConcurrencyPolicy?) { concurrencyControl.setPolicy(policy) }

    private nonisolated var concurrencyControl: ConcurrencyControl {
        core.attachment { ConcurrencyControl(NetworkSettings(), core) }
    }
}
