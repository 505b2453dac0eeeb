import DequeModule
import HeapModule
package import MartletTransport

/// Which request is sent when: one of each lane at a time, in the order of their numbers, so many lanes at once. Time is
/// passed in, and what is to be done comes out.
///
/// A request is in one place at a time: waiting in its lane, being sent, being settled (its end is being written down), or
/// resting (dead or uncertain), which holds nobody up. The next of a lane begins when the end of the one before it is on
/// the disk, so that a kill between the two never turns their order around.
package struct ReplayMachine: Sendable {
    /// What is to be done, in this order.
    package struct Effects: Sendable, Equatable {
        /// Requests that are to be sent.
        package var begin: [OfflineID] = []
        /// Requests whose sending is to be cancelled.
        package var cancel: [OfflineID] = []
        /// Requests whose time is up, which become dead letters; they are settling.
        package var expire: [OfflineID] = []
        /// Requests whose end is to be written down, again; they are settling.
        package var settle: [OfflineID] = []
        /// Whether nothing waits any more, and something did before.
        package var isDrained = false
    }

    /// Where a request is.
    package enum Place: Hashable, Sendable {
        /// In its lane.
        case waiting
        /// Under way.
        case sending
        /// Its end is being written down.
        case settling
        /// Dead or uncertain.
        case resting
    }

    /// How a try, or a settling, ended.
    package enum Ending: Hashable, Sendable {
        /// The request's end is to be written down.
        case settled
        /// It is sent again, when its lane has waited.
        case later(OfflinePostponement.Reason, Duration)
    }

    struct Item: Sendable {
        let lane: String
        var expires: MonotonicTime
        var place: Place
        /// Whether it waits, is sent, or is being settled after that: what the queue is not done with.
        var isLive = false
        /// Whether it is dropped as soon as its try has ended.
        var isDropped = false
        /// Whether its end could not be written down, and waits for the next try.
        var isStuck = false
        /// Whether it stands in its lane: not once it was dropped there, or has expired, nor while it rests.
        var isInLane = false
    }

    private struct Alarm: Comparable, Sendable {
        let time: MonotonicTime
        let lane: String
        let number: UInt64
        static func < (left: Alarm, right: Alarm) -> Bool {
            (left.time, left.number) < (right.time, right.number)
        }
    }

    private struct Due: Comparable, Sendable {
        let time: MonotonicTime
        let id: OfflineID
        static func < (left: Due, right: Due) -> Bool { (left.time, left.id) < (right.time, right.id) }
    }

    private let backoff: OfflineBackoff
    private let laneLimit: Int
    private(set) var items: [OfflineID: Item] = [:]
    private(set) var lanes: [String: Lane] = [:]
    /// Lanes that may begin, those first that came first; some are no longer.
    private var ready = Deque<String>()
    private var alarms = Heap<Alarm>()
    private var expiries = Heap<Due>()
    /// When ends are written down again that could not be, of requests that are in no lane any more.
    private var settlings = Heap<Due>()
    private var lastAlarm: UInt64 = 0
    private(set) var busyCount = 0
    /// How many requests wait, are sent or are being settled.
    private var liveCount = 0
    private var isSending: Bool
    private var effects = Effects()

    /// A machine of no requests.
    /// - Parameters:
    ///   - lanes: How many are sent at once.
    ///   - isSending: Whether it begins any.
    package init(backoff: OfflineBackoff, lanes: Int, isSending: Bool = true) {
        self.backoff = backoff
        laneLimit = max(1, lanes)
        self.isSending = isSending
    }

    // MARK: Looking

    /// Where a request is; `nil` where it is not known.
    package func place(of id: OfflineID) -> Place? { items[id]?.place }

    /// The time at which a request expires; `nil` where it is not known.
    package func expiry(of id: OfflineID) -> MonotonicTime? { items[id]?.expires }

    /// Whether nothing waits and nothing is under way.
    package var isDrained: Bool { liveCount == 0 }

    /// How many requests wait, are sent or are being settled.
    package var pendingCount: Int { liveCount }

    /// Why a lane waits, and until when; `nil` where it does not.
    package func wait(of lane: String) -> (reason: OfflinePostponement.Reason, until: MonotonicTime)? {
        guard case .waiting(let reason, let until, _) = lanes[lane]?.state else { return nil }
        return (reason, until)
    }

    /// When ``advance(to:)`` is to be called next; `nil` where there is nothing to wait for.
    package mutating func nextWake() -> MonotonicTime? {
        while let alarm = alarms.min, !isCurrent(alarm) { alarms.removeMin() }
        while let expiry = expiries.min, items[expiry.id]?.isLive != true { expiries.removeMin() }
        while let settling = settlings.min, !isStuck(settling.id) { settlings.removeMin() }
        let alarm = isSending ? alarms.min?.time : nil
        let expiry = isSending ? expiries.min?.time : nil
        return [alarm, expiry, settlings.min?.time].compactMap(\.self).min()
    }

    private func isCurrent(_ alarm: Alarm) -> Bool {
        guard case .waiting(_, _, alarm.number) = lanes[alarm.lane]?.state else { return false }
        return true
    }

    // MARK: Requests

    /// Takes up a request.
    /// - Parameter isResting: Whether it is dead or uncertain.
    package mutating func add(
        _ id: OfflineID, lane: String, expires: MonotonicTime, isResting: Bool = false, now: MonotonicTime
    ) -> Effects {
        guard items[id] == nil else { return take(now) }
        items[id] = Item(lane: lane, expires: expires, place: isResting ? .resting : .waiting)
        if !isResting { enqueue(id, lane, expires) }
        return take(now)
    }

    private mutating func enqueue(_ id: OfflineID, _ name: String, _ expires: MonotonicTime) {
        liveCount += 1
        items[id]?.isLive = true
        items[id]?.isInLane = true
        if expires != .distantFuture { expiries.insert(Due(time: expires, id: id)) }
        let isNew = lanes[name, default: Lane(state: .ready)].insert(id)
        if isNew { ready.append(name) }
    }

    /// Notes how a try ended. Nothing where the request was not under way.
    /// - Parameter random: Between 0 and 1.
    /// - Returns: What is to be done, and how long the lane waits.
    package mutating func end(
        _ id: OfflineID, _ ending: Ending, random: Double, now: MonotonicTime
    ) -> (effects: Effects, delay: Duration) {
        guard var item = items[id], item.place == .sending else { return (take(now), .zero) }
        switch ending {
        case .settled:
            item.place = .settling
            items[id] = item
            lanes[item.lane]?.failures = 0
            return (take(now), .zero)
        case .later(let reason, let atLeast):
            if item.isDropped || item.expires <= now {
                item.place = .settling
                items[id] = item
                if item.isDropped { effects.settle.append(id) } else { effects.expire.append(id) }
                return (take(now), .zero)
            }
            item.place = .waiting
            items[id] = item
            let delay = postpone(item.lane, reason, atLeast: atLeast, random: random, now: now)
            return (take(now), delay)
        }
    }

    /// Notes that a request's end is on the disk.
    /// - Parameter isResting: Whether it stays, dead or uncertain; else it is gone.
    package mutating func settled(_ id: OfflineID, isResting: Bool, now: MonotonicTime) -> Effects {
        guard let item = items[id], item.place == .settling else { return take(now) }
        if item.isLive {
            liveCount -= 1
            if liveCount == 0 { effects.isDrained = true }
        }
        leaveLane(id, item.lane)
        items[id] = isResting ? Item(lane: item.lane, expires: item.expires, place: .resting) : nil
        return take(now)
    }

    /// Notes that a request's end could not be written down: its lane waits, and it is tried again.
    package mutating func settlingFailed(
        _ id: OfflineID, random: Double, now: MonotonicTime
    ) -> (effects: Effects, delay: Duration) {
        guard let item = items[id], item.place == .settling else { return (take(now), .zero) }
        items[id]?.isStuck = true
        guard lanes[item.lane]?.state == .busy(id) else {
            // In no lane any more, so that it holds nobody up.
            let delay = backoff.delay(failures: 4, random: random)
            settlings.insert(Due(time: now.advanced(by: delay), id: id))
            return (take(now), delay)
        }
        let delay = postpone(item.lane, .storage, atLeast: .zero, random: random, now: now)
        return (take(now), delay)
    }

    /// Lets a dead or uncertain request be sent again; one that waits, at once.
    /// - Parameter expires: When its time is up, where it was up already.
    /// - Returns: What is to be done; `nil` where there is no such request, or it is under way.
    package mutating func retry(
        _ id: OfflineID, expires: MonotonicTime = .distantFuture, now: MonotonicTime
    ) -> Effects? {
        guard var item = items[id] else { return nil }
        switch item.place {
        case .sending, .settling: return nil
        case .resting:
            item.place = .waiting
            if item.expires <= now { item.expires = expires }
            items[id] = item
            enqueue(id, item.lane, item.expires)
        case .waiting: break
        }
        lanes[item.lane]?.failures = 0
        wake(item.lane)
        return take(now)
    }

    /// Takes a request out: it is settling then, or its try is cancelled first.
    /// - Returns: What is to be done; `nil` where there is no such request, or its end is being written down.
    package mutating func drop(_ id: OfflineID, now: MonotonicTime) -> Effects? {
        guard let item = items[id] else { return nil }
        switch item.place {
        case .settling:
            guard item.isStuck else { return nil }
            items[id]?.isStuck = false
            effects.settle.append(id)
            leaveLane(id, item.lane)
        case .sending:
            items[id]?.isDropped = true
            effects.cancel.append(id)
        case .resting, .waiting:
            items[id]?.place = .settling
            effects.settle.append(id)
            leaveLane(id, item.lane)
        }
        return take(now)
    }

    /// Whether a request was dropped while it was under way.
    package func isDropped(_ id: OfflineID) -> Bool { items[id]?.isDropped ?? false }

    private mutating func leaveLane(_ id: OfflineID, _ name: String) {
        // Of many that were dropped or have expired each would be looked for in vain.
        guard items[id]?.isInLane == true else { return }
        items[id]?.isInLane = false
        guard let state = lanes[name]?.state else { return }
        let wasFirst = lanes[name]?.ids.first == id
        // In place: a lane may be long.
        lanes[name]?.remove(id)
        if wasFirst {
            // Failures and waits are those of the request that has left.
            lanes[name]?.failures = 0
            wake(name)
        }
        if state == .busy(id) {
            busyCount -= 1
            makeReady(name)
        }
        if lanes[name]?.ids.isEmpty == true { lanes[name] = nil }
    }

    // MARK: Lanes

    private mutating func postpone(
        _ name: String, _ reason: OfflinePostponement.Reason, atLeast: Duration, random: Double,
        now: MonotonicTime
    ) -> Duration {
        guard var lane = lanes[name] else { return .zero }
        if case .busy = lane.state { busyCount -= 1 }
        lane.failures += 1
        var delay = backoff.delay(failures: lane.failures, random: random)
        // No credentials are found by asking often.
        if reason == .unauthorized { delay = max(.zero, backoff.longest) }
        delay = max(delay, min(atLeast, max(.zero, backoff.longestRetryAfter)))
        lastAlarm += 1
        let until = now.advanced(by: delay)
        lane.state = .waiting(reason, until: until, lastAlarm)
        lanes[name] = lane
        alarms.insert(Alarm(time: until, lane: name, number: lastAlarm))
        return delay
    }

    private mutating func makeReady(_ name: String) {
        lanes[name]?.state = .ready
        ready.append(name)
    }

    private mutating func wake(_ name: String) {
        guard case .waiting = lanes[name]?.state else { return }
        makeReady(name)
    }

    /// Lets lanes go on that wait for one of these reasons, as if nothing had failed.
    package mutating func wake(
        waitingFor reasons: Set<OfflinePostponement.Reason>, now: MonotonicTime
    ) -> Effects {
        // In the order of their first requests, so that what happens does not hang on a hash.
        let names = lanes.filter { entry in
            guard case .waiting(let reason, _, _) = entry.value.state else { return false }
            return reasons.contains(reason)
        }.sorted { ($0.value.ids.first ?? OfflineID(0)) < ($1.value.ids.first ?? OfflineID(0)) }
        for (name, _) in names {
            lanes[name]?.failures = 0
            wake(name)
        }
        return take(now)
    }

    /// Lets time pass.
    package mutating func advance(to now: MonotonicTime) -> Effects { take(now) }

    /// Begins nothing any more. What is under way may end.
    package mutating func close() { isSending = false }

    private mutating func take(_ now: MonotonicTime) -> Effects {
        expire(now)
        ring(now)
        begin()
        defer { effects = Effects() }
        return effects
    }

    private mutating func expire(_ now: MonotonicTime) {
        // Requests expire where they are sent: looking at a queue changes nothing.
        guard isSending else { return }
        while let first = expiries.min, first.time <= now {
            expiries.removeMin()
            // One that is under way expires when its try has failed.
            guard let item = items[first.id], item.place == .waiting else { continue }
            items[first.id]?.place = .settling
            effects.expire.append(first.id)
            leaveLane(first.id, item.lane)
        }
    }

    private mutating func ring(_ now: MonotonicTime) {
        while let first = alarms.min, first.time <= now {
            alarms.removeMin()
            if isCurrent(first) { makeReady(first.lane) }
        }
        while let first = settlings.min, first.time <= now {
            settlings.removeMin()
            if isStuck(first.id) { settleAgain(first.id) }
        }
    }

    private func isStuck(_ id: OfflineID) -> Bool { items[id]?.isStuck ?? false }

    private mutating func settleAgain(_ id: OfflineID) {
        items[id]?.isStuck = false
        effects.settle.append(id)
    }

    private mutating func begin() {
        guard isSending else { return }
        while busyCount < laneLimit, let name = ready.popFirst() {
            guard var lane = lanes[name], lane.state == .ready, let id = lane.ids.first,
                let place = items[id]?.place
            else { continue }
            if place == .waiting {
                items[id]?.place = .sending
                effects.begin.append(id)
            } else {
                // Its end could not be written down, and the lane has waited for the next try.
                settleAgain(id)
            }
            lane.state = .busy(id)
            busyCount += 1
            lanes[name] = lane
        }
    }
}

