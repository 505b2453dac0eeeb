package import MartletTransport

/// The order of requests: one of each lane at a time, in the order of their numbers, and a limited number of lanes
/// concurrently. Time is passed in, and the actions are returned. A request waits in its lane, is sent, is settling
/// (its outcome is being recorded), or rests (dead or uncertain), which delays no other. The next request of a lane
/// starts when the outcome of the previous one is on disk, so that killing the process never reverses their order.
package struct ReplayMachine: Sendable {
    /// The actions, in this order.
    package struct Effects: Sendable, Equatable {
        /// Requests to send.
        package var begin: [OfflineID] = []
        /// Requests whose attempt has to be cancelled.
        package var cancel: [OfflineID] = []
        /// Expired requests, which are to become dead letters; they are settling.
        package var expire: [OfflineID] = []
        /// Requests whose outcome is to be recorded, possibly again; they are settling.
        package var settle: [OfflineID] = []
        /// Whether the last waiting request has ended.
        package var isDrained = false
    }

    /// The state of a request in the machine.
    package enum State: Hashable, Sendable {
        /// The request waits in its lane.
        case waiting
        /// The request is being sent.
        case sending
        /// The outcome is being recorded.
        case settling
        /// The request is dead or uncertain.
        case resting
    }

    package enum Outcome: Hashable, Sendable {
        /// The request has ended, and its outcome is to be recorded.
        case settled
        /// The request is sent again after the delay of its lane.
        case later(OfflinePostponement.Reason, Duration)
    }

    private struct Item: Sendable {
        let lane: String
        var expires: MonotonicTime
        var state: State
        /// Whether it waits, is being sent, or is settling: the queue has not finished it.
        var isLive = false
        /// Whether it is dropped as soon as its attempt has ended.
        var isDropped = false
        /// Whether its outcome could not be recorded yet.
        var isStuck = false
        /// Whether it is in its lane; `false` after it was dropped or has expired, and while it rests.
        var isInLane = false
    }

    private struct Timer<Key: Comparable & Sendable>: Comparable, Sendable {
        let time: MonotonicTime
        let key: Key
        static func < (left: Timer, right: Timer) -> Bool { (left.time, left.key) < (right.time, right.key) }
    }

    private let backoff: OfflineBackoff
    private let laneLimit: Int
    private var items: [OfflineID: Item] = [:]
    private var lanes: [String: Lane] = [:]
    /// Lanes that may start in FIFO order; some are no longer ready.
    private var ready = FIFOQueue<String>()
    /// The times at which the delays of lanes end.
    private var delayEnds = MinHeap<Timer<String>>()
    private var expiries = MinHeap<Timer<OfflineID>>()
    /// The times at which failed recordings are retried, for requests that are no longer in a lane.
    private var settlings = MinHeap<Timer<OfflineID>>()
    private var busyCount = 0
    /// The number of requests that wait, are sent or are being settled.
    package private(set) var pendingCount = 0
    private var sendsRequests: Bool
    private var effects = Effects()

    /// Creates a machine without requests, for at most `lanes` concurrent attempts.
    package init(backoff: OfflineBackoff, lanes: Int, sendsRequests: Bool = true) {
        self.backoff = backoff
        laneLimit = max(1, lanes)
        self.sendsRequests = sendsRequests
    }

    // MARK: Inspection

    /// Returns the state of a request; `nil` if it is unknown.
    package func state(of id: OfflineID) -> State? { items[id]?.state }

    /// Returns the time of expiry of a request; `nil` if it is unknown.
    package func expiry(of id: OfflineID) -> MonotonicTime? { items[id]?.expires }

    /// Whether no request waits or is being sent or settled.
    package var isDrained: Bool { pendingCount == 0 }

    /// Whether a request was dropped during its attempt.
    package func isDropped(_ id: OfflineID) -> Bool { items[id]?.isDropped ?? false }

    /// Returns the reason and the end of a lane's delay; `nil` without a delay.
    package func wait(of lane: String) -> (reason: OfflinePostponement.Reason, until: MonotonicTime)? {
        guard case .waiting(let reason, let until) = lanes[lane]?.state else { return nil }
        return (reason, until)
    }

    /// Returns the time of the next call of ``advance(to:)``; `nil` if it is not needed.
    package mutating func nextWake() -> MonotonicTime? {
        while let end = delayEnds.min, wait(of: end.key)?.until != end.time { delayEnds.popMin() }
        while let expiry = expiries.min, items[expiry.key]?.isLive != true { expiries.popMin() }
        while let settling = settlings.min, !isStuck(settling.key) { settlings.popMin() }
        let delayEnd = sendsRequests ? delayEnds.min?.time : nil
        let expiry = sendsRequests ? expiries.min?.time : nil
        return [delayEnd, expiry, settlings.min?.time].compactMap(\.self).min()
    }

    private func isStuck(_ id: OfflineID) -> Bool { items[id]?.isStuck ?? false }

    // MARK: Requests

    /// Adds a request.
    /// - Parameter isResting: Whether it is dead or uncertain.
    package mutating func add(
        _ id: OfflineID, lane: String, expires: MonotonicTime, isResting: Bool = false, now: MonotonicTime
    ) -> Effects {
        guard items[id] == nil else { return take(now) }
        items[id] = Item(lane: lane, expires: expires, state: isResting ? .resting : .waiting)
        if !isResting { enqueue(id, lane, expires) }
        return take(now)
    }

    private mutating func enqueue(_ id: OfflineID, _ name: String, _ expires: MonotonicTime) {
        pendingCount += 1
        items[id]?.isLive = true
        items[id]?.isInLane = true
        if expires != .distantFuture { expiries.insert(Timer(time: expires, key: id)) }
        let isNew = lanes[name, default: Lane(state: .ready)].insert(id)
        if isNew { ready.append(name) }
    }

    /// Handles the end of an attempt; ignored if the request is not being sent.
    /// - Parameter random: Between 0 and 1.
    /// - Returns: The actions, and the delay of the lane.
    package mutating func end(_ id: OfflineID, _ outcome: Outcome, random: Double, now: MonotonicTime) -> (
        effects: Effects, delay: Duration
    ) {
        guard let item = items[id], item.state == .sending else { return (take(now), .zero) }
        switch outcome {
        case .settled:
            items[id]?.state = .settling
            lanes[item.lane]?.failures = 0
        case .later where item.isDropped:
            items[id]?.state = .settling
            effects.settle.append(id)
        case .later where item.expires <= now:
            items[id]?.state = .settling
            effects.expire.append(id)
        case .later(let reason, let atLeast):
            items[id]?.state = .waiting
            let delay = postpone(item.lane, reason, atLeast: atLeast, random: random, now: now)
            return (take(now), delay)
        }
        return (take(now), .zero)
    }

    /// Records that the outcome of a request is on disk.
    /// - Parameter isResting: Whether it stays, dead or uncertain; otherwise it was removed.
    package mutating func settled(_ id: OfflineID, isResting: Bool, now: MonotonicTime) -> Effects {
        guard let item = items[id], item.state == .settling else { return take(now) }
        if item.isLive {
            pendingCount -= 1
            if pendingCount == 0 { effects.isDrained = true }
        }
        leaveLane(id, item.lane)
        items[id] = isResting ? Item(lane: item.lane, expires: item.expires, state: .resting) : nil
        return take(now)
    }

    /// Handles a failure to record the outcome of a request: its lane waits, and the recording is retried.
    package mutating func settlingFailed(_ id: OfflineID, random: Double, now: MonotonicTime) -> (
        effects: Effects, delay: Duration
    ) {
        guard let item = items[id], item.state == .settling else { return (take(now), .zero) }
        items[id]?.isStuck = true
        let delay: Duration
        if lanes[item.lane]?.state == .busy(id) {
            delay = postpone(item.lane, .storage, atLeast: .zero, random: random, now: now)
        } else {
            // The request is no longer in a lane, so it delays no other.
            delay = backoff.delay(failures: 4, random: random)
            settlings.insert(Timer(time: now.advanced(by: delay), key: id))
        }
        return (take(now), delay)
    }

    /// Sends a dead or uncertain request again, and a waiting one immediately.
    /// - Parameter expires: The new time of expiry, used if the request has expired.
    /// - Returns: The actions; `nil` if there is no such request, or it is being sent or settled.
    package mutating func retry(_ id: OfflineID, expires: MonotonicTime = .distantFuture, now: MonotonicTime)
        -> Effects?
    {
        guard var item = items[id] else { return nil }
        switch item.state {
        case .sending, .settling: return nil
        case .resting:
            item.state = .waiting
            if item.expires <= now { item.expires = expires }
            items[id] = item
            enqueue(id, item.lane, item.expires)
        case .waiting: break
        }
        wake(item.lane)
        return take(now)
    }

    /// Removes a request. It is then settling, or its attempt is cancelled first.
    /// - Returns: The actions; `nil` if there is no such request, or its end is being recorded.
    package mutating func drop(_ id: OfflineID, now: MonotonicTime) -> Effects? {
        guard let item = items[id] else { return nil }
        switch item.state {
        case .settling:
            guard item.isStuck else { return nil }
            settleAgain(id)
            leaveLane(id, item.lane)
        case .sending:
            items[id]?.isDropped = true
            effects.cancel.append(id)
        case .resting, .waiting:
            items[id]?.state = .settling
            effects.settle.append(id)
            leaveLane(id, item.lane)
        }
        return take(now)
    }

    private mutating func settleAgain(_ id: OfflineID) {
        items[id]?.isStuck = false
        effects.settle.append(id)
    }

    private mutating func leaveLane(_ id: OfflineID, _ name: String) {
        // Avoids a search for each of many dropped or expired requests.
        guard items[id]?.isInLane == true else { return }
        items[id]?.isInLane = false
        guard let state = lanes[name]?.state else { return }
        let wasFirst = lanes[name]?.ids.first == id
        // Changed in place, because a lane may be long.
        lanes[name]?.remove(id)
        // Failures and delays belong to the request that has left.
        if wasFirst { wake(name) }
        if state == .busy(id) {
            busyCount -= 1
            makeReady(name)
        }
        if lanes[name]?.ids.isEmpty == true { lanes[name] = nil }
    }

    // MARK: Lanes

    private mutating func postpone(
        _ name: String, _ reason: OfflinePostponement.Reason, atLeast: Duration, random: Double, now: MonotonicTime
    ) -> Duration {
        guard var lane = lanes[name] else { return .zero }
        if case .busy = lane.state { busyCount -= 1 }
        lane.failures += 1
        var delay = backoff.delay(failures: lane.failures, random: random)
        // Frequent attempts do not make credentials available.
        if reason == .unauthorized { delay = max(.zero, backoff.maximumDelay) }
        delay = max(delay, min(atLeast, max(.zero, backoff.maximumRetryAfter)))
        let until = now.advanced(by: delay)
        lane.state = .waiting(reason, until: until)
        lanes[name] = lane
        delayEnds.insert(Timer(time: until, key: name))
        return delay
    }

    private mutating func makeReady(_ name: String) {
        lanes[name]?.state = .ready
        ready.append(name)
    }

    /// Resets the failures of a lane, and ends its delay.
    private mutating func wake(_ name: String) {
        lanes[name]?.failures = 0
        if wait(of: name) != nil { makeReady(name) }
    }

    /// Ends the delays of lanes with one of these reasons, as if nothing had failed.
    package mutating func wake(waitingFor reasons: Set<OfflinePostponement.Reason>, now: MonotonicTime) -> Effects {
        // In the order of their first requests, so that the result does not depend on a hash.
        let names = lanes.keys.filter { name in wait(of: name).map { reasons.contains($0.reason) } ?? false }.sorted {
            (lanes[$0]?.ids.first ?? OfflineID(0)) < (lanes[$1]?.ids.first ?? OfflineID(0))
        }
        for name in names { wake(name) }
        return take(now)
    }

    /// Handles the passing of time.
    package mutating func advance(to now: MonotonicTime) -> Effects { take(now) }

    /// Prevents further attempts. Current attempts may end.
    package mutating func close() { sendsRequests = false }

    private mutating func take(_ now: MonotonicTime) -> Effects {
        expire(now)
        while let first = delayEnds.min, first.time <= now {
            delayEnds.popMin()
            if wait(of: first.key)?.until == first.time { makeReady(first.key) }
        }
        while let first = settlings.min, first.time <= now {
            settlings.popMin()
            if isStuck(first.key) { settleAgain(first.key) }
        }
        begin()
        defer { effects = Effects() }
        return effects
    }

    private mutating func expire(_ now: MonotonicTime) {
        // Requests expire only where they are sent: inspecting a queue changes nothing.
        guard sendsRequests else { return }
        while let first = expiries.min, first.time <= now {
            expiries.popMin()
            // A request that is being sent expires when its attempt has failed. A retry may have changed the time.
            guard let item = items[first.key], item.state == .waiting, item.expires == first.time else { continue }
            items[first.key]?.state = .settling
            effects.expire.append(first.key)
            leaveLane(first.key, item.lane)
        }
    }

    private mutating func begin() {
        guard sendsRequests else { return }
        while busyCount < laneLimit, let name = ready.popFirst() {
            guard let lane = lanes[name], lane.state == .ready, let id = lane.ids.first, let item = items[id] else {
                continue
            }
            if item.state == .waiting {
                items[id]?.state = .sending
                effects.begin.append(id)
            } else {
                // Its outcome could not be recorded, and the delay before the next attempt has passed.
                settleAgain(id)
            }
            lanes[name]?.state = .busy(id)
            busyCount += 1
        }
    }

    /// Requests that are sent one after the other.
    private struct Lane: Sendable {
        enum State: Hashable, Sendable {
            /// The first request may start.
            case ready
            /// The first request is being sent or settled.
            case busy(OfflineID)
            /// The lane waits after a failure.
            case waiting(OfflinePostponement.Reason, until: MonotonicTime)
        }
        /// The requests in order; empty only during a change.
        var ids = FIFOQueue<OfflineID>()
        var state: State
        /// The number of consecutive failures.
        var failures = 0

        /// Adds a request at its position.
        /// - Returns: Whether it is the first.
        mutating func insert(_ id: OfflineID) -> Bool {
            // Sorted by number, so nearly always at the end. A request that is being sent stays first.
            var first = ids.startIndex
            if case .busy = state { first = min(first + 1, ids.endIndex) }
            var place = ids.endIndex
            while place > first, ids[place - 1] > id { place -= 1 }
            ids.insert(id, at: place)
            return ids.count == 1
        }

        mutating func remove(_ id: OfflineID) {
            if ids.first == id {
                ids.popFirst()
                return
            }
            // The numbers are sorted, except for the first one if it was being sent when a lower number was added.
            var (low, high) = (ids.startIndex, ids.endIndex)
            while low < high {
                let middle = (low + high) / 2
                if ids[middle] < id { low = middle + 1 } else { high = middle }
            }
            let place = low < ids.endIndex && ids[low] == id ? low : ids.firstIndex(of: id)
            if let place { ids.remove(at: place) }
        }
    }
}
