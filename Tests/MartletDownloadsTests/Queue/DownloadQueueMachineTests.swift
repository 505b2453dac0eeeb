@testable import MartletDownloads
import MartletTransport
import Testing

@Suite("Download queue machine")
struct DownloadQueueMachineTests {
    private let start = MonotonicTime(nanoseconds: 1_000_000_000)

    private func at(_ seconds: Int) -> MonotonicTime { start.advanced(by: .seconds(seconds)) }

    private func arrival(
        _ number: UInt64, _ host: String = "a:80", _ priority: DownloadPriority = .normal,
        _ phase: DownloadQueueMachine.Phase = .waiting
    ) -> DownloadQueueMachine.Arrival {
        .init(id: DownloadID(number), host: host, priority: priority, phase: phase)
    }

    private func ids(_ numbers: UInt64...) -> [DownloadID] { numbers.map { DownloadID($0) } }

    private func machine(_ files: Int, _ perHost: Int, aging: Duration = .seconds(60))
        -> DownloadQueueMachine
    {
        DownloadQueueMachine(limits: DownloadLimits(concurrentFiles: files, perHost: perHost), aging: aging)
    }

    @Test("Downloads start up to the total and the host limit; a full host delays no other")
    func limits() {
        var machine = machine(3, 2)
        let effects = machine.add(
            [arrival(1), arrival(2), arrival(3), arrival(4, "b:80"), arrival(5, "c:80")], now: start)
        #expect(effects.begin == ids(1, 2, 4))
        #expect(machine.end(DownloadID(4), .failed, now: start).begin == ids(5))
        #expect(machine.end(DownloadID(1), .finished, now: start).begin == ids(3))
        #expect(machine.violation(of: DownloadLimits()) == nil)
    }

    @Test("High priority starts first, then the order of arrival")
    func priorities() {
        var machine = machine(1, 1)
        var begun = machine.add(
            [
                arrival(1), arrival(2, "a:80", .low), arrival(3), arrival(4, "b:80", .high),
                arrival(5, "a:80", .high),
            ], now: start
        ).begin
        // They arrived together, so the most urgent is first.
        #expect(begun == ids(4))
        for _ in 0..<4 {
            begun += machine.end(begun[begun.count - 1], .finished, now: start).begin
        }
        #expect(begun == ids(4, 5, 1, 3, 2))
    }

    @Test("A waiting download of low priority rises, and starts before later high ones")
    func aging() {
        var machine = machine(1, 1)
        _ = machine.add([arrival(1)], now: at(0))
        _ = machine.add([arrival(2, "a:80", .low)], now: at(0))
        var next = machine.add([arrival(3, "a:80", .high)], now: at(100)).begin
        #expect(next.isEmpty)
        next = machine.end(DownloadID(1), .finished, now: at(119)).begin
        #expect(next == ids(3))
        _ = machine.add([arrival(4, "a:80", .high)], now: at(119))
        next = machine.end(DownloadID(3), .finished, now: at(120)).begin
        #expect(next == ids(2))
    }

    @Test("A steady stream of high priority does not starve a low one")
    func starvation() {
        var machine = machine(1, 1, aging: .seconds(10))
        var running = machine.add([arrival(1, "a:80", .high)], now: at(0)).begin
        _ = machine.add([arrival(2, "a:80", .low)], now: at(0))
        for second in 1...25 {
            _ = machine.add([arrival(UInt64(second) + 2, "a:80", .high)], now: at(second))
            running = machine.end(running[0], .finished, now: at(second)).begin
            if running == ids(2) {
                #expect(second >= 10 && second <= 21)
                return
            }
        }
        Issue.record("the low one never began")
    }

    @Test("A paused download frees its slot; when resumed, it waits after the others")
    func pausing() {
        var machine = machine(1, 1)
        _ = machine.add([arrival(1), arrival(2)], now: start)
        let (paused, effects) = machine.pause(ids(1), now: start)
        #expect(paused == ids(1) && effects.stop == ids(1) && effects.begin.isEmpty)
        #expect(machine.end(DownloadID(1), .stopped, now: start).begin == ids(2))
        #expect(machine.phase(of: DownloadID(1)) == .paused)
        #expect(machine.resume(DownloadID(1), now: start) == DownloadQueueMachine.Effects())
        #expect(machine.end(DownloadID(2), .finished, now: start).begin == ids(1))
    }

    @Test("Pausing all starts none of them")
    func pausingAll() {
        var machine = machine(2, 2)
        _ = machine.add([arrival(1), arrival(2), arrival(3), arrival(4)], now: start)
        let (paused, effects) = machine.pause(ids(1, 2, 3, 4), now: start)
        #expect(paused == ids(1, 2, 3, 4) && effects.stop == ids(1, 2) && effects.begin.isEmpty)
        #expect(machine.end(DownloadID(1), .stopped, now: start).begin.isEmpty)
    }

    @Test("A download that is resumed before its run has ended is queued when it has ended")
    func resumedEarly() {
        var machine = machine(1, 1)
        _ = machine.add([arrival(1), arrival(2)], now: start)
        _ = machine.pause(ids(1), now: start)
        #expect(machine.resume(DownloadID(1), now: start) != nil)
        #expect(machine.phase(of: DownloadID(1)) == .stopping(.again))
        #expect(machine.end(DownloadID(1), .stopped, now: start).begin == ids(2))
        #expect(machine.phase(of: DownloadID(1)) == .waiting)
    }

