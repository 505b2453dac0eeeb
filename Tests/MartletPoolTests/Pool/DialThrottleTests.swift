import Testing

@testable import MartletPool

@Suite("Limits on concurrent dials")
struct DialThrottleTests {
    private typealias Gate = DialThrottle<Int>

    private static func id(_ number: Int) -> PoolConnectionID {
        PoolConnectionID(index: number, generation: 0)
    }

    /// Returns a throttle that received `count` dials at an instant, and the numbers of the dials that started.
    private static func gate(_ count: Int, at now: UInt64) -> (Gate, [Int]) {
        var gate = Gate()
        let passed = (0..<count).compactMap { gate.admit(id($0), $0, now: now) }
        return (gate, passed)
    }

    @Test("Dials start up to the limit, and each that ends starts the first in the queue")
    func ended() {
        var (gate, passed) = DialThrottleTests.gate(Gate.limit + 3, at: 5)
        #expect(passed == Array(0..<Gate.limit))
        #expect(gate.waitingCount == 3 && gate.next(now: 5).isEmpty)
        gate.ended(DialThrottleTests.id(7))
        #expect(gate.next(now: 6) == [Gate.limit])
        gate.ended(DialThrottleTests.id(Gate.limit))
        gate.ended(DialThrottleTests.id(0))
        #expect(gate.next(now: 6) == [Gate.limit + 1, Gate.limit + 2])
        #expect(gate.waitingCount == 0 && gate.nextDeadline == nil)
    }

    @Test("A later dial does not overtake queued dials")
    func order() {
        var (gate, _) = DialThrottleTests.gate(Gate.limit + 1, at: 5)
        gate.ended(DialThrottleTests.id(0))
        #expect(gate.admit(DialThrottleTests.id(9000), 9000, now: 5) == nil)
        #expect(gate.next(now: 5) == [Gate.limit])
        gate.ended(DialThrottleTests.id(1))
        #expect(gate.next(now: 5) == [9000])
    }

    @Test("Unresponsive hosts delay others for the interval, and ten thousand dials for a second")
    func interval() {
        var (gate, passed) = DialThrottleTests.gate(10_000, at: 0)
        var now: UInt64 = 0
        while gate.waitingCount > 0 {
            guard let deadline = gate.nextDeadline else {
                Issue.record("nobody will let the rest through")
                return
            }
            #expect(deadline == now + Gate.interval)
            #expect(gate.next(now: deadline - 1).isEmpty)
            now = deadline
            let next = gate.next(now: now)
            #expect(next.count <= Gate.limit && !next.isEmpty)
            passed += next
        }
        #expect(passed == Array(0..<10_000))
        #expect(now <= 1_000_000_000)
    }

    @Test("A withdrawn dial is returned once and never starts")
    func withdrawn() {
        var (gate, _) = DialThrottleTests.gate(Gate.limit + 2, at: 0)
        #expect(gate.withdraw(DialThrottleTests.id(Gate.limit)) == Gate.limit)
        #expect(gate.withdraw(DialThrottleTests.id(Gate.limit)) == nil)
        #expect(gate.withdraw(DialThrottleTests.id(3)) == nil)
        #expect(gate.next(now: Gate.interval) == [Gate.limit + 1])
        #expect(gate.next(now: Gate.interval).isEmpty && gate.nextDeadline == nil)
    }

    @Test("The end of an unknown or expired dial starts no dial above the limit")
    func lateEnds() {
        var (gate, _) = DialThrottleTests.gate(2 * Gate.limit + 1, at: 0)
        #expect(gate.next(now: Gate.interval).count == Gate.limit)
        for number in 0..<Gate.limit { gate.ended(DialThrottleTests.id(number)) }
        gate.ended(DialThrottleTests.id(77_777))
        #expect(gate.next(now: Gate.interval).isEmpty)
        gate.ended(DialThrottleTests.id(Gate.limit))
        #expect(gate.next(now: Gate.interval) == [2 * Gate.limit])
    }

    @Test("The limit holds at the maximum time")
    func endOfTime() {
        var (gate, passed) = DialThrottleTests.gate(Gate.limit + 1, at: .max)
        #expect(passed.count <= Gate.limit + 1 && gate.waitingCount + passed.count == Gate.limit + 1)
        gate.ended(DialThrottleTests.id(0))
        _ = gate.next(now: .max)
        #expect(gate.waitingCount == 0)
    }
}
