@testable import MartletNetwork
import MartletTransport
import Testing

@Suite("Levels of memory pressure")
struct MemoryPressureMachineTests {
    private let start = MonotonicTime(nanoseconds: 1_000_000_000_000)

    private func after(_ seconds: Int) -> MonotonicTime {
        start.advanced(by: .seconds(seconds))
    }

    @Test("Where the kernel does not call, shares are looked at every two seconds")
    func polling() {
        var machine = MemoryPressureMachine(isCalled: false)
        machine.looked(MemoryStall(), now: start)
        #expect(machine.level == .normal)
        #expect(machine.nextEvent == after(2))
        machine.looked(MemoryStall(some: 1_000), now: after(2))
        #expect(machine.level == .warning)
        machine.looked(MemoryStall(some: 9_000, full: 1_000), now: after(4))
        #expect(machine.level == .critical)
        #expect(machine.nextEvent == after(6))
    }

    @Test("Where the kernel calls, nothing is looked at until it does")
    func silent() {
        var machine = MemoryPressureMachine(isCalled: true)
        machine.looked(MemoryStall(some: 999), now: start)
        #expect(machine.nextEvent == nil)
        machine.called(for: .warning, now: after(60))
        #expect(machine.level == .warning)
        #expect(machine.nextEvent == after(62))
    }

    @Test(
        "A level that the kernel called for lasts ten seconds from its last call, and then as its share demands"
    )
    func held() {
        var machine = MemoryPressureMachine(isCalled: true)
        machine.called(for: .critical, now: start)
        machine.looked(MemoryStall(), now: after(9))
        #expect(machine.level == .critical)
        machine.called(for: .warning, now: after(9))
        machine.looked(MemoryStall(), now: after(10))
        #expect(machine.level == .warning)
        machine.looked(MemoryStall(some: 600), now: after(19))
        #expect(machine.level == .warning)
        machine.looked(MemoryStall(some: 499), now: after(21))
        #expect(machine.level == .normal)
        #expect(machine.nextEvent == nil)
    }

    @Test("A level falls when its share is below half of where it began, and does not flicker in between")
    func hysteresis() {
        var machine = MemoryPressureMachine(isCalled: false)
        var levels: [MemoryPressure] = []
        for share in [900, 1_000, 999, 500, 999, 499, 999] {
            machine.looked(MemoryStall(some: share), now: start)
            levels.append(machine.level)
        }
        #expect(levels == [.normal, .warning, .warning, .warning, .warning, .normal, .normal])
    }

    @Test("A call for less than there is changes the level no more than one that comes twice")
    func calls() {
        var machine = MemoryPressureMachine(isCalled: true)
        machine.called(for: .critical, now: start)
        machine.called(for: .warning, now: start)
        machine.called(for: .critical, now: start)
        #expect(machine.level == .critical)
        #expect(machine.nextEvent == after(2))
    }
}