    @Test(
        "The end of a run decides the state, then the requested command",
        arguments: [
            (.finished, .pause, .recording), (.finished, .cancel, .recording),
            (.finished, .again, .recording),
            (.failed, .pause, .failed), (.failed, .again, .failed), (.failed, .cancel, .removing),
            (.stopped, .pause, .paused), (.stopped, .cancel, .removing), (.finished, nil, .recording),
            (.failed, nil, .failed), (.stopped, nil, .failed),
        ] as [(DownloadQueueMachine.Outcome, DownloadQueueMachine.Goal?, DownloadQueueMachine.Phase)])
    func endings(
        _ outcome: DownloadQueueMachine.Outcome, _ goal: DownloadQueueMachine.Goal?,
        _ phase: DownloadQueueMachine.Phase
    ) {
        var machine = machine(1, 1)
        let id = DownloadID(1)
        _ = machine.add([arrival(1)], now: start)
        switch goal {
        case .pause: _ = machine.pause([id], now: start)
        case .again:
            _ = machine.pause([id], now: start)
            _ = machine.resume(id, now: start)
        case .cancel: _ = machine.cancel(id, now: start)
        case nil: break
        }
        let effects = machine.end(id, outcome, now: start)
        #expect(machine.phase(of: id) == phase)
        #expect(effects.discard == (phase == .removing ? [id] : []))
        #expect(effects.isAllFinished == (phase == .failed))
    }

    @Test(
        "All are finished when none waits, runs, is paused or is being removed; failed ones count as finished")
    func allFinished() {
        var machine = machine(3, 3)
        _ = machine.add([arrival(1), arrival(2), arrival(3), arrival(4)], now: start)
        _ = machine.pause(ids(4), now: start)
        #expect(!machine.end(DownloadID(1), .failed, now: start).isAllFinished)
        #expect(!machine.end(DownloadID(2), .finished, now: start).isAllFinished)
        #expect(!machine.recorded(DownloadID(2)).isAllFinished)
        #expect(machine.cancel(DownloadID(4), now: start).discard == ids(4))
        #expect(!machine.discarded(DownloadID(4)).isAllFinished)
        _ = machine.end(DownloadID(3), .finished, now: start)
        #expect(machine.recorded(DownloadID(3)).isAllFinished)
        #expect(machine.isAllFinished)
        #expect(machine.resume(DownloadID(1), now: start)?.begin == ids(1))
        #expect(!machine.isAllFinished)
        #expect(machine.end(DownloadID(1), .failed, now: start).isAllFinished)
    }

    @Test("Lowered limits stop no download; raised ones apply immediately")
    func changedLimits() {
        var machine = machine(2, 2)
        _ = machine.add((1...4).map { arrival($0) }, now: start)
        #expect(machine.setLimits(DownloadLimits(concurrentFiles: 1, perHost: 1), now: start).stop.isEmpty)
        #expect(machine.end(DownloadID(1), .finished, now: start).begin.isEmpty)
        #expect(machine.end(DownloadID(2), .finished, now: start).begin == ids(3))
        #expect(machine.setLimits(DownloadLimits(concurrentFiles: 9, perHost: 9), now: start).begin == ids(4))
        #expect(machine.setLimits(DownloadLimits(concurrentFiles: -1, perHost: 0), now: start).begin.isEmpty)
    }

    @Test("Commands for a cancelled, forgotten or unknown download have no effect")
    func strangers() {
        var machine = machine(1, 1)
        let none = DownloadQueueMachine.Effects()
        let id = DownloadID(7)
        #expect(machine.end(id, .finished, now: start) == none)
        #expect(machine.cancel(id, now: start) == none)
        #expect(machine.resume(id, now: start) == nil)
        #expect(machine.pause([id], now: start).paused.isEmpty)
        #expect(machine.remove(id) == false)
        #expect(machine.discarded(id) == none)
        #expect(machine.recorded(id) == none)
        _ = machine.add([arrival(7)], now: start)
        #expect(machine.add([arrival(7)], now: start) == none)
        #expect(machine.remove(id) == false)
        _ = machine.end(id, .failed, now: start)
        #expect(machine.end(id, .finished, now: start) == none)
        #expect(machine.remove(id) == true)
        #expect(machine.phase(of: id) == nil)
    }

    @Test("A closed queue starts no download, and one that stops returns to its state before the start")
    func closing() {
        var machine = machine(1, 1)
        _ = machine.add([arrival(1), arrival(2)], now: start)
        machine.close()
        #expect(machine.end(DownloadID(1), .stopped, now: start) == DownloadQueueMachine.Effects())
        #expect(machine.phase(of: DownloadID(1)) == .waiting)
        #expect(machine.violation(of: DownloadLimits()) == nil)
    }

    @Test("A waiting download that changes its host counts for the new host")
    func moving() {
        var machine = machine(2, 1)
        _ = machine.add([arrival(1), arrival(2)], now: start)
        #expect(machine.resume(DownloadID(2), host: "b:80", now: start)?.begin == ids(2))
        #expect(machine.violation(of: DownloadLimits(concurrentFiles: 2, perHost: 1)) == nil)
    }

    @Test("Ten thousand waiting downloads are queued and dequeued quickly")
    func many() {
        var machine = machine(3, 3)
        var running = machine.add((1...10_000).map { arrival($0, "h\($0 % 7):80") }, now: start).begin
        var count = 0
        while let id = running.popLast() {
            running += machine.end(id, .finished, now: start).begin
            _ = machine.recorded(id)
            count += 1
        }
        #expect(count == 10_000)
        #expect(machine.isAllFinished)
    }
}
