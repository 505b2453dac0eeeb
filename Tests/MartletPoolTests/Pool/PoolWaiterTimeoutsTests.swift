import MartletTransport
import Testing

@testable import MartletPool

/// An owner of a pool on a manual clock whose dials mostly hang, with the timeouts of its queued requests and their
/// timers.
private struct ClockModel {
    private final class Request {
        var timeouts: PoolWaiterTimeouts
        let hasConnectClock: Bool

        init(connectTimeout: Duration?, poolTimeout: Duration?, now: MonotonicTime) {
            timeouts = PoolWaiterTimeouts(connectTimeout: connectTimeout, poolTimeout: poolTimeout, now: now)
            hasConnectClock = connectTimeout != nil
        }
    }

    private(set) var faults: [String] = []
    /// The number of waits that the connect timeout ended.
    private(set) var endedByConnectTimeout = 0
    private(set) var endedByPoolTimeout = 0
    private(set) var adoptions = 0
    private var pool = PoolMachine<Int>(limits: PoolLimits(connectionsPerHost: 2, totalConnections: 5))
    private var random: PoolGenerator
    private var now = MonotonicTime(nanoseconds: 1 << 40)
    private var waiting: [PoolWaiterID: Request] = [:]
    /// The dials and the times at which they fail; most of them never do.
    private var dials: [PoolConnectionID: MonotonicTime] = [:]
    private var leased: [PoolConnectionID] = []
    private var timers: [(waiter: PoolWaiterID, at: MonotonicTime)] = []

    init(seed: UInt64) { random = PoolGenerator(state: seed) }

    mutating func step() {
        switch Int.random(in: 0..<100, using: &random) {
        case ..<30: request()
        case ..<42: cancel(hasConnectClock: Bool.random(using: &random))
        case ..<50: endDial(succeeds: true)
        case ..<56: endDial(succeeds: false)
        case ..<64: release()
        default: advance(by: .milliseconds(Int.random(in: 0...900, using: &random)))
        }
        check()
    }

    /// Cancels the requests without a connect timeout, releases leased connections and advances the clock, so that
    /// every wait ends.
    mutating func finish() {
        while !leased.isEmpty || waiting.values.contains(where: { !$0.hasConnectClock }) {
            if Bool.random(using: &random) { cancel(hasConnectClock: false) } else { release() }
            advance(by: .milliseconds(Int.random(in: 0...900, using: &random)))
            check()
        }
        for _ in 0..<1000 where !waiting.isEmpty {
            advance(by: .seconds(5))
            release()
            check()
        }
        if !waiting.isEmpty { faults.append("\(waiting.count) requests wait for ever") }
    }

    private mutating func request() {
        let connect: Duration? =
            Bool.random(using: &random) ? nil : .milliseconds(Int.random(in: 0...3000, using: &random))
        let poolWait: Duration? =
            Int.random(in: 0..<4, using: &random) == 0
            ? .milliseconds(Int.random(in: 0...5000, using: &random)) : nil
        let priority = RequestPriority.allCases.randomElement(using: &random) ?? .normal
        let admission = pool.request(
            Int.random(in: 0..<4, using: &random), priority: priority, now: now.nanoseconds)
        if let lease = admission.lease { leased.append(lease) }
        if let waiter = admission.waiter {
            let request = Request(connectTimeout: connect, poolTimeout: poolWait, now: now)
            waiting[waiter] = request
            if pool.isDialing(for: waiter) { _ = request.timeouts.dialBegan(at: now) }
            set(request.timeouts.nextTimer, waiter)
        }
        apply(admission.effects)
    }

    private mutating func cancel(hasConnectClock: Bool) {
        let candidates = waiting.filter { $0.value.hasConnectClock == hasConnectClock }.keys
        guard let waiter = candidates.sorted(by: { $0.index < $1.index }).randomElement(using: &random)
        else { return }
        waiting[waiter] = nil
        apply(pool.cancel(waiter).effects)
    }

    private mutating func endDial(succeeds: Bool) {
        guard
            let dial = dials.keys.sorted(by: { $0.index < $1.index }).randomElement(using: &random)
        else { return }
        end(dial, succeeds: succeeds)
    }

    private mutating func end(_ dial: PoolConnectionID, succeeds: Bool) {
        dials[dial] = nil
        apply(succeeds ? pool.dialSucceeded(dial, now: now.nanoseconds) : pool.dialFailed(dial))
    }

    private mutating func release() {
        guard !leased.isEmpty else { return }
        let connection = leased.remove(at: Int.random(in: 0..<leased.count, using: &random))
        apply(
            pool.released(
                connection, isReusable: Bool.random(using: &random), now: now.nanoseconds))
    }

    /// Advances the clock and fires the timers in order.
    private mutating func advance(by duration: Duration) {
        let end = now.advanced(by: duration)
        while let next = (timers.map(\.at) + dials.values).min(), next <= end {
            now = max(now, next)
            if let index = timers.firstIndex(where: { $0.at <= now }) {
                fire(timers.remove(at: index).waiter)
            } else if let dial = dials.first(where: { $0.value <= now })?.key {
                self.end(dial, succeeds: false)
            }
        }
        now = end
    }

