package import MartletTransport

/// Which of many downloads runs next, and what each of them is doing: a pure machine.
///
/// | phase | what is true | what leaves it |
/// |---|---|---|
/// | waiting | it has a place in the line | its turn; pause, cancel |
/// | running | it has one of the places for files | its end; pause, cancel |
/// | stopping | it was told to end, and still has its place | its end |
/// | paused | it has no place, and holds back the end of all | resume, cancel |
/// | recording | its file is there, and that is being written down | that being done |
/// | removing | what has come of it is being removed | that being done |
/// | failed | it is over, unless it is resumed | resume, cancel, removal |
/// | finished | it is over | removal |
///
/// Those in line go by their level: their priority, and one more for each span of ageing that they have waited, up to the
/// highest; within a level, first come, first served. So none waits for ever, whatever comes behind it.
package struct DownloadQueueMachine: Sendable {
    /// What a download is doing.
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

    /// What becomes of a download that is told to end.
    package enum Goal: Hashable, Sendable {
        /// It is paused.
        case pause
        /// It gets in line again: it was paused, and resumed before it had ended.
        case again
        /// What has come of it is removed.
        case cancel
    }

    /// How a run ended.
    package enum Ending: Hashable, Sendable {
        /// The file is there.
        case finished
        /// It failed.
        case failed
        /// It ended because it was told to, with what has come kept.
        case stopped
    }

    /// What is to be done, in no order but that of each list.
    package struct Effects: Hashable, Sendable {
        /// Those to run.
        package var begin: [DownloadID] = []
        /// Those to be told to end.
        package var stop: [DownloadID] = []
        /// Those of which everything is to be removed.
        package var discard: [DownloadID] = []
        /// Whether with this all are over.
        package var isAllFinished = false
    }

    struct Entry: Sendable {
        var host: String
        var priority: DownloadPriority
        var phase: Phase
        /// Its place among those that came, and when it came; both as of the last time that it got in line.
        var ticket = Ticket(sequence: 0, since: MonotonicTime(nanoseconds: 0))
        /// The host whose place it has, while it runs.
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

    struct Place: Hashable, Sendable {
        var id: DownloadID
        var ticket: Ticket
    }

    private(set) var limits: DownloadLimits
    private let ageing: Duration
    private(set) var entries: [DownloadID: Entry] = [:]
    /// Those in line, by host and priority, each lane in the order in which they came: its first one is never behind another
    /// of the lane.
    private(set) var lanes: [Lane: [Place]] = [:]
    private(set) var runningCounts: [String: Int] = [:]
    private(set) var runningCount = 0
    private(set) var unfinishedCount = 0
    private var lastSequence: UInt64 = 0
    private var isClosed = false

    /// An empty queue.
    /// - Parameter ageing: After how long a waiting one rises by a level; at least 1 ms.
    package init(limits: DownloadLimits, ageing: Duration = .seconds(60)) {
        self.limits = limits
        self.ageing = max(.milliseconds(1), ageing)
    }

    /// What a download is doing; `nil` where it is not known.
    package func phase(of id: DownloadID) -> Phase? { entries[id]?.phase }

    /// All that are known, in no order.
    package var ids: some Collection<DownloadID> { entries.keys }

    /// Whether none waits, runs, is paused or is being removed.
    package var isAllFinished: Bool { unfinishedCount == 0 }

    // MARK: Events

    /// Downloads are there, in the order of their line, all at once. One that is known stays as it is.
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
            if phase == .waiting { line(up: id, now) }
            if phase == .removing { effects.discard.append(id) }
        }
        fill(&effects, now)
        return effects
    }

    /// These are to be paused, all at once, so that none of them begins while others make room. Nothing happens to those that
    /// are over or being removed.
    /// - Returns: Those among them that are paused now, or will be when they have ended; and what to do.
    package mutating func pause(
        _ ids: some Sequence<DownloadID>, now: MonotonicTime
    ) -> (paused: [DownloadID], effects: Effects) {
        var effects = Effects()
        var paused: [DownloadID] = []
        for id in ids {
            switch entries[id]?.phase {
            case .waiting:
                leaveLine(id)
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
        fill(&effects, now)
        return (paused, effects)
    }

    /// A paused or failed one is to go on, at the end of the line. Nothing happens to those in line or running.
    /// - Parameter host: Where it is from now on; `nil` for where it was.
    /// - Returns: What to do; `nil` where it is not known, finished or being removed.
    package mutating func resume(_ id: DownloadID, host: String? = nil, now: MonotonicTime) -> Effects? {
        guard let phase = entries[id]?.phase else { return nil }
        var effects = Effects()
        switch phase {
        case .finished, .recording, .removing, .stopping(.cancel): return nil
        case .waiting: if let host, host != entries[id]?.host { move(id, to: host) }
        case .running, .stopping(.again): if let host { entries[id]?.host = host }
        case .stopping(.pause):
            if let host { entries[id]?.host = host }
            entries[id]?.phase = .stopping(.again)
        case .paused, .failed:
            if phase == .failed { unfinishedCount += 1 }
            if let host { entries[id]?.host = host }
            entries[id]?.phase = .waiting
            line(up: id, now)
        }
        fill(&effects, now)
        return effects
    }

    /// One is to be given up, with what has come of it. Nothing happens to finished ones.
    package mutating func cancel(_ id: DownloadID, now: MonotonicTime) -> Effects {
        var effects = Effects()
        switch entries[id]?.phase {
        case .waiting:
            leaveLine(id)
            entries[id]?.phase = .removing
            effects.discard = [id]
        case .paused, .failed:
            if entries[id]?.phase == .failed { unfinishedCount += 1 }
            entries[id]?.phase = .removing
            effects.discard = [id]
        case .running:
            entries[id]?.phase = .stopping(.cancel)
            effects.stop = [id]
        case .stopping: entries[id]?.phase = .stopping(.cancel)
        case .recording, .removing, .finished, nil: break
        }
        fill(&effects, now)
        return effects
    }

    /// A run has ended.
    ///
    /// What the run says counts for more than what was asked: a file that is there is finished, and a failure is one, though
    /// it was to be paused; only what was to be cancelled is removed unless it is finished. One that stopped and was not told
    /// to has failed, unless the queue is closed.
    package mutating func end(_ id: DownloadID, _ ending: Ending, now: MonotonicTime) -> Effects {
        var effects = Effects()
        let goal: Goal?
        switch entries[id]?.phase {
        case .running: goal = nil
        case .stopping(let given): goal = given
        case .waiting, .paused, .recording, .removing, .failed, .finished, nil: return effects
        }
        vacate(id)
        switch (ending, goal) {
        case (.finished, _): entries[id]?.phase = .recording
        case (_, .cancel):
            entries[id]?.phase = .removing
            effects.discard = [id]
        case (.failed, _): settle(id, .failed, &effects)
        case (.stopped, .pause): entries[id]?.phase = .paused
        case (.stopped, nil) where !isClosed: settle(id, .failed, &effects)
        case (.stopped, .again), (.stopped, nil):
            entries[id]?.phase = .waiting
            line(up: id, now)
        }
        fill(&effects, now)
        return effects
    }

    /// It was written down that the file of one is there.
    package mutating func recorded(_ id: DownloadID) -> Effects {
        var effects = Effects()
        guard entries[id]?.phase == .recording else { return effects }
        settle(id, .finished, &effects)
        return effects
    }

    /// What had come of one was removed: it is not known any more.
    package mutating func discarded(_ id: DownloadID) -> Effects {
        var effects = Effects()
        guard entries[id]?.phase == .removing else { return effects }
        settle(id, nil, &effects)
        return effects
    }

    /// One that is over is to be forgotten.
    /// - Returns: Whether it was.
    package mutating func remove(_ id: DownloadID) -> Bool {
        guard let phase = entries[id]?.phase, phase == .failed || phase == .finished else { return false }
        entries[id] = nil
        return true
    }

    /// Changes the place of one among those in line, or the place that it will have there.
    package mutating func setPriority(_ priority: DownloadPriority, of id: DownloadID) {
        guard let entry = entries[id], entry.priority != priority else { return }
        if entry.phase == .waiting { leaveLine(id) }
        entries[id]?.priority = priority
        if entry.phase == .waiting { putInLine(id) }
    }

    /// Changes the limits. Those that run go on; where there is room now, others begin.
    package mutating func setLimits(_ limits: DownloadLimits, now: MonotonicTime) -> Effects {
        self.limits = limits
        var effects = Effects()
        fill(&effects, now)
        return effects
    }

    /// From now on none begins.
    package mutating func close() { isClosed = true }

    // MARK: The line

    private mutating func line(up id: DownloadID, _ now: MonotonicTime) {
        lastSequence += 1
        entries[id]?.ticket = Ticket(sequence: lastSequence, since: now)
        putInLine(id)
    }

    private mutating func move(_ id: DownloadID, to host: String) {
        leaveLine(id)
        entries[id]?.host = host
        putInLine(id)
    }

    private mutating func putInLine(_ id: DownloadID) {
        guard let entry = entries[id] else { return }
        let lane = Lane(host: entry.host, priority: entry.priority)
        var places = lanes.removeValue(forKey: lane) ?? []
        let place = Place(id: id, ticket: entry.ticket)
        places.insert(place, at: DownloadQueueMachine.index(of: entry.ticket, in: places))
        lanes[lane] = places
    }

    private mutating func leaveLine(_ id: DownloadID) {
        guard let entry = entries[id] else { return }
        let lane = Lane(host: entry.host, priority: entry.priority)
        guard var places = lanes.removeValue(forKey: lane) else { return }
        let index = DownloadQueueMachine.index(of: entry.ticket, in: places)
        if places.indices.contains(index), places[index].id == id { places.remove(at: index) }
        if !places.isEmpty { lanes[lane] = places }
    }

    /// Where a ticket is in a lane, or would be.
    private static func index(of ticket: Ticket, in places: [Place]) -> Int {
        var (low, high) = (0, places.count)
        while low < high {
            let middle = (low + high) / 2
            if places[middle].ticket.sequence < ticket.sequence { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Begins those whose turn it is, as long as there is room.
    private mutating func fill(_ effects: inout Effects, _ now: MonotonicTime) {
        guard !isClosed else { return }
        while runningCount < max(1, limits.files), let id = next(now) {
            leaveLine(id)
            guard let host = entries[id]?.host else { continue }
            entries[id]?.phase = .running
            entries[id]?.runningHost = host
            runningCounts[host, default: 0] += 1
            runningCount += 1
            effects.begin.append(id)
        }
    }

    private func next(_ now: MonotonicTime) -> DownloadID? {
        var best: (level: Int, place: Place)?
        for (lane, places) in lanes {
            guard let place = places.first, runningCounts[lane.host, default: 0] < max(1, limits.perHost)
            else { continue }
            let level = level(of: lane.priority, since: place.ticket.since, now)
            if let best, (best.level, place.ticket.sequence) >= (level, best.place.ticket.sequence) {
                continue
            }
            best = (level, place)
        }
        return best?.place.id
    }

    func level(of priority: DownloadPriority, since: MonotonicTime, _ now: MonotonicTime) -> Int {
        let risen = now.since(since) / ageing
        return min(DownloadPriority.high.rawValue, priority.rawValue + Int(min(risen, 2)))
    }

    // MARK: Ends

    private mutating func vacate(_ id: DownloadID) {
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

extension DownloadQueueMachine {
    /// A download that comes: new, or one that an earlier process left.
    package struct Arrival: Hashable, Sendable {
        /// Its number.
        package var id: DownloadID
        /// By what it is counted.
        package var host: String
        /// How urgent it is.
        package var priority: DownloadPriority
        /// What it was doing; whatever ran waits.
        package var phase: Phase
    }
}

extension DownloadQueueMachine.Phase {
    /// Whether it has a place among those that run.
    package var isRunning: Bool {
        switch self {
        case .running, .stopping: true
        case .waiting, .paused, .recording, .removing, .failed, .finished: false
        }
    }
}
