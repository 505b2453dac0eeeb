@testable import MartletTransport

/// A race on a manual clock that logs every effect in order.
final class RaceScene {
    typealias Race = ConnectRaceMachine<FakeAddress, String>

    private var race: Race
    /// Milliseconds since the start.
    private(set) var now: UInt64 = 0
    /// The effects with their times: `0 start 6a#0`.
    private(set) var log: [String] = []
    private var started: [Race.Attempt] = []
    private var armed: UInt64?

    init(
        _ addresses: [FakeAddress], settings: HappyEyeballsOptions = HappyEyeballsOptions(),
        memory: AddressMemory<FakeAddress> = AddressMemory()
    ) {
        race = Race(addresses: addresses, settings: settings, memory: memory, now: 0)
    }

    var isOver: Bool { race.isOver }
    var deadline: UInt64? { race.deadline }

    func start() {
        note(race.start(now: nanoseconds))
    }

    /// Advances the clock and fires the timer when it is due.
    func advance(_ milliseconds: UInt64) {
        let end = now + milliseconds
        while let time = armed, time <= end {
            now = time
            armed = nil
            note(race.timerFired(now: nanoseconds))
        }
        now = end
    }

    /// Fires the timer regardless of the time.
    func fire() {
        note(race.timerFired(now: nanoseconds))
    }

    func connect(_ number: Int) {
        note(race.connected(started[number]))
    }

    func fail(_ number: Int, _ failure: String = "refused") {
        note(race.attemptFailed(started[number], failure, now: nanoseconds))
    }

    func winnerSucceeds() {
        race.winnerSucceeded()
    }

    func winnerFails(_ failure: String = "handshake") {
        note(race.winnerFailed(failure, now: nanoseconds))
    }

    func cancel() {
        note(race.cancel())
    }

    private var nanoseconds: UInt64 { now * 1_000_000 }

    private func note(_ effects: Race.Effects) {
        if let winner = effects.winner { log.append("\(now) won \(name(winner))") }
        for attempt in effects.cancels { log.append("\(now) cancel \(name(attempt))") }
        if let attempt = effects.start {
            started.append(attempt)
            log.append("\(now) start \(name(attempt))")
        }
        if let timer = effects.timer {
            armed = timer / 1_000_000
            log.append("\(now) timer \(timer / 1_000_000)")
        }
        if let failures = effects.failures {
            let list = failures.map { "\(name($0.attempt)) \($0.failure)" }
            log.append("\(now) lost [\(list.joined(separator: ", "))]")
        }
    }

    private func name(_ attempt: Race.Attempt) -> String { "\(attempt.address)#\(attempt.number)" }
}
