@testable import MartletNetwork
import MartletTransport
import Testing

@Suite("When the kernel is asked about the network")
struct NetworkMonitorMachineTests {
    private static let start = MonotonicTime(nanoseconds: 1_000_000_000_000)
    private static let up = NetworkSnapshot(path: NetworkPath([.init(name: "eth0", kind: .wired)]))
    private static let down = NetworkSnapshot(path: .unsatisfied)

    private func after(_ milliseconds: Int) -> MonotonicTime {
        Self.start.advanced(by: .milliseconds(milliseconds))
    }

    /// A machine that has been told.
    private func settled() -> NetworkMonitorMachine {
        var machine = NetworkMonitorMachine()
        machine.looked(.seen(Self.up), now: Self.start)
        return machine
    }

    @Test("Before the first answer nothing is known, and with it no timer is needed")
    func beginning() {
        var machine = NetworkMonitorMachine()
        #expect(machine.view == nil)
        #expect(machine.nextEvent == nil)
        machine.looked(.seen(Self.up), now: Self.start)
        #expect(machine.view == Self.up)
        #expect(machine.nextEvent == nil)
    }

    @Test("News are looked into when they have been quiet for 200 ms")
    func quiet() {
        var machine = settled()
        machine.news(now: after(0))
        #expect(machine.nextEvent == after(200))
        machine.news(now: after(150))
        #expect(machine.nextEvent == after(350))
        let early = machine.timePassed(now: after(349))
        #expect(!early)
        let due = machine.timePassed(now: after(350))
        #expect(due)
        #expect(machine.nextEvent == nil)
        machine.looked(.seen(Self.down), now: after(351))
        #expect(machine.view == Self.down)
        #expect(machine.nextEvent == nil)
    }

    @Test("News without end are looked into every second")
    func flapping() {
        var machine = settled()
        var looks: [Int] = []
        for time in stride(from: 0, through: 5_000, by: 50) {
            if machine.timePassed(now: after(time)) {
                looks.append(time)
                machine.looked(.seen(Self.up), now: after(time))
            }
            machine.news(now: after(time))
        }
        #expect(looks == [1_000, 2_000, 3_000, 4_000, 5_000])
    }

    @Test("News that come while it is asked are looked into after the answer")
    func newsMeanwhile() {
        var machine = settled()
        machine.news(now: after(0))
        let asks = machine.timePassed(now: after(200))
        #expect(asks)
        machine.news(now: after(210))
        machine.news(now: after(300))
        #expect(machine.nextEvent == nil)
        machine.looked(.seen(Self.down), now: after(310))
        #expect(machine.view == Self.down)
        #expect(machine.nextEvent == after(500))
    }

    @Test("An answer that something changed under is not believed, and asked for again")
    func interrupted() {
        var machine = settled()
        machine.news(now: after(0))
        _ = machine.timePassed(now: after(200))
        machine.looked(.interrupted(Self.down), now: after(210))
        #expect(machine.view == Self.up)
        #expect(machine.nextEvent == after(410))
        _ = machine.timePassed(now: after(410))
        machine.looked(.seen(Self.down), now: after(420))
        #expect(machine.view == Self.down)
        #expect(machine.nextEvent == nil)
    }

    @Test(
        "When answers are never of one state, the fifth is believed, within a second or so, and asked for again"
    )
    func interruptedForEver() {
        var machine = settled()
        machine.news(now: after(0))
        var time = 200
        for _ in 0..<4 {
            _ = machine.timePassed(now: after(time))
            machine.looked(.interrupted(Self.down), now: after(time))
            #expect(machine.view == Self.up)
            time += 200
        }
        _ = machine.timePassed(now: after(time))
        machine.looked(.interrupted(Self.down), now: after(time))
        #expect(machine.view == Self.down)
        #expect(machine.nextEvent == after(time + 200))
    }

    @Test("A kernel that refuses is not asked again, and nothing is known")
    func refused() {
        var machine = NetworkMonitorMachine()
        machine.looked(.refused, now: Self.start)
        #expect(machine.view == .unknown)
        #expect(machine.nextEvent == nil)
    }

    @Test("A first look that fails leaves nothing known, and is made again after a second")
    func failedAtFirst() {
        var machine = NetworkMonitorMachine()
        machine.looked(.failed, now: Self.start)
        #expect(machine.view == .unknown)
        #expect(machine.nextEvent == after(1_000))
        let asks = machine.timePassed(now: after(1_000))
        #expect(asks)
        machine.looked(.seen(Self.up), now: after(1_001))
        #expect(machine.view == Self.up)
    }

    @Test("A look that fails later leaves what was believed, and the third in a row does not")
    func failedLater() {
        var machine = settled()
        machine.news(now: after(0))
        var time = 200
        for count in 1...3 {
            _ = machine.timePassed(now: after(time))
            machine.looked(.failed, now: after(time))
            #expect(machine.view == (count < 3 ? Self.up : .unknown))
            time += 1_000
            #expect(machine.nextEvent == after(time))
        }
    }

    @Test("News have a look that failed made again earlier")
    func newsAfterFailure() {
        var machine = NetworkMonitorMachine()
        machine.looked(.failed, now: Self.start)
        machine.news(now: after(100))
        #expect(machine.nextEvent == after(300))
    }

    @Test("An answer that nobody asked for changes nothing")
    func unasked() {
        var machine = settled()
        machine.looked(.seen(Self.down), now: after(1))
        #expect(machine.view == Self.up)
        let asks = machine.timePassed(now: after(5_000))
        #expect(!asks)
    }
}
