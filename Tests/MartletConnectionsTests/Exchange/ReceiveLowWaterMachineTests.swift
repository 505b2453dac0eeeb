import MartletTransport
import Testing

@testable import MartletConnections

@Suite("Awaiting the bytes of a fast body together")
struct ReceiveLowWaterMachineTests {
    private static let batch = ReceiveLowWaterMachine.batchByteCount

    private static func at(_ milliseconds: UInt64) -> MonotonicTime {
        MonotonicTime(nanoseconds: 1_000_000_000 + milliseconds * 1_000_000)
    }

    /// A rule that has seen a megabyte come within a millisecond.
    private static func fast() -> ReceiveLowWaterMachine {
        var rule = ReceiveLowWaterMachine()
        #expect(rule.waitBegins(received: 0, remaining: nil, now: at(0)) == 1)
        #expect(rule.waitBegins(received: 1 << 20, remaining: nil, now: at(1)) == batch)
        return rule
    }

    @Test("At first every byte wakes the reader")
    func start() {
        var rule = ReceiveLowWaterMachine()
        #expect(rule.waitBegins(received: 0, remaining: 1 << 30, now: ReceiveLowWaterMachineTests.at(0)) == 1)
    }

    @Test("A body that comes fast is awaited in batches")
    func batches() {
        var rule = ReceiveLowWaterMachineTests.fast()
        #expect(
            rule.waitBegins(received: 2 << 20, remaining: nil, now: ReceiveLowWaterMachineTests.at(2))
                == ReceiveLowWaterMachineTests.batch)
    }

    @Test("A body that comes slowly is not")
    func slow() {
        var rule = ReceiveLowWaterMachine()
        _ = rule.waitBegins(received: 0, remaining: nil, now: ReceiveLowWaterMachineTests.at(0))
        #expect(
            rule.waitBegins(received: 1 << 20, remaining: nil, now: ReceiveLowWaterMachineTests.at(100)) == 1)
    }

    @Test("Nor is one that has become slow")
    func slowed() {
        var rule = ReceiveLowWaterMachineTests.fast()
        #expect(
            rule.waitBegins(received: 2 << 20, remaining: nil, now: ReceiveLowWaterMachineTests.at(500)) == 1)
    }

    @Test("Few bytes say nothing about the speed")
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

    @Test("A batch that did not come in time ends batches until the body is fast again")
    func late() {
        var rule = ReceiveLowWaterMachineTests.fast()
        rule.waitTimedOut()
        #expect(
            rule.waitBegins(received: 1 << 20, remaining: nil, now: ReceiveLowWaterMachineTests.at(12)) == 1)
        #expect(
            rule.waitBegins(received: 3 << 20, remaining: nil, now: ReceiveLowWaterMachineTests.at(14))
                == ReceiveLowWaterMachineTests.batch)
    }

    @Test("Counts near the end of what can be counted do no harm")
    func extremes() {
        var rule = ReceiveLowWaterMachine()
        _ = rule.waitBegins(received: .max, remaining: .max, now: MonotonicTime(nanoseconds: .max))
        _ = rule.waitBegins(received: 0, remaining: 0, now: MonotonicTime(nanoseconds: 0))
        #expect(rule.waitBegins(received: 0, remaining: 0, now: MonotonicTime(nanoseconds: 0)) == 1)
    }
}
