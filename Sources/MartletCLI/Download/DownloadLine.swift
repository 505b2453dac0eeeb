/// Which of the downloads of a command line begins next: the first one that waits, as far as the limits let it.
struct DownloadLine: Sendable {
    private struct Host {
        var running = 0
        /// Those that waited when the host was full, in order, from ``first`` on.
        var held: [Int] = []
        var first = 0
    }

    private let hosts: [String]
    private let limit: Int
    private let limitPerHost: Int
    private var states: [String: Host] = [:]
    private var running = 0
    /// The first one that was not looked at yet.
    private var position = 0
    /// Those of hosts that were full and have room now; they come before all that was not looked at.
    private var freed: [Int] = []
    private var isStopped = false

    /// A line.
    /// - Parameters:
    ///   - hosts: The host of each download.
    ///   - limit: How many run at once.
    ///   - limitPerHost: How many of one host.
    init(hosts: [String], limit: Int, limitPerHost: Int) {
        self.hosts = hosts
        self.limit = max(1, limit)
        self.limitPerHost = max(1, limitPerHost)
    }

    /// The index of the one that begins now; `nil` when none may.
    mutating func next() -> Int? {
        guard !isStopped, running < limit else { return nil }
        if let least = freed.indices.min(by: { freed[$0] < freed[$1] }) {
            return begin(freed.remove(at: least))
        }
        while position < hosts.count {
            let index = position
            position += 1
            if states[hosts[index], default: Host()].running < limitPerHost { return begin(index) }
            states[hosts[index], default: Host()].held.append(index)
        }
        return nil
    }

    private mutating func begin(_ index: Int) -> Int {
        running += 1
        states[hosts[index], default: Host()].running += 1
        return index
    }

    /// Notes that one is over.
    mutating func end(_ index: Int) {
        running -= 1
        let host = hosts[index]
        guard var state = states[host] else { return }
        state.running -= 1
        if state.first < state.held.count {
            freed.append(state.held[state.first])
            state.first += 1
        }
        states[host] = state
    }

    /// Lets none begin any more.
    mutating func stop() {
        isStopped = true
    }
}
