@testable import MartletDownloads

extension DownloadQueueMachine {
    /// Describes the first violated invariant of the machine; `nil` if all hold.
    ///
    /// - Parameter limits: The limits; `nil` if they were lowered since a running download started.
    func violation(of limits: DownloadLimits?) -> String? {
        var hosts: [String: Int] = [:]
        var (running, unfinished, waiting) = (0, 0, 0)
        for (id, entry) in entries {
            switch entry.phase {
            case .running, .stopping:
                running += 1
                guard let host = entry.runningHost else { return "\(id) is running without a slot" }
                hosts[host, default: 0] += 1
            case .waiting:
                waiting += 1
                let lane = lanes[Lane(host: entry.host, priority: entry.priority)] ?? []
                if !lane.contains(Position(id: id, ticket: entry.ticket)) { return "\(id) is waiting but not queued" }
            case .paused, .recording, .removing, .failed, .finished: break
            }
            if !entry.phase.isRunning, entry.runningHost != nil {
                return "\(id) has a slot but is not running"
            }
            if entry.phase != .failed, entry.phase != .finished { unfinished += 1 }
        }
        if running != runningCount || hosts != runningCounts { return "the counts of running downloads are wrong" }
        if unfinished != unfinishedCount { return "the count of unfinished downloads is wrong" }
        if lanes.values.reduce(0, { $0 + $1.count }) != waiting {
            return "a queued download is not waiting"
        }
        for (lane, queue) in lanes {
            if queue.isEmpty { return "the queue of \(lane) is empty" }
            for (left, right) in zip(queue, queue.dropFirst())
            where left.ticket.sequence >= right.ticket.sequence || left.ticket.since > right.ticket.since {
                return "the queue of \(lane) is out of order"
            }
        }
        guard let limits else { return nil }
        if running > max(0, limits.concurrentFiles) { return "\(running) downloads are running" }
        if let worst = hosts.values.max(), worst > max(1, limits.perHost) {
            return "\(worst) downloads from one host are running"
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
