public import MartletCore
public import MartletConnections
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
        public init(perHost: Int? = nil, total: Int? = nil, hosts: [String: Int] = [:], segments: Int? = nil)
        {
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

/// Keeps the limits of a session's pool what the policy and the network's condition make of its settings.
final class ConcurrencyControl: SessionAttachment {
    private struct State {
        var policy: ConcurrencyPolicy?
        var condition = NetworkCondition.unknown
        var followers: [Task<Void, Never>] = []
        var isEnded = false
        weak var core: SessionCore?
    }

    /// Guards the above: whoever changes a part. It may be taken under the pool's lock, and never the other way round.
    private let state: Mutex<State>

    init(_ settings: NetworkSettings, _ core: SessionCore) {
        state = Mutex(State(policy: settings.policy, core: core))
        // Unstructured, both: they are the session's, and end with it. They do not hold the session, however long a sequence
        // takes to notice that it was cancelled.
        if let conditions = settings.conditions { keep(Task { await self.follow(conditions) }) }
        if let monitor = settings.monitor {
            let tellsConditions = settings.conditions == nil
            keep(Task { await self.follow(monitor.views, tellsConditions: tellsConditions) })
        }
    }

    func limits(_ limits: PoolLimits) -> PoolLimits {
        state.withLock { $0.policy?.applied(to: limits, under: $0.condition) } ?? limits
    }

    /// The network's condition, as far as it was told.
    var condition: NetworkCondition { state.withLock { $0.condition } }

    /// The number of connections that downloads may ask for at once, each for its own file; `nil` for any number.
    var segments: Int? {
        state.withLock { state in state.policy?[state.condition].segments.map { max(1, $0) } }
    }

    private func keep(_ follower: Task<Void, Never>) {
        let isEnded = state.withLock { state in
            state.followers.append(follower)
            return state.isEnded
        }
        if isEnded { follower.cancel() }
    }

    func end() {
        let followers = state.withLock { state in
            state.isEnded = true
            defer { state.followers = [] }
            return state.followers
        }
        for follower in followers { follower.cancel() }
    }

    /// Changes the policy.
    func setPolicy(_ policy: ConcurrencyPolicy?) { change { $0.policy = policy } }

    /// Notes the network's present condition.
    func conditionChanged(to condition: NetworkCondition) { change { $0.condition = condition } }

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

    private func follow(_ views: ValueReader<NetworkView>, tellsConditions: Bool) async {
        var views = views
        while let view = await views.next() {
            if let addresses = view.addresses {
                state.withLock { $0.core }?.pool.localAddresses(are: addresses)
            }
            // Where there is no way at all there is nothing to adapt to: what comes back is mostly what went.
            if tellsConditions, view.path.status != .unsatisfied { conditionChanged(to: view.path.condition) }
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

/// The settings of ``SessionConfiguration`` that have to do with the network's state.
struct NetworkSettings: Sendable {
    var policy: ConcurrencyPolicy?
    var conditions: (any AsyncSequence<NetworkCondition, Never> & Sendable)?
    var monitor: NetworkMonitor?
}

enum NetworkSettingsKey: AttachmentKey {
    static var defaultValue: NetworkSettings { NetworkSettings() }

    static func attachment(
        _ configuration: SessionConfiguration, _ core: SessionCore
    ) -> any SessionAttachment { ConcurrencyControl(configuration[NetworkSettingsKey.self], core) }
}

extension SessionConfiguration {
    /// The limits of connections by the network's condition; `nil` (the default) for ``pool`` at all times.
    ///
    /// The condition is that of ``networkMonitor``, ``networkConditions``, or ``HTTPSession/networkConditionChanged(to:)``.
    /// The policy holds for a session and its views; a view with another one keeps that of its session.
    public var concurrency: ConcurrencyPolicy? {
        get { self[NetworkSettingsKey.self].policy }
        set { self[NetworkSettingsKey.self].policy = newValue }
    }

    /// The network's condition while the session exists; `nil` (the default) for a condition that is not known.
    ///
    /// A task of the session reads the values as they come. It is cancelled when the session is released.
    public var networkConditions: (any AsyncSequence<NetworkCondition, Never> & Sendable)? {
        get { self[NetworkSettingsKey.self].conditions }
        set { self[NetworkSettingsKey.self].conditions = newValue }
    }

    /// The monitor of the network's path that the session follows; `nil` (the default) for none.
    ///
    /// Connections whose local address is gone are closed, and calls that use them fail as when the peer is gone, so that they
    /// may be retried. ``concurrency`` follows the path, too, unless ``networkConditions`` is set. No call is delayed or
    /// refused because of the path. A view has the monitor of its session.
    public var networkMonitor: NetworkMonitor? {
        get { self[NetworkSettingsKey.self].monitor }
        set { self[NetworkSettingsKey.self].monitor = newValue }
    }
}

extension HTTPSession {
    /// The network's condition as the session was told; ``NetworkCondition/unknown`` until it is.
    public nonisolated var networkCondition: NetworkCondition { concurrencyControl.condition }

    /// The most connections that one download uses at present, by the session's policy and the network's condition; `nil` for
    /// what its options say.
    public nonisolated var segmentLimit: Int? { concurrencyControl.segments }

    /// Tells the session and its views what the network is like now, where no sequence does.
    ///
    /// It acts at once, on calls that wait too; nothing that runs is cut.
    public nonisolated func networkConditionChanged(to condition: NetworkCondition) {
        concurrencyControl.conditionChanged(to: condition)
    }

    /// Changes how many requests run at once by the network's condition, while calls run; views share the change.
    /// - Parameter policy: `nil` for the same at all times.
    public nonisolated func setConcurrency(_ policy: ConcurrencyPolicy?) {
        concurrencyControl.setPolicy(policy)
    }

    private nonisolated var concurrencyControl: ConcurrencyControl {
        core.attachment { ConcurrencyControl(NetworkSettings(), core) }
    }
}
