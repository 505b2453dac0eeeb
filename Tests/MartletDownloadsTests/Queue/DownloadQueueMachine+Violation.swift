@testable import MartletDownloads

extension DownloadQueueMachine {
    /// Describes the first violated invariant of the machine; `nil` if all hold.
    ///
    /// - Parameter limits: The limits since the start of all running downloads; `nil` if they were lowered since.
    func violation(of limits: DownloadLimits?) -> String? {
        var hosts: [String: Int] = [:]
        var (running, unfinished, waiting) = (0, 0, 0)
        for (id, entry) in entries {
            switch entry.phase {
            case .running, .stopping:
                running += 1
                guard let host = entry.runningHost else { return "\(id) runs without a place" }
                hosts[host, default: 0] += 1
            case .waiting:
                waiting += 1
                let lane = lanes[Lane(host: entry.host, priority: entry.priority)] ?? []
                if !lane.contains(Position(id: id, ticket: entry.ticket)) { return "\(id) waits in no line" }
            case .paused, .recording, .removing, .failed, .finished: break
            }
            if !entry.phase.isRunning, entry.runningHost != nil {
                return "\(id) has a place and does not run"
            }
            if entry.phase != .failed, entry.phase != .finished { unfinished += 1 }
        }
        if running != runningCount || hosts != runningCounts { return "places are counted wrongly" }
        if unfinished != unfinishedCount { return "the unfinished are counted wrongly" }
        if lanes.values.reduce(0, { $0 + $1.count }) != waiting {
            return "somebody is in line who does not wait"
        }
        for (lane, places) in lanes {
            if places.isEmpty { return "the line of \(lane) is empty" }
            for (left, right) in zip(places, places.dropFirst())
            where left.ticket.sequence >= right.ticket.sequence || left.ticket.since > right.ticket.since {
                return "the line of \(lane) is out of order"
            }
        }
        guard let limits else { return nil }
        if running > max(0, limits.concurrentFiles) { return "\(running) run" }
        if let worst = hosts.values.max(), worst > max(1, limits.perHost) {
            return "\(worst) run with one host"
        }
        return nil
    }
}

extension DownloadQueueMachine.Phase {
    /// Whether the download has a slot among the running ones.
    var isRunning: Bool {
        switch self {
        case .running, .stopping: true
        case .waiting, .paused, .recording, .removing, .failed, .finished: false
        }
    }
}
