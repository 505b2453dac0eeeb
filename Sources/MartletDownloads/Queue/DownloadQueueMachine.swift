package import MartletCore

/// The order and the states of downloads: a pure state machine.
///
/// | phase | meaning | left by |
/// |---|---|---|
/// | waiting | queued | its turn; pause, cancel |
/// | running | holds a file slot | its end; pause, cancel |
/// | stopping | has to end, and holds its slot | its end |
/// | paused | holds no slot, and counts as unfinished | resume, cancel |
/// | recording | the file is complete, and its record is being written | the end of the write |
/// | removing | the bytes are being removed | the end of the removal |
/// | failed | over, unless it is resumed | resume, cancel, removal |
/// | finished | over | removal |
///
/// Waiting downloads are ordered by level: the priority, plus one for each aging interval that they have waited, up to
/// the highest; within a level, FIFO. So no download waits forever, even if others are added after it.
package struct DownloadQueueMachine: Sendable {
    package enum Phase: Hashable, Sendable {
        case waiting
        case running
        case stopping(Goal)
        case paused
        case recording
        case removing
        case failed
        case finished
    }

    /// The phase after a download has stopped.
    package enum Goal: Hashable, Sendable {
        /// The download is paused.
        case pause
        /// The download is queued again: it was paused, and resumed before its run had ended.
        case again
        /// The bytes of the download are removed.
        case cancel
    }

    package enum Outcome: Hashable, Sendable {
        /// The file is complete.
        case finished
        /// The run failed. The download can be resumed.
        case failed
        /// The run was stopped. The received bytes are retained.
        case stopped
    }

    /// The actions to perform; only the order within each list matters.
    package struct Effects: Hashable, Sendable {
        /// Downloads to run.
        package var begin: [DownloadID] = []
        package var stop: [DownloadID] = []
        /// Downloads whose bytes and records are to be removed.
        package var discard: [DownloadID] = []
        /// Whether all downloads are over after this event.
        package var isAllFinished = false
    }

    /// A download that is added: a new one, or one of an earlier process.
    package struct Arrival: Hashable, Sendable {
        /// The number of the download in its directory.
        package var id: DownloadID
        /// The host by which it is counted.
        package var host: String
        package var priority: DownloadPriority
        /// The phase; a download that ran is waiting.
        package var phase: Phase

        package init(id: DownloadID, host: String, priority: DownloadPriority, phase: Phase) {
            (self.id, self.host, self.priority, self.phase) = (id, host, priority, phase)
        }
    }

    struct Entry: Sendable {
        var host: String
        var priority: DownloadPriority
        var phase: Phase
        /// The position and the time of its last queueing.
        var ticket = Ticket(sequence: 0, since: MonotonicTime(nanoseconds: 0))
        /// The host whose slot it holds while it runs.
        var runningHost: String?
    }

    struct Ticket: Hashable, Sendable {
        var sequence: UInt64
        var since: MonotonicTime
    }

    struct Lane: Hashable, Sendable {
        var host: String
        var priority: DownloadPriority
    }

    struct Position: Hashable, Sendable {
        var id: DownloadID
        var ticket: Ticket
    }

    private(set) var limits: DownloadLimits
    private let aging: Duration
    private(set) var entries: [DownloadID: Entry] = [:]
    /// The waiting downloads by host and priority. Within a lane, downloads start in FIFO order.
    private(set) var lanes: [Lane: [Position]] = [:]
    private(set) var runningCounts: [String: Int] = [:]
    private(set) var runningCount = 0
    private(set) var unfinishedCount = 0
    private var lastSequence: UInt64 = 0
    private var isClosed = false

    /// Creates an empty queue.
    /// - Parameter aging: The waiting time after which the level rises by one; at least 1 ms.
    package init(limits: DownloadLimits, aging: Duration = .seconds(60)) {
        self.limits = limits
        self.aging = max(.milliseconds(1), aging)
    }

    /// Returns the phase of a download; `nil` if it is unknown.
    package func phase(of id: DownloadID) -> Phase? { entries[id]?.phase }

    /// Whether no download waits, runs, is paused or is being removed.
    package var isAllFinished: Bool { unfinishedCount == 0 }

    // MARK: Events

    /// Adds downloads in queue order, all before any of them starts. A download that is already known is ignored.
    package mutating func add(_ arrivals: [Arrival], now: MonotonicTime) -> Effects {
        var effects = Effects()
        for arrival in arrivals where entries[arrival.id] == nil {
            let id = arrival.id
            let phase: Phase =
                switch arrival.phase {
                case .running, .stopping(.again), .waiting: .waiting
                case .stopping(.pause), .paused: .paused
                case .stopping(.cancel), .removing: .removing
                case .failed: .failed
                case .recording, .finished: .finished
                }
            entries[id] = Entry(host: arrival.host, priority: arrival.priority, phase: phase)
            if phase != .failed, phase != .finished { unfinishedCount += 1 }
            if phase == .waiting { enqueue(id, now) }
            if phase == .removing { effects.discard.append(id) }
        }
        return filled(effects, now)
    }

    /// Pauses downloads together, so that none starts instead of another. Ignores those that are over or being removed.
    /// - Returns: The downloads that are paused now, or will be when their runs have ended; and the actions.
    package mutating func pause(_ ids: some Sequence<DownloadID>, now: MonotonicTime) -> (
        paused: [DownloadID], effects: Effects
    ) {
        var effects = Effects()
        var paused: [DownloadID] = []
        for id in ids {
            switch entries[id]?.phase {
            case .waiting:
                leaveLane(id)
                entries[id]?.phase = .paused
            case .running:
                entries[id]?.phase = .stopping(.pause)
                effects.stop.append(id)
            case .stopping(.again): entries[id]?.phase = .stopping(.pause)
            case .paused, .stopping(.pause): break
            case .stopping(.cancel), .recording, .removing, .failed, .finished, nil: continue
            }
            paused.append(id)
        }
        return (paused, filled(effects, now))
    }

    /// Resumes a paused or failed download at the end of the queue. Has no effect on one that waits or runs.
    /// - Parameter host: The new host; `nil` for the previous one.
    /// - Returns: The actions; `nil` if the download is unknown, finished or being removed.
    package mutating func resume(_ id: DownloadID, host: String? = nil, now: MonotonicTime) -> Effects? {
        guard let entry = entries[id] else { return nil }
        switch entry.phase {
        case .finished, .recording, .removing, .stopping(.cancel): return nil
        case .waiting:
            guard let host, host != entry.host else { break }
            leaveLane(id)
            entries[id]?.host = host
            enterLane(id)
        case .running, .stopping(.again): entries[id]?.host = host ?? entry.host
        case .stopping(.pause):
            entries[id]?.host = host ?? entry.host
            entries[id]?.phase = .stopping(.again)
        case .paused, .failed:
            if entry.phase == .failed { unfinishedCount += 1 }
            entries[id]?.host = host ?? entry.host
            entries[id]?.phase = .waiting
            enqueue(id, now)
        }
        return filled(Effects(), now)
    }

    /// Cancels a download, whose bytes are then removed. Has no effect on a finished one.
    package mutating func cancel(_ id: DownloadID, now: MonotonicTime) -> Effects {
        var effects = Effects()
        switch entries[id]?.phase {
        case .waiting, .paused, .failed:
            if entries[id]?.phase == .waiting { leaveLane(id) }
            if entries[id]?.phase == .failed { unfinishedCount += 1 }
            entries[id]?.phase = .removing
            effects.discard = [id]
        case .running:
            entries[id]?.phase = .stopping(.cancel)
            effects.stop = [id]
        case .stopping: entries[id]?.phase = .stopping(.cancel)
        case .recording, .removing, .finished, nil: break
        }
        return filled(effects, now)
    }

    /// Handles the end of a run. A complete file is finished, even if a pause or a cancellation was requested. A
    /// failure takes precedence over a pause. A run that stopped by itself has failed, unless the queue is closed.
    package mutating func end(_ id: DownloadID, _ outcome: Outcome, now: MonotonicTime) -> Effects {
        var effects = Effects()
        let goal: Goal?
        switch entries[id]?.phase {
        case .running: goal = nil
        case .stopping(let given): goal = given
        case .waiting, .paused, .recording, .removing, .failed, .finished, nil: return effects
        }
        freeSlot(id)
        switch (outcome, goal) {
        case (.finished, _): entries[id]?.phase = .recording
        case (_, .cancel):
            entries[id]?.phase = .removing
            effects.discard = [id]
        case (.failed, _): settle(id, .failed, &effects)
        case (.stopped, .pause): entries[id]?.phase = .paused
        case (.stopped, nil) where !isClosed: settle(id, .failed, &effects)
        case (.stopped, .again), (.stopped, nil):
            entries[id]?.phase = .waiting
            enqueue(id, now)
        }
        return filled(effects, now)
    }

    /// Handles the end of the write of a complete file's record.
    package mutating func recorded(_ id: DownloadID) -> Effects {
        var effects = Effects()
        if entries[id]?.phase == .recording { settle(id, .finished, &effects) }
        return effects
    }

    /// Handles the removal of a download's bytes: the download is removed from the queue.
    package mutating func discarded(_ id: DownloadID) -> Effects {
        var effects = Effects()
        if entries[id]?.phase == .removing { settle(id, nil, &effects) }
        return effects
    }

    /// Removes a download that is over.
    /// - Returns: Whether it was over.
    package mutating func remove(_ id: DownloadID) -> Bool {
        guard let phase = entries[id]?.phase, phase == .failed || phase == .finished else { return false }
        entries[id] = nil
        return true
    }

    package mutating func setPriority(_ priority: DownloadPriority, of id: DownloadID) {
        guard let entry = entries[id], entry.priority != priority else { return }
        if entry.phase == .waiting { leaveLane(id) }
        entries[id]?.priority = priority
        if entry.phase == .waiting { enterLane(id) }
    }

    /// Changes the limits. Running downloads continue; others start if slots are free.
    package mutating func setLimits(_ limits: DownloadLimits, now: MonotonicTime) -> Effects {
        self.limits = limits
        return filled(Effects(), now)
    }

    /// Closes the queue: no further download starts.
    package mutating func close() { isClosed = true }

    // MARK: The queue

    private mutating func enqueue(_ id: DownloadID, _ now: MonotonicTime) {
        lastSequence += 1
        entries[id]?.ticket = Ticket(sequence: lastSequence, since: now)
        enterLane(id)
    }

    private mutating func enterLane(_ id: DownloadID) {
        guard let entry = entries[id] else { return }
        let lane = Lane(host: entry.host, priority: entry.priority)
        var positions = lanes.removeValue(forKey: lane) ?? []
        let position = Position(id: id, ticket: entry.ticket)
        positions.insert(position, at: DownloadQueueMachine.index(of: entry.ticket, in: positions))
        lanes[lane] = positions
    }

    private mutating func leaveLane(_ id: DownloadID) {
        guard let entry = entries[id] else { return }
        let lane = Lane(host: entry.host, priority: entry.priority)
        guard var positions = lanes.removeValue(forKey: lane) else { return }
        let index = DownloadQueueMachine.index(of: entry.ticket, in: positions)
        if positions.indices.contains(index), positions[index].id == id { positions.remove(at: index) }
        if !positions.isEmpty { lanes[lane] = positions }
    }

    /// Returns the index of a ticket in a lane, or the one at which it would be inserted.
    private static func index(of ticket: Ticket, in positions: [Position]) -> Int {
        var (low, high) = (0, positions.count)
        while low < high {
            let middle = (low + high) / 2
            if positions[middle].ticket.sequence < ticket.sequence { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Starts downloads in order while slots are free.
    /// - Returns: The effects so far with the downloads to start.
    private mutating func filled(_ given: Effects, _ now: MonotonicTime) -> Effects {
        var effects = given
        while !isClosed, runningCount < limits.concurrentFiles, let id = next(now) {
            leaveLane(id)
            guard let host = entries[id]?.host else { continue }
            entries[id]?.phase = .running
            entries[id]?.runningHost = host
            runningCounts[host, default: 0] += 1
            runningCount += 1
            effects.begin.append(id)
        }
        return effects
    }

    private func next(_ now: MonotonicTime) -> DownloadID? {
        var best: (level: Int, position: Position)?
        for (lane, positions) in lanes {
            guard let position = positions.first, runningCounts[lane.host, default: 0] < max(1, limits.perHost) else {
                continue
            }
            let level = level(of: lane.priority, since: position.ticket.since, now)
            if let best, (best.level, position.ticket.sequence) >= (level, best.position.ticket.sequence) { continue }
            best = (level, position)
        }
        return best?.position.id
    }

    func level(of priority: DownloadPriority, since: MonotonicTime, _ now: MonotonicTime) -> Int {
        let risen = now.since(since) / aging
        return min(DownloadPriority.high.rawValue, priority.rawValue + Int(min(risen, 2)))
    }

    private mutating func freeSlot(_ id: DownloadID) {
        guard let host = entries[id]?.runningHost else { return }
        entries[id]?.runningHost = nil
        runningCount -= 1
        let count = runningCounts[host, default: 0] - 1
        runningCounts[host] = count > 0 ? count : nil
    }

    private mutating func settle(_ id: DownloadID, _ phase: Phase?, _ effects: inout Effects) {
        if let phase { entries[id]?.phase = phase } else { entries[id] = nil }
        unfinishedCount -= 1
        effects.isAllFinished = unfinishedCount == 0
    }
}
