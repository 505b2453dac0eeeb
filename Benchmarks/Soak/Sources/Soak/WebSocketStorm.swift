import Martlet
import MartletTesting
import MartletWebSocket

/// A scenario of an hour with WebSocket connections to a server with random faults, through the fault proxy, with
/// cancellations at random moments.
struct WebSocketStorm: SoakScenario {
    let name = "websocket"

    private static let workers = 12
    /// The pause of each worker between two visits: the scenario measures faults, not load.
    private static let rest = Duration.milliseconds(20)
    /// The maximum duration of a visit: messages are few, but slow, and some connections follow each other.
    private static let bound = Duration.seconds(30)

    func run(_ options: SoakOptions, _ report: inout SoakReport) async throws {
        report.note("seed", "\(options.seed)")
        let peer = try Peer(["websocket", "\(options.seed)"])
        defer { peer.stop() }
        let control = peer.session()
        let session = peer.session { configuration in
            configuration.timeouts = Timeouts(connect: .seconds(2), head: .seconds(1), total: .seconds(5))
        }
        let tally = StormTally(bound: WebSocketStorm.bound)
        let end = ContinuousClock.now + .seconds(options.minutes * 60)
        // The first minute is excluded, or half of a shorter run: pools, caches and the allocator's arenas fill.
        let settled = ContinuousClock.now + .seconds(min(60, options.minutes * 30))
        var samples: [(x: Double, y: Double)] = []
        var descriptors = 0
        let processorTime = ProcessFigures.processorTime
        let start = ContinuousClock.now
        await withTaskGroup(of: Void.self) { group in
            for worker in 0..<WebSocketStorm.workers {
                group.addTask {
                    var generator = SeededGenerator(seed: options.seed, stream: UInt64(worker))
                    while ContinuousClock.now < end {
                        await WebSocketStorm.visit(peer, session, tally, &generator)
                        try? await Task.sleep(for: WebSocketStorm.rest)
                    }
                }
            }
            while ContinuousClock.now < end {
                try? await Task.sleep(for: .seconds(1))
                descriptors = max(descriptors, ProcessFigures.descriptors)
                guard ContinuousClock.now > settled else { continue }
                samples.append(((ContinuousClock.now - start).seconds, Double(ProcessFigures.residentBytes)))
            }
        }
        let elapsed = (ContinuousClock.now - start).seconds
        let load = (ProcessFigures.processorTime - processorTime).seconds / elapsed
        let counts = tally.value
        let isIdle = try await session.isIdle()
        report.note("visits", "\(counts.requests), \(counts.good) of them good")
        for (ending, number) in counts.codes.sorted(by: { $0.value > $1.value }) { report.note(ending, "\(number)") }
        for line in try await control.text(try peer.controlURL("/counts")).split(separator: "\n").dropFirst() {
            report.note("proxy", String(line))
        }
        report.add("wrong or reordered messages", counts.wrong, exactly: 0)
        report.add("untyped errors", counts.untyped.description, target: "none", isMet: counts.untyped.isEmpty)
        report.add("longest visit", counts.longest.seconds, atMost: WebSocketStorm.bound.seconds, unit: "s")
        for late in counts.late { report.note("late", late) }
        // A quarter is cancelled, and a third of the others meets a fault.
        report.add("good visits", Double(counts.good) / Double(max(1, counts.requests)) * 100, atLeast: 25, unit: "%")
        let drift = Slope(samples).rise * elapsed / 1_048_576
        report.add("drift of resident memory over the run", drift, atMost: 2, unit: "MiB")
        report.note(
            "memory, first and last", "\(Int(samples.first?.y ?? 0) >> 10), \(Int(samples.last?.y ?? 0) >> 10) KiB")
        report.add(
            "calls and connections at the end", "\(session.diagnostics)".firstLine, target: "none", isMet: isIdle)
        report.add("maximum number of descriptors", Double(descriptors), atMost: 64, unit: "")
        await session.finishAndInvalidate()
        await control.finishAndInvalidate()
        report.add("sockets at the end", session.diagnostics.processSockets, exactly: 0)
        report.note("timers at the end", "\(session.diagnostics.processTimers)")
        report.note("CPU", "\(SoakReport.short(load * 100)) % of a core")
    }

    /// Makes a random visit, which may be cancelled at a random moment, and counts its outcome.
    private static func visit(
        _ peer: Peer, _ session: HTTPSession, _ tally: StormTally, _ generator: inout SeededGenerator
    ) async {
        let visit = WebSocketVisit(&generator)
        let isCancelled = generator.next() % 4 == 0
        let moment = isCancelled ? Duration.microseconds(Int64(generator.next() % 60_000)) : bound
        let start = ContinuousClock.now
        let running = Task { try await visit.run(session, peer) }
        let watch = Task {
            try await Task.sleep(for: moment)
            running.cancel()
        }
        let result = await running.result
        watch.cancel()
        let ending: StormTally.Ending
        switch result {
        case .success(.complete): ending = .good
        case .success(.short): ending = .failed("closed early")
        case .success(.wrong): ending = .wrong
        case .failure(let error as HTTPError): ending = .failed("handshake: \(error.code.rawValue)")
        case .failure(WebSocketError.closed(let code, _)): ending = .failed("closed: \(code)")
        case .failure(let error as WebSocketError):
            ending = .failed(String("\(error)".prefix { $0 != ":" && $0 != ";" }))
        case .failure(is CancellationError) where isCancelled: ending = .failed("cancelled")
        case .failure(let error): ending = .untyped("\(error)")
        }
        tally.ended(ending, ContinuousClock.now - start, visit.description)
    }
}
