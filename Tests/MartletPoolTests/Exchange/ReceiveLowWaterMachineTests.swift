import MartletTransport
import Testing

@testable import MartletPool

@Suite("Batched wake-ups for fast bodies")
struct ReceiveLowWaterMachineTests {
    private static let batch = ReceiveLowWaterMachine.batchByteCount

    private static func at(_ milliseconds: UInt64) -> MonotonicTime {
        MonotonicTime(nanoseconds: 1_000_000_000 + milliseconds * 1_000_000)
    }

    /// Returns a machine that received a megabyte within a millisecond.
    private static func fast() -> ReceiveLowWaterMachine {
        var rule = ReceiveLowWaterMachine()
        #expect(rule.waitBegins(received: 0, remaining: nil, now: at(0)) == 1)
        #expect(rule.waitBegins(received: 1 << 20, remaining: nil, now: at(1)) == batch)
        return rule
    }

    @Test("Initially every byte wakes the reader")
    func start() {
        var rule = ReceiveLowWaterMachine()
        #expect(rule.waitBegins(received: 0, remaining: 1 << 30, now: ReceiveLowWaterMachineTests.at(0)) == 1)
    }

    @Test("A fast body is awaited in batches")
    func batches() {
        var rule = ReceiveLowWaterMachineTests.fast()
        #expect(
            rule.waitBegins(received: 2 << 20, remaining: nil, now: ReceiveLowWaterMachineTests.at(2))
                == ReceiveLowWaterMachineTests.batch)
    }

    @Test("A slow body is not awaited in batches")
    func slow() {
        var rule = ReceiveLowWaterMachine()
        _ = rule.waitBegins(received: 0, remaining: nil, now: ReceiveLowWaterMachineTests.at(0))
        #expect(
            rule.waitBegins(received: 1 << 20, remaining: nil, now: ReceiveLowWaterMachineTests.at(100)) == 1)
    }

    @Test("A body that has become slow is not awaited in batches")
    func slowed() {
        var rule = ReceiveLowWaterMachineTests.fast()
        #expect(
            rule.waitBegins(received: 2 << 20, remaining: nil, now: ReceiveLowWaterMachineTests.at(500)) == 1)
    }

    @Test("A few bytes do not determine the speed")
    func few() {
        var rule = ReceiveLowWaterMachine()
        _ = rule.waitBegins(received: 0, remaining: nil, now: ReceiveLowWaterMachineTests.at(0))
        #expect(rule.waitBegins(received: 1000, remaining: nil, now: ReceiveLowWaterMachineTests.at(0)) == 1)
    }

    @Test("The last bytes are not awaited as part of a batch that never fills")
    func end() {
        var rule = ReceiveLowWaterMachineTests.fast()
        let left = UInt64(ReceiveLowWaterMachineTests.batch)
        #expect(
            rule.waitBegins(received: 2 << 20, remaining: left, now: ReceiveLowWaterMachineTests.at(2)) == 1)
        #expect(rule.waitBegins(received: 2 << 20, remaining: 1, now: ReceiveLowWaterMachineTests.at(2)) == 1)
    }

    @Test("A batch that is late disables batches until the body is fast again")
    func late() {
        var rule = ReceiveLowWaterMachineTests.fast()
        rule.waitTimedOut()
        #expect(
            rule.waitBegins(received: 1 << 20, remaining: nil, now: ReceiveLowWaterMachineTests.at(12)) == 1)
        #expect(
            rule.waitBegins(received: 3 << 20, remaining: nil, now: ReceiveLowWaterMachineTests.at(14))
                == ReceiveLowWaterMachineTests.batch)
    }

    @Test("Counts near the integer maximum are harmless")
    func extremes() {
        var rule = ReceiveLowWaterMachine()
        _ = rule.waitBegins(received: .max, remaining: .max, now: MonotonicTime(nanoseconds: .max))
        _ = rule.waitBegins(received: 0, remaining: 0, now: MonotonicTime(nanoseconds: 0))
        #expect(rule.waitBegins(received: 0, remaining: 0, now: MonotonicTime(nanoseconds: 0)) == 1)
    }
}
