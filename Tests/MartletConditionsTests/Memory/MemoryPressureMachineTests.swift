@testable import MartletConditions
import MartletTransport
import Testing

@Suite("Memory pressure levels")
struct MemoryPressureMachineTests {
    private let start = MonotonicTime(nanoseconds: 1_000_000_000_000)

    private func after(_ seconds: Int) -> MonotonicTime {
        start.advanced(by: .seconds(seconds))
    }

    @Test("Without kernel notifications the pressure is checked every two seconds")
    func polling() {
        var machine = MemoryPressureMachine(hasTriggers: false)
        machine.sampled(MemoryStall(), now: start)
        #expect(machine.level == .normal)
        #expect(machine.nextEvent == after(2))
        machine.sampled(MemoryStall(some: 1_000), now: after(2))
        #expect(machine.level == .warning)
        machine.sampled(MemoryStall(some: 9_000, full: 1_000), now: after(4))
        #expect(machine.level == .critical)
        #expect(machine.nextEvent == after(6))
    }

    @Test("With kernel notifications the pressure is not checked until the kernel notifies")
    func silent() {
        var machine = MemoryPressureMachine(hasTriggers: true)
        machine.sampled(MemoryStall(some: 999), now: start)
        #expect(machine.nextEvent == nil)
        machine.triggerFired(level: .warning, now: after(60))
        #expect(machine.level == .warning)
        #expect(machine.nextEvent == after(62))
    }

    @Test(
        "A level from a notification lasts ten seconds, and is then set by the measured share"
    )
    func held() {
        var machine = MemoryPressureMachine(hasTriggers: true)
        machine.triggerFired(level: .critical, now: start)
        machine.sampled(MemoryStall(), now: after(9))
        #expect(machine.level == .critical)
        machine.triggerFired(level: .warning, now: after(9))
        machine.sampled(MemoryStall(), now: after(10))
        #expect(machine.level == .warning)
        machine.sampled(MemoryStall(some: 600), now: after(19))
        #expect(machine.level == .warning)
        machine.sampled(MemoryStall(some: 499), now: after(21))
        #expect(machine.level == .normal)
        #expect(machine.nextEvent == nil)
    }

    @Test("A level falls when the share is below half of its threshold, and does not flicker in between")
    func hysteresis() {
        var machine = MemoryPressureMachine(hasTriggers: false)
        var levels: [MemoryPressure] = []
        for share in [900, 1_000, 999, 500, 999, 499, 999] {
            machine.sampled(MemoryStall(some: share), now: start)
            levels.append(machine.level)
        }
        #expect(levels == [.normal, .warning, .warning, .warning, .warning, .normal, .normal])
    }

    @Test("A repeated or lower notification does not lower the level")
    func calls() {
        var machine = MemoryPressureMachine(hasTriggers: true)
        machine.triggerFired(level: .critical, now: start)
        machine.triggerFired(level: .warning, now: start)
        machine.triggerFired(level: .critical, now: start)
        #expect(machine.level == .critical)
        #expect(machine.nextEvent == after(2))
    }
}
