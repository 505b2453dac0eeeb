import Martlet
import MartletTesting

/// A run of a storm: its workers make random visits to a peer for the length of the scenario, and the figures of this
/// process are sampled.
struct StormRun {
    /// The words of a storm in its report.
    struct Words {
        let visit: String
        let wrong: String
        /// The text before the error of a failed visit.
        let failed: String
    }

    private static let workers = 12

    /// The resident memory in bytes, by the seconds since the start.
    private var samples: [(x: Double, y: Double)] = []
    private var descriptors = 0
    /// The longest stall of the machine.
    private var standstill = Duration.zero
    private var elapsed = 0.0
    /// The processor time as a fraction of the elapsed time.
    private var load = 0.0

    /// Runs the workers to the end.
    /// - Parameters:
    ///   - rest: The pause of each worker between two visits.
    ///   - warmUp: The time in seconds before memory is sampled: pools, caches and the allocator's arenas fill first.
    ///   - visit: Makes a random visit and counts its outcome.
    init(
        _ options: SoakOptions, rest: Duration, warmUp: Double,
        visit: @escaping @Sendable (inout SeededGenerator) async -> Void
    ) async {
        let processorTime = ProcessFigures.processorTime
        let start = ContinuousClock.now
        let end = start + .seconds(options.minutes * 60)
        await withTaskGroup(of: Void.self) { group in
            for worker in 0..<StormRun.workers {
                group.addTask {
                    var generator = SeededGenerator(seed: options.seed, stream: UInt64(worker))
                    while ContinuousClock.now < end {
                        await visit(&generator)
                        try? await Task.sleep(for: rest)
                    }
                }
            }
            while ContinuousClock.now < end {
                let before = ContinuousClock.now
                try? await Task.sleep(for: .seconds(1))
                standstill = max(standstill, ContinuousClock.now - before - .seconds(1))
                descriptors = max(descriptors, ProcessFigures.descriptors)
                guard ContinuousClock.now > start + .seconds(warmUp) else { continue }
                samples.append(((ContinuousClock.now - start).seconds, Double(ProcessFigures.residentBytes)))
            }
        }
        elapsed = (ContinuousClock.now - start).seconds
        load = (ProcessFigures.processorTime - processorTime).seconds / elapsed
    }

    /// Adds all figures to a report, and invalidates both sessions.
    /// - Parameters:
    ///   - goodShare: The minimum percentage of good visits.
    ///   - control: The session that reads the counts of the peer's fault proxy.
    func report(
        _ words: Words, _ tally: StormTally, goodShare: Double, _ peer: Peer, _ session: HTTPSession,
        _ control: HTTPSession, to report: inout SoakReport
    ) async throws {
        let counts = tally.value
        let isIdle = try await session.isIdle()
        report.note("\(words.visit)s", "\(counts.requests), \(counts.good) of them good")
        for (code, number) in counts.codes.sorted(by: { $0.value > $1.value }) {
            report.note(words.failed + code, "\(number)")
        }
        for line in try await control.text(try peer.controlURL("/counts")).split(separator: "\n").dropFirst() {
            report.note("proxy", String(line))
        }
        report.add(words.wrong, counts.wrong, exactly: 0)
        report.add("untyped errors", counts.untyped.description, target: "none", isMet: counts.untyped.isEmpty)
        report.add("longest \(words.visit)", counts.longest.seconds, atMost: tally.bound.seconds, unit: "s")
        for late in counts.late { report.note("late", late) }
        report.note("longest stall of the machine", "\(SoakReport.short(standstill.seconds)) s")
        let share = Double(counts.good) / Double(max(1, counts.requests)) * 100
        report.add("good \(words.visit)s", share, atLeast: goodShare, unit: "%")
        let drift = Slope(samples).rise * elapsed / 1_048_576
        report.add("drift of resident memory over the run", drift, atMost: 2, unit: "MiB")
        report.note(
            "memory, first and last", "\(Int(samples.first?.y ?? 0) >> 10), \(Int(samples.last?.y ?? 0) >> 10) KiB")
        report.add(
            "calls and connections at the end", "\(session.diagnostics)".firstLine, target: "none", isMet: isIdle)
        // The descriptors of both hosts at their limit, the control connections, pipes, epoll and similar.
        report.add("maximum number of descriptors", Double(descriptors), atMost: 64, unit: "")
        await session.finishAndInvalidate()
        await control.finishAndInvalidate()
        report.add("sockets at the end", session.diagnostics.processSockets, exactly: 0)
        report.note("timers at the end", "\(session.diagnostics.processTimers)")
        report.note("CPU", "\(SoakReport.short(load * 100)) % of a core")
    }
}
