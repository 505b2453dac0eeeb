public import MartletCore
import MartletConditions

/// A policy for the use of metered networks, like `allowsExpensiveNetworkAccess` of URLSession.
///
/// The network is metered while its condition is ``NetworkCondition/mobile``: the preferred interface of the path is
/// expensive (``NetworkPath/isExpensive``), for any server. The path is that of
/// ``SessionConfiguration/networkMonitor``; without one, the condition is that of
/// ``SessionConfiguration/networkConditions`` or ``HTTPSession/networkConditionChanged(to:)``, and if none was
/// reported, the path is that of ``NetworkMonitor/system``. A network whose condition is unknown is not metered.
///
/// The path is checked before each request that needs the network. Responses from a cache are returned on any network,
/// and a running transfer continues when the path changes.
public enum MeteredNetworkPolicy: String, Hashable, Sendable, Codable, CaseIterable {
    /// Metered networks are used; the default.
    case allowed
    /// A call that needs a metered network fails with the code ``HTTPError/Code/meteredNetwork``; nothing is sent.
    case denied
    /// A call that needs a metered network waits for another one. Its total timeout and cancellation end the wait.
    case waits
}

extension HTTPError.Code {
    /// The network is metered, and the call may not use such networks (``MeteredNetworkPolicy``); nothing was sent.
    public static let meteredNetwork = HTTPError.Code(rawValue: "meteredNetwork")
}

enum MeteredNetworksKey: StageKey {
    static var defaultValue: MeteredNetworkPolicy { .allowed }
    static var position: StagePosition { .request }

    static func isActive(_ policy: MeteredNetworkPolicy) -> Bool { policy != .allowed }

    static func stage(for call: Call, _ progress: CallProgress) -> (any CallStage)? {
        let policy = call[MeteredNetworksKey.self]
        return isActive(policy) ? MeteredNetworkStage(policy: policy, progress: progress) : nil
    }
}

extension SessionConfiguration {
    /// Whether calls use metered networks; ``MeteredNetworkPolicy/allowed`` by default.
    public var meteredNetworks: MeteredNetworkPolicy {
        get { self[MeteredNetworksKey.self] }
        set { self[MeteredNetworksKey.self] = newValue }
    }
}

extension RequestOptions {
    /// Whether the call uses metered networks; `nil` (the default) for the session's policy.
    public var meteredNetworks: MeteredNetworkPolicy? {
        get { self[MeteredNetworksKey.self] }
        set { self[MeteredNetworksKey.self] = newValue }
    }
}

/// The stage that prevents a call from using metered networks. The call continues: a later stage may use a cache.
private struct MeteredNetworkStage: CallStage {
    let policy: MeteredNetworkPolicy
    let progress: CallProgress

    func answer(_ call: Call, _ next: CallNext) async throws -> StreamedResponse {
        let source = NetworkConditionSource(call, progress.core)
        while true {
            let isMetered = try await progress.userCode.run("the check of the network's path", .preparing) {
                await source.isMetered
            }
            guard isMetered else { return try await next(call) }
            do {
                return try await next(
                    call.supplemented { $0.networkDenial = NetworkDenial(.meteredNetwork, MeteredNetworkStage.reason) })
            } catch let error as HTTPError
                where policy == .waits && error.code == .meteredNetwork && progress.isOwn(error)
            {
                let hasChanged = try await progress.userCode.run("the wait for an unmetered network", .preparing) {
                    await source.becomesUnmetered()
                }
                // The source has ended, so the path will not change.
                guard hasChanged else { throw error }
            }
        }
    }

    private static let reason =
        "the network is metered, and meteredNetworks of the call or its session does not allow such networks"
}

/// The condition of the network, from the source that the session uses.
private struct NetworkConditionSource: Sendable {
    private let control: ConcurrencyControl
    private let monitor: NetworkMonitor?

    init(_ call: Call, _ core: SessionCore) {
        control = core.attachment { ConcurrencyControl(NetworkSettings(), core) }
        monitor = call.settings[NetworkSettingsKey.self].monitor
    }

    /// The monitor that decides; `nil` if a condition was reported to a session without a monitor.
    private var deciding: NetworkMonitor? { monitor ?? (control.condition == .unknown ? .system : nil) }

    var isMetered: Bool { get async { (await deciding?.path.condition ?? control.condition) == .mobile } }

    /// Waits for a network that is not metered.
    /// - Returns: `false` if the source has ended, or the task is cancelled.
    func becomesUnmetered() async -> Bool {
        guard let monitor = deciding else { return await control.reported.next { $0 != .mobile } != nil }
        for await path in monitor where path.condition != .mobile { return true }
        return false
    }
}