    private mutating func fire(_ waiter: PoolWaiterID) {
        guard let request = waiting[waiter] else { return }
        switch request.timeouts.timerFired(isDialing: pool.isDialing(for: waiter), now: now) {
        case .continueWaiting(let next):
            if let next { set(next, waiter) }
        case .timedOut(let timeout):
            if timeout == .connect { endedByConnectTimeout += 1 } else { endedByPoolTimeout += 1 }
            waiting[waiter] = nil
            apply(pool.cancel(waiter).effects)
        }
    }

    private mutating func set(_ deadline: MonotonicTime?, _ waiter: PoolWaiterID) {
        guard let deadline, deadline != .distantFuture else { return }
        timers.append((waiter, deadline))
    }

    private mutating func apply(_ effects: PoolMachine<Int>.Effects) {
        if let grant = effects.grant {
            waiting[grant.waiter] = nil
            leased.append(grant.connection)
        }
        for waiter in effects.failures { waiting[waiter] = nil }
        for dial in effects.dials {
            guard let waiter = pool.waiter(of: dial.connection), let request = waiting[waiter] else {
                continue
            }
            set(request.timeouts.dialBegan(at: now), waiter)
            // One dial in four observes its own deadline. The others hang until they are cancelled.
            let observes = Int.random(in: 0..<4, using: &random) == 0
            dials[dial.connection] =
                observes ? now.deadline(after: request.timeouts.connectTimeout) : .distantFuture
        }
        for waiter in effects.dialAssignmentChanges {
            guard let request = waiting[waiter] else { continue }
            let isDialing = pool.isDialing(for: waiter)
            if isDialing { adoptions += 1 }
            set(isDialing ? request.timeouts.dialBegan(at: now) : request.timeouts.dialEnded(at: now), waiter)
        }
        for dial in effects.abandons where dials[dial] != nil { end(dial, succeeds: false) }
    }

    /// Checks that each wait with a running timeout has a timer that fires by its end.
    private mutating func check() {
        for (waiter, request) in waiting {
            let isDialing = pool.isDialing(for: waiter)
            let deadline = request.timeouts.deadline(isDialing: isDialing)
            guard deadline != .distantFuture else { continue }
            if !timers.contains(where: { $0.waiter == waiter && $0.at <= max(deadline, now) }) {
                faults.append("\(waiter) has no timer; a dial is made for it: \(isDialing)")
            }
        }
        faults += pool.checkInvariants()
    }
}

@Suite("Pool: timeouts of queued requests")
struct PoolWaiterTimeoutsTests {
    private let start = MonotonicTime(nanoseconds: 1 << 40)

    @Test("Every wait with a timeout has a timer that ends it, whatever happens to its dials", arguments: 0..<20)
    func everyWaitEnds(run: Int) async {
        let seed = UInt64.random(in: .min ... .max)
        var model = ClockModel(seed: seed)
        for number in 0..<2000 where model.faults.isEmpty {
            model.step()
            if number % 16 == 0 { await Task.yield() }
        }
        if model.faults.isEmpty { model.finish() }
        #expect(model.faults.prefix(3).isEmpty, "seed \(seed)")
        #expect(model.endedByConnectTimeout > 0 && model.endedByPoolTimeout > 0 && model.adoptions > 0)
    }

    @Test("A dial that is adopted after the first timer fired sets another timer")
    func adoptedLate() {
        var timeouts = PoolWaiterTimeouts(connectTimeout: .seconds(1), poolTimeout: nil, now: start)
        let later = start.advanced(by: .seconds(10))
        #expect(timeouts.nextTimer == start.advanced(by: .seconds(2)))
        #expect(timeouts.timerFired(isDialing: false, now: timeouts.nextTimer) == .continueWaiting(nil))
        #expect(timeouts.dialBegan(at: later) == later.advanced(by: .seconds(2)))
        #expect(
            timeouts.timerFired(isDialing: true, now: later.advanced(by: .seconds(2))) == .timedOut(.connect))
    }

    @Test(
        "A dial that is adopted early retains its timer, and its request gets the full timeout")
    func adoptedEarly() {
        var timeouts = PoolWaiterTimeouts(connectTimeout: .seconds(1), poolTimeout: nil, now: start)
        let later = start.advanced(by: .seconds(1))
        #expect(timeouts.dialBegan(at: later) == nil)
        #expect(
            timeouts.timerFired(isDialing: true, now: timeouts.nextTimer)
                == .continueWaiting(later.advanced(by: .seconds(2))))
    }

    @Test("A request that loses its dial after its pool timeout ends immediately")
    func dialLostLate() {
        var timeouts = PoolWaiterTimeouts(connectTimeout: nil, poolTimeout: .seconds(1), now: start)
        #expect(timeouts.timerFired(isDialing: true, now: start.advanced(by: .seconds(1))) == .continueWaiting(nil))
        let later = start.advanced(by: .seconds(5))
        #expect(timeouts.dialEnded(at: later) == later)
        #expect(timeouts.timerFired(isDialing: false, now: later) == .timedOut(.poolWait))
    }
}
