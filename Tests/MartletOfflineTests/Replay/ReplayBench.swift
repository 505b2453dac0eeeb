import MartletTransport

@testable import MartletOffline

/// A replay machine on a manual clock, with the effects that it has requested.
struct ReplayBench {
    var machine: ReplayMachine
    var now = MonotonicTime(nanoseconds: 1_000_000_000_000)
    /// The requests that were started, in order.
    var begun: [UInt64] = []
    var expired: [UInt64] = []
    var settled: [UInt64] = []
    var cancelled: [UInt64] = []
    var drainCount = 0

    init(lanes: Int = 6, backoff: OfflineBackoff = OfflineBackoff(), sendsRequests: Bool = true) {
        machine = ReplayMachine(backoff: backoff, lanes: lanes, sendsRequests: sendsRequests)
    }

    mutating func note(_ effects: ReplayMachine.Effects) {
        begun += effects.begin.map(\.number)
        expired += effects.expire.map(\.number)
        settled += effects.settle.map(\.number)
        cancelled += effects.cancel.map(\.number)
        if effects.isDrained { drainCount += 1 }
    }

    mutating func add(
        _ number: UInt64, _ lane: String = "a", expires: Duration? = nil, isResting: Bool = false
    ) {
        note(
            machine.add(
                OfflineID(number), lane: lane, expires: now.deadline(after: expires), isResting: isResting,
                now: now))
    }

    /// Reports that an attempt ended with success or a permanent failure, and that this is on disk.
    mutating func finish(_ number: UInt64, isResting: Bool = false) {
        note(machine.end(OfflineID(number), .settled, random: 1, now: now).effects)
        note(machine.settled(OfflineID(number), isResting: isResting, now: now))
    }

    @discardableResult
    mutating func fail(
        _ number: UInt64, _ reason: OfflinePostponement.Reason = .unreachable, atLeast: Duration = .zero,
        random: Double = 1
    ) -> Duration {
        let (effects, delay) = machine.end(
            OfflineID(number), .later(reason, atLeast), random: random, now: now)
        note(effects)
        return delay
    }

    mutating func pass(_ duration: Duration) {
        now = now.advanced(by: duration)
        note(machine.advance(to: now))
    }
}
