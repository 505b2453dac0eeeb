import MartletConnections
import Synchronization

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
