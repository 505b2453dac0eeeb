import MartletTesting
import MartletTransport
import Testing

@testable import MartletOffline

/// Random events, checked against the invariants of the machine.
@Suite("Replay machine: random events")
struct ReplayModelTests {
    @Test(
        "Each lane sends one request at a time and in order, and nothing is lost", arguments: 0..<60
    )
    func storms(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var bench = ReplayBench(
            lanes: Int.random(in: 1...4, using: &random),
            backoff: OfflineBackoff(initialDelay: .milliseconds(10), maximumDelay: .milliseconds(80)))
        var lanes: [UInt64: String] = [:]
        var last: UInt64 = 0
        var sending: Set<UInt64> = []
        var settling: Set<UInt64> = []
        var gone: Set<UInt64> = []
        var resting: Set<UInt64> = []
        var retried: Set<UInt64> = []
        // The last request of each lane that was sent to its end and not repeated.
        var lastDone: [String: UInt64] = [:]

        func absorb() {
            for id in bench.begun {
                #expect(!sending.contains(id), "begun twice")
                #expect(!gone.contains(id) && !resting.contains(id) && !settling.contains(id))
                let lane = lanes[id] ?? ""
                #expect(!sending.contains { lanes[$0] == lane }, "two of a lane at once")
                if !retried.contains(id) { #expect(lastDone[lane] ?? 0 < id, "out of order") }
                sending.insert(id)
            }
            for id in bench.expired {
                #expect(settling.insert(id).inserted)
                sending.remove(id)
            }
            for id in bench.settled {
                sending.remove(id)
                resting.remove(id)
                settling.insert(id)
            }
            bench.begun = []
            bench.expired = []
            bench.settled = []
            bench.cancelled = []
        }

        for _ in 0..<400 {
            switch Int.random(in: 0..<12, using: &random) {
            case 0...3:
                last += 1
                let lane = ["a", "b", "c", "d", "e"].randomElement(using: &random) ?? "a"
                lanes[last] = lane
                let expires: Duration? =
                    Bool.random(using: &random)
                    ? .milliseconds(Int.random(in: 1...500, using: &random)) : nil
                bench.add(last, lane, expires: expires)
            case 4, 5:
                guard let id = sending.sorted().randomElement(using: &random) else { continue }
                bench.note(bench.machine.end(OfflineID(id), .settled, random: 1, now: bench.now).effects)
                sending.remove(id)
                settling.insert(id)
                let lane = lanes[id] ?? ""
                lastDone[lane] = max(lastDone[lane] ?? 0, retried.contains(id) ? 0 : id)
            case 6:
                guard let id = sending.sorted().randomElement(using: &random) else { continue }
                sending.remove(id)
                bench.fail(
                    id, OfflinePostponement.Reason.allCases.randomElement(using: &random) ?? .refused,
                    random: Double.random(in: 0...1, using: &random))
            case 7, 8:
                guard let id = settling.sorted().randomElement(using: &random) else { continue }
                let rests = Int.random(in: 0..<4, using: &random) == 0
                settling.remove(id)
                if rests { resting.insert(id) } else { gone.insert(id) }
                bench.note(bench.machine.settled(OfflineID(id), isResting: rests, now: bench.now))
            case 9:
                guard let id = settling.sorted().randomElement(using: &random) else { continue }
                bench.note(
                    bench.machine.settlingFailed(
                        OfflineID(id), random: Double.random(in: 0...1, using: &random), now: bench.now
                    ).effects)
            case 10:
                guard last > 0 else { continue }
                let id = UInt64.random(in: 1...last, using: &random)
                if Bool.random(using: &random) {
                    if let effects = bench.machine.retry(OfflineID(id), now: bench.now) {
                        if resting.remove(id) != nil { retried.insert(id) }
                        bench.note(effects)
                    }
                } else if let effects = bench.machine.drop(OfflineID(id), now: bench.now) {
                    bench.note(effects)
                }
            default: bench.pass(.milliseconds(Int.random(in: 0...100, using: &random)))
            }
            absorb()
        }
        // From here on every attempt succeeds.
        for _ in 0..<10_000 where !bench.machine.isDrained {
            for id in sending {
                bench.note(bench.machine.end(OfflineID(id), .settled, random: 1, now: bench.now).effects)
            }
            settling.formUnion(sending)
            sending = []
            for id in settling {
                gone.insert(id)
                bench.note(bench.machine.settled(OfflineID(id), isResting: false, now: bench.now))
            }
            settling = []
            bench.pass(.milliseconds(50))
            absorb()
        }
        #expect(bench.machine.isDrained)
        if last > 0 {
            for id in 1...last {
                #expect(gone.contains(id) || resting.contains(id) || settling.contains(id), "\(id) is lost")
            }
        }
    }
}
