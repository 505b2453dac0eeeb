@testable import MartletDownloads
import MartletTesting
import MartletTestSupport
import MartletTransport
import Testing

@Suite("Download queue machine and a simple model of it")
struct DownloadQueueModelTests {
    /// The same queue without indexes and counts: each decision scans all entries.
    private struct Model {
        struct Entry {
            var id: DownloadID
            var host: String
            var priority: DownloadPriority
            var phase: DownloadQueueMachine.Phase
            var sequence = 0
            var since = MonotonicTime(nanoseconds: 0)
            var runningHost: String?
        }

        var limits: DownloadLimits
        var entries: [Entry] = []
        var sequence = 0

        subscript(id: DownloadID) -> Int? { entries.firstIndex { $0.id == id } }

        mutating func wait(_ index: Int, _ now: MonotonicTime) {
            sequence += 1
            entries[index].phase = .waiting
            entries[index].sequence = sequence
            entries[index].since = now
        }

        mutating func begin(_ now: MonotonicTime) -> [DownloadID] {
            var begun: [DownloadID] = []
            while true {
                let running = entries.filter { $0.phase.isRunning }
                guard running.count < limits.concurrentFiles else { return begun }
                let open = entries.filter { entry in
                    entry.phase == .waiting
                        && running.count(where: { $0.runningHost == entry.host }) < limits.perHost
                }
                let next = open.min { left, right in
                    (-level(left, now), left.sequence) < (-level(right, now), right.sequence)
                }
                guard let next, let index = self[next.id] else { return begun }
                entries[index].phase = .running
                entries[index].runningHost = next.host
                begun.append(next.id)
            }
        }

        func level(_ entry: Entry, _ now: MonotonicTime) -> Int {
            min(2, entry.priority.rawValue + Int(now.since(entry.since) / .seconds(60)))
        }
    }

    @Test("After each of 20,000 random events both have started the same files", arguments: [1, 2, 3, 4] as [UInt64])
    func random(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var limits = DownloadLimits()
        var machine = DownloadQueueMachine(limits: limits)
        var model = Model(limits: limits)
        var now = MonotonicTime(nanoseconds: 0)
        var last: UInt64 = 0
        for step in 0..<5000 {
            now = now.advanced(by: .milliseconds(Int.random(in: 0...20_000, using: &random)))
            let known = model.entries.map(\.id)
            let id = known.randomElement(using: &random) ?? DownloadID(0)
            let index = model[id]
            let phase = index.map { model.entries[$0].phase }
            var effects = DownloadQueueMachine.Effects()
            switch Int.random(in: 0..<12, using: &random) {
            case 0 where known.count < 30, 1 where known.count < 30, 2 where known.count < 15:
                last += 1
                let host = "h\(UInt8.random(in: 0..<4, using: &random)):80"
                let priority = DownloadPriority.allCases.randomElement(using: &random) ?? .low
                effects = machine.add(
                    [.init(id: DownloadID(last), host: host, priority: priority, phase: .waiting)],
                    now: now)
                model.entries.append(
                    .init(id: DownloadID(last), host: host, priority: priority, phase: .waiting))
                model.wait(model.entries.count - 1, now)
            case 3:
                effects = machine.pause([id], now: now).effects
                switch phase {
                case .waiting: index.map { model.entries[$0].phase = .paused }
                case .running, .stopping(.again): index.map { model.entries[$0].phase = .stopping(.pause) }
                default: break
                }
            case 4:
                effects = machine.resume(id, now: now) ?? effects
                switch phase {
                case .paused, .failed: if let index { model.wait(index, now) }
                case .stopping(.pause): index.map { model.entries[$0].phase = .stopping(.again) }
                default: break
                }
            case 5 where Bool.random(using: &random):
                effects = machine.cancel(id, now: now)
                switch phase {
                case .waiting, .paused, .failed: index.map { model.entries[$0].phase = .removing }
                case .running, .stopping: index.map { model.entries[$0].phase = .stopping(.cancel) }
                default: break
                }
            case 6, 7, 8:
                guard let index, let phase else { continue }
                let outcome =
                    [DownloadQueueMachine.Outcome.finished, .failed, .stopped]
                    .randomElement(using: &random) ?? .failed
                effects = machine.end(id, outcome, now: now)
                guard phase.isRunning else { break }
                model.entries[index].runningHost = nil
                switch (outcome, phase) {
                case (.finished, _): model.entries[index].phase = .recording
                case (_, .stopping(.cancel)): model.entries[index].phase = .removing
                case (.failed, _), (.stopped, .running): model.entries[index].phase = .failed
                case (.stopped, .stopping(.pause)): model.entries[index].phase = .paused
                default: model.wait(index, now)
                }
            case 9:
                let priority = DownloadPriority.allCases.randomElement(using: &random) ?? .low
                machine.setPriority(priority, of: id)
                index.map { model.entries[$0].priority = priority }
            case 10 where Int.random(in: 0..<20, using: &random) == 0:
                limits.concurrentFiles = Int.random(in: 1...6, using: &random)
                limits.perHost = Int.random(in: 1...3, using: &random)
                model.limits = limits
                effects = machine.setLimits(limits, now: now)
            default:
                switch phase {
                case .recording:
                    effects = machine.recorded(id)
                    index.map { model.entries[$0].phase = .finished }
                case .removing:
                    effects = machine.discarded(id)
                    if let index { model.entries.remove(at: index) }
                case .failed, .finished:
                    #expect(machine.remove(id) == true)
                    if let index { model.entries.remove(at: index) }
                default: #expect(machine.remove(id) == false)
                }
            }
            let begun = effects.begin.isEmpty && effects.isAllFinished ? [] : model.begin(now)
            guard effects.begin == begun, machine.violation(of: nil) == nil,
                model.entries.allSatisfy({ machine.phase(of: $0.id) == $0.phase })
            else {
                Issue.record(
                    "seed \(seed), step \(step): \(effects) against \(begun); \(machine.violation(of: nil) ?? "")"
                )
                return
            }
        }
    }
}
