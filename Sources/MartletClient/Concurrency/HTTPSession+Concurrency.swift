import MartletConnections

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
