import Synchronization

/// Counts, as a server does, the requests that run at once, and notes when they are more than there may be.
final class RunningGauge: Sendable {
    /// How many may run: to all hosts together, and to each.
    struct Ceiling: Sendable {
        var total: Int
        var hosts: [String: Int]

        /// What both allow.
        func joined(_ other: Ceiling) -> Ceiling {
            Ceiling(total: max(total, other.total), hosts: hosts.merging(other.hosts) { max($0, $1) })
        }
    }

    private struct State {
        var ceiling: Ceiling
        var running: [String: Int] = [:]
        var served = 0
        var most = 0
        var faults: [String] = []
    }

    private let state: Mutex<State>

    init(_ ceiling: Ceiling) {
        state = Mutex(State(ceiling: ceiling))
    }

    /// How many requests have come.
    var served: Int { state.withLock { $0.served } }
    /// The most that ran at once.
    var most: Int { state.withLock { $0.most } }
    /// What was above the ceiling; the first few only.
    var faults: [String] { state.withLock { $0.faults } }

    /// Changes what may run.
    func allow(_ ceiling: Ceiling) {
        state.withLock { $0.ceiling = ceiling }
    }

    /// What may run.
    var ceiling: Ceiling { state.withLock { $0.ceiling } }

    /// A request begins.
    func enter(_ host: String) {
        state.withLock { state in
            state.served += 1
            state.running[host, default: 0] += 1
            let own = state.running[host] ?? 0
            let total = state.running.values.reduce(0, +)
            state.most = max(state.most, total)
            guard state.faults.count < 5 else { return }
            if total > state.ceiling.total {
                state.faults.append("\(total) in all, not \(state.ceiling.total)")
            }
            let limit = state.ceiling.hosts[host] ?? 0
            if own > limit { state.faults.append("\(own) to \(host), not \(limit)") }
        }
    }

    /// A request ends.
    func leave(_ host: String) {
        state.withLock { $0.running[host, default: 0] -= 1 }
    }
}