extension ReplayMachine {
    /// What waits for each other, and what it waits for.
    struct Lane: Sendable {
        /// What a lane does.
        enum State: Hashable, Sendable {
            /// Its first request may begin.
            case ready
            /// Its first request is under way, or settling.
            case busy(OfflineID)
            /// It waits; the number tells this wait from others.
            case waiting(OfflinePostponement.Reason, until: MonotonicTime, UInt64)
        }
        /// What it has to send, in order; never empty, but for a moment.
        var ids = Deque<OfflineID>()
        var state: State
        /// How many tries failed in a row.
        var failures = 0

        /// Adds a request at its place.
        /// - Returns: Whether it is the first.
        mutating func insert(_ id: OfflineID) -> Bool {
            // By number: nearly always at the end. One that is under way stays in front.
            var first = ids.startIndex
            if case .busy = state { first = min(first + 1, ids.endIndex) }
            var place = ids.endIndex
            while place > first, ids[place - 1] > id { place -= 1 }
            ids.insert(id, at: place)
            return ids.count == 1
        }

        /// Takes a request out.
        mutating func remove(_ id: OfflineID) {
            if ids.first == id {
                ids.removeFirst()
                return
            }
            // They are in order, but for one in front that was under way when another came that belongs before it.
            var (low, high) = (ids.startIndex, ids.endIndex)
            while low < high {
                let middle = (low + high) / 2
                if ids[middle] < id { low = middle + 1 } else { high = middle }
            }
            if low < ids.endIndex, ids[low] == id {
                ids.remove(at: low)
            } else if let place = ids.firstIndex(of: id) {
                ids.remove(at: place)
            }
        }
    }
}
