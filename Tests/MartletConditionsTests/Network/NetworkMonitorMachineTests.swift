@testable import MartletConditions
import MartletTransport
import Testing

@Suite("Schedule of network queries")
struct NetworkMonitorMachineTests {
    private static let start = MonotonicTime(nanoseconds: 1_000_000_000_000)
    private static let up = NetworkSnapshot(path: NetworkPath([.init(name: "eth0", kind: .wired)]))
    private static let down = NetworkSnapshot(path: .unsatisfied)

    private func after(_ milliseconds: Int) -> MonotonicTime {
        Self.start.advanced(by: .milliseconds(milliseconds))
    }

    /// Returns a machine that has received a first result.
    private func settled() -> NetworkMonitorMachine {
        var machine = NetworkMonitorMachine()
        machine.queryFinished(.seen(Self.up), now: Self.start)
        return machine
    }

    @Test("Before the first result the view is unknown, and after it no timer is set")
    func beginning() {
        var machine = NetworkMonitorMachine()
        #expect(machine.view == nil)
        #expect(machine.nextEvent == nil)
        machine.queryFinished(.seen(Self.up), now: Self.start)
        #expect(machine.view == Self.up)
        #expect(machine.nextEvent == nil)
    }

    @Test("The kernel is queried when events have been quiet for 200 ms")
    func quiet() {
        var machine = settled()
        machine.eventReceived(now: after(0))
        #expect(machine.nextEvent == after(200))
        machine.eventReceived(now: after(150))
        #expect(machine.nextEvent == after(350))
        let early = machine.timePassed(now: after(349))
        #expect(!early)
        let due = machine.timePassed(now: after(350))
        #expect(due)
        #expect(machine.nextEvent == nil)
        machine.queryFinished(.seen(Self.down), now: after(351))
        #expect(machine.view == Self.down)
        #expect(machine.nextEvent == nil)
    }

    @Test("Continuous events cause a query every second")
    func flapping() {
        var machine = settled()
        var looks: [Int] = []
        for time in stride(from: 0, through: 5_000, by: 50) {
            if machine.timePassed(now: after(time)) {
                looks.append(time)
                machine.queryFinished(.seen(Self.up), now: after(time))
            }
            machine.eventReceived(now: after(time))
        }
        #expect(looks == [1_000, 2_000, 3_000, 4_000, 5_000])
    }

    @Test("Events during a query cause another query after its result")
    func eventDuringQuery() {
        var machine = settled()
        machine.eventReceived(now: after(0))
        let asks = machine.timePassed(now: after(200))
        #expect(asks)
        machine.eventReceived(now: after(210))
        machine.eventReceived(now: after(300))
        #expect(machine.nextEvent == nil)
        machine.queryFinished(.seen(Self.down), now: after(310))
        #expect(machine.view == Self.down)
        #expect(machine.nextEvent == after(500))
    }

    @Test("A result that was interrupted by a change is ignored, and the query is repeated")
    func interrupted() {
        var machine = settled()
        machine.eventReceived(now: after(0))
        _ = machine.timePassed(now: after(200))
        machine.queryFinished(.interrupted(Self.down), now: after(210))
        #expect(machine.view == Self.up)
        #expect(machine.nextEvent == after(410))
        _ = machine.timePassed(now: after(410))
        machine.queryFinished(.seen(Self.down), now: after(420))
        #expect(machine.view == Self.down)
        #expect(machine.nextEvent == nil)
    }

    @Test(
        "The fifth interrupted result in a row is accepted, and the query is repeated"
    )
    func interruptedForEver() {
        var machine = settled()
        machine.eventReceived(now: after(0))
        var time = 200
        for _ in 0..<4 {
            _ = machine.timePassed(now: after(time))
            machine.queryFinished(.interrupted(Self.down), now: after(time))
            #expect(machine.view == Self.up)
            time += 200
        }
        _ = machine.timePassed(now: after(time))
        machine.queryFinished(.interrupted(Self.down), now: after(time))
        #expect(machine.view == Self.down)
        #expect(machine.nextEvent == after(time + 200))
    }

    @Test("A kernel that denies queries is not queried again, and the view is unknown")
    func denied() {
        var machine = NetworkMonitorMachine()
        machine.queryFinished(.denied, now: Self.start)
        #expect(machine.view == .unknown)
        #expect(machine.nextEvent == nil)
    }

    @Test("A first query that fails leaves the view unknown, and is repeated after a second")
    func failedAtFirst() {
        var machine = NetworkMonitorMachine()
        machine.queryFinished(.failed, now: Self.start)
        #expect(machine.view == .unknown)
        #expect(machine.nextEvent == after(1_000))
        let asks = machine.timePassed(now: after(1_000))
        #expect(asks)
        machine.queryFinished(.seen(Self.up), now: after(1_001))
        #expect(machine.view == Self.up)
    }

    @Test("A later failure retains the view, and the third consecutive one resets it")
    func failedLater() {
        var machine = settled()
        machine.eventReceived(now: after(0))
        var time = 200
        for count in 1...3 {
            _ = machine.timePassed(now: after(time))
            machine.queryFinished(.failed, now: after(time))
            #expect(machine.view == (count < 3 ? Self.up : .unknown))
            time += 1_000
            #expect(machine.nextEvent == after(time))
        }
    }

    @Test("An event repeats a failed query earlier")
    func eventAfterFailure() {
        var machine = NetworkMonitorMachine()
        machine.queryFinished(.failed, now: Self.start)
        machine.eventReceived(now: after(100))
        #expect(machine.nextEvent == after(300))
    }

    @Test("An unrequested result changes nothing")
    func unrequested() {
        var machine = settled()
        machine.queryFinished(.seen(Self.down), now: after(1))
        #expect(machine.view == Self.up)
        let asks = machine.timePassed(now: after(5_000))
        #expect(!asks)
    }
}
