import Testing

@testable import MartletTransport

extension ConnectRaceMachine.Effects {
    fileprivate var isEmpty: Bool {
        start == nil && cancels.isEmpty && timer == nil && winner == nil && failures == nil
    }
}

@Suite("Connect race: random events")
struct ConnectRaceRandomTests {
    private typealias Race = ConnectRaceMachine<FakeAddress, Int>

    /// The state that the race's owner keeps.
    private struct Books {
        var running: Set<Race.Attempt> = []
        var cancelled: [Race.Attempt] = []
        var winner: Race.Attempt?
        var lost: Int?
        var failed = 0
        var startCount = 0
        var cancelCount = 0
        var faults: [String] = []

        mutating func note(_ effects: Race.Effects) {
            if lost != nil, !effects.isEmpty { faults.append("went on after the race was lost") }
            if let attempt = effects.winner {
                if !running.isEmpty, Set(effects.cancels) != running { faults.append("let a loser run") }
                winner = attempt
            }
            for attempt in effects.cancels {
                if running.remove(attempt) == nil, attempt != winner {
                    faults.append("cancelled what did not run")
                }
                cancelled.append(attempt)
                cancelCount += 1
            }
            if let attempt = effects.start {
                if winner != nil { faults.append("started beside a winner") }
                if attempt.number != startCount { faults.append("numbered wrongly") }
                if !running.insert(attempt).inserted { faults.append("started twice") }
                startCount += 1
            }
            if let failures = effects.failures {
                if !running.isEmpty { faults.append("lost while attempts run") }
                lost = failures.count
            }
        }
    }

    @Test("Every race has exactly one winner or all failures, and every attempt ends once")
    func anything() async {
        for _ in 0..<2_000 {
            // Yields to other tests: on a slow machine this takes a while.
            await Task.yield()
            let seed = UInt64.random(in: .min ... .max)
            let faults = race(seed: seed)
            #expect(faults.isEmpty, "seed \(seed)")
            guard faults.isEmpty else { return }
        }
    }

    /// Runs one race to its end and returns the faults that it found.
    private func race(seed: UInt64) -> [String] {
        var random = RaceGenerator(state: seed)
        let names = (0..<Int.random(in: 0...8, using: &random)).map { number in
            FakeAddress("\(Bool.random(using: &random) ? 6 : 4)-\(number)")
        }
        var machine = Race(addresses: names, now: 0)
        var books = Books()
        var now: UInt64 = 0
        var successes = 0
        books.note(machine.start(now: now))
        for _ in 0..<500 where !machine.isOver {
            now += UInt64.random(in: 0...200_000_000, using: &random)
            let attempt = books.running.min { $0.number < $1.number }
            let other = books.running.max { $0.number < $1.number }
            switch Int.random(in: 0..<20, using: &random) {
            case ..<6:
                books.note(machine.timerFired(now: now))
            case ..<12:
                guard let attempt = Bool.random(using: &random) ? attempt : other else { continue }
                books.running.remove(attempt)
                books.failed += 1
                books.note(machine.attemptFailed(attempt, 0, now: now))
            case ..<15:
                guard let attempt = Bool.random(using: &random) ? attempt : other else { continue }
                let losers = books.running.subtracting([attempt])
                books.running = losers
                books.note(machine.connected(attempt))
                if books.winner != attempt { books.faults.append("the first to connect did not win") }
            case ..<16:
                guard let late = books.cancelled.randomElement(using: &random) else { continue }
                let effects = machine.attemptFailed(late, 1, now: now)
                if !effects.isEmpty { books.faults.append("believed a cancelled attempt") }
                if machine.connected(late).cancels != [late] { books.faults.append("kept a late connection") }
            case ..<19:
                guard books.winner != nil else { continue }
                books.winner = nil
                books.failed += 1
                books.note(machine.winnerFailed(0, now: now))
            default:
                guard books.winner != nil else { continue }
                machine.winnerSucceeded()
                successes += 1
            }
        }
        if !machine.isOver {
            let hadWinner = books.winner != nil
            books.note(machine.cancel())
            if !books.running.isEmpty { books.faults.append("cancelling left attempts running") }
            if hadWinner { books.cancelCount -= 1 }
            if hadWinner { books.failed += 1 }
        } else if (successes == 1) == (books.lost != nil) {
            books.faults.append("\(successes) winners, lost: \(String(describing: books.lost))")
        }
        if let lost = books.lost, lost != books.failed {
            books.faults.append("\(lost) of \(books.failed) failures")
        }
        if books.startCount != books.failed + books.cancelCount + successes {
            books.faults.append("an attempt did not end, or ended twice")
        }
        return books.faults
    }
}
