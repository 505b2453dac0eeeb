import Synchronization

/// Counts the concurrent requests of a server and records when they exceed a ceiling.
final class RunningGauge: Sendable {
    /// The maximum numbers of concurrent requests: to all hosts together, and to each host.
    struct Ceiling: Sendable {
        var total: Int
        var hosts: [String: Int]

        /// Returns the higher of both ceilings for the total and for each host.
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

    /// The number of requests that have started.
    var served: Int { state.withLock { $0.served } }
    /// The maximum number of requests that ran concurrently.
    var most: Int { state.withLock { $0.most } }
    /// Descriptions of the first 5 cases above the ceiling.
    var faults: [String] { state.withLock { $0.faults } }

    /// Replaces the ceiling.
    func allow(_ ceiling: Ceiling) {
        state.withLock { $0.ceiling = ceiling }
    }

    /// The current ceiling.
    var ceiling: Ceiling { state.withLock { $0.ceiling } }

    /// Records the start of a request.
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

    /// Records the end of a request.
    func leave(_ host: String) {
        state.withLock { $0.running[host, default: 0] -= 1 }
    }
}
