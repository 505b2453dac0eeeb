import Martlet
import MartletTesting
import Synchronization

/// A scenario of an hour through the fault proxy: resets, stalls, truncations, drips and garbage, plain and over TLS.
struct Storm: SoakScenario {
    let name = "storm"

    private static let workers = 12
    /// The pause of each worker between two requests: the scenario measures faults, not load.
    private static let rest = Duration.milliseconds(60)
    /// The total timeout of each request, and the additional delay that a busy machine can cause.
    private static let total = Duration.seconds(8)
    private static let grace = Duration.seconds(2)

    func run(_ options: SoakOptions, _ report: inout SoakReport) async throws {
        report.note("seed", "\(options.seed)")
        let peer = try Peer(["storm", "\(options.seed)"])
        defer { peer.stop() }
        let control = peer.session()
        let session = peer.session { configuration in
            configuration.timeouts = Timeouts(
                poolWait: .seconds(6), connect: .seconds(2), head: .seconds(1), idle: .seconds(1),
                total: Storm.total)
        }
        let tally = StormTally(bound: Storm.total + Storm.grace)
        let end = ContinuousClock.now + .seconds(options.minutes * 60)
        // Runs of ten minutes and more exclude their first minute, during which pools and caches fill.
        let settled = ContinuousClock.now + .seconds(min(60, options.minutes * 6))
        var samples: [(x: Double, y: Double)] = []
        var descriptors = 0
        var standstill = Duration.zero
        let processorTime = ProcessFigures.processorTime
        let start = ContinuousClock.now
        await withTaskGroup(of: Void.self) { group in
            for worker in 0..<Storm.workers {
                group.addTask {
                    var generator = SeededGenerator(seed: options.seed, stream: UInt64(worker))
                    while ContinuousClock.now < end {
                        await Storm.fetch(peer, session, tally, &generator)
                        try? await Task.sleep(for: Storm.rest)
                    }
                }
            }
            while ContinuousClock.now < end {
                let before = ContinuousClock.now
                try? await Task.sleep(for: .seconds(1))
                // While the machine stalls, late requests are not counted as errors.
                standstill = max(standstill, ContinuousClock.now - before - .seconds(1))
                descriptors = max(descriptors, ProcessFigures.descriptors)
                guard ContinuousClock.now > settled else { continue }
                samples.append(((ContinuousClock.now - start).seconds, Double(ProcessFigures.residentBytes)))
            }
        }
        let elapsed = (ContinuousClock.now - start).seconds
        let load = (ProcessFigures.processorTime - processorTime).seconds / elapsed
        let counts = tally.value
        let isIdle = try await session.isIdle()
        report.note("requests", "\(counts.requests), \(counts.good) of them good")
        for (code, number) in counts.codes.sorted(by: { $0.value > $1.value }) {
            report.note("failed: \(code)", "\(number)")
        }
        for line in try await control.text(try peer.controlURL("/counts")).split(separator: "\n").dropFirst() {
            report.note("proxy", String(line))
        }
        report.add("wrong bodies", counts.wrong, exactly: 0)
        report.add(
            "untyped errors", counts.untyped.description, target: "none", isMet: counts.untyped.isEmpty
        )
        report.add(
            "longest request", counts.longest.seconds, atMost: (Storm.total + Storm.grace).seconds, unit: "s")
        for late in counts.late { report.note("late", late) }
        report.note("longest stall of the machine", "\(SoakReport.short(standstill.seconds)) s")
        report.add(
            "successful requests", Double(counts.good) / Double(max(1, counts.requests)) * 100, atLeast: 80, unit: "%")
        let drift = Slope(samples).rise * elapsed / 1_048_576
        report.add("drift of resident memory over the run", drift, atMost: 2, unit: "MiB")
        report.note(
            "memory, first and last",
            "\(Int(samples.first?.y ?? 0) >> 10), \(Int(samples.last?.y ?? 0) >> 10) KiB")
        report.add(
            "calls and connections at the end", "\(session.diagnostics)".firstLine, target: "none",
            isMet: isIdle)
        // The descriptors of both hosts at their limit, the control connections, pipes, epoll and similar.
        report.add("maximum number of descriptors", Double(descriptors), atMost: 64, unit: "")
        await session.finishAndInvalidate()
        await control.finishAndInvalidate()
        report.add("sockets at the end", session.diagnostics.processSockets, exactly: 0)
        report.note("CPU", "\(SoakReport.short(load * 100)) % of a core")
    }

    /// Sends a random request and checks its outcome.
    private static func fetch(
        _ peer: Peer, _ session: HTTPSession, _ tally: StormTally, _ generator: inout SeededGenerator
    ) async {
        let isSecure = generator.next() % 2 == 0
        let size = Int(generator.next() % 60_000) + 1
        let kind = generator.next() % 6
        let start = ContinuousClock.now
        let what = "kind \(kind), \(size) bytes\(isSecure ? " over TLS" : "")"
        do {
            let isRight =
                switch kind {
                case 0, 1: try await pattern("/bytes/\(size)", size, isSecure, peer, session)
                case 2, 3:
                    try await pattern("/chunked/\(size)?size=\(size / 7 + 1)", size, isSecure, peer, session)
                case 4: try await streamed(size, isSecure, peer, session)
                default: try await mirrored(size, isSecure, peer, session)
                }
            tally.ended(isRight ? .good : .wrong, ContinuousClock.now - start, what)
        } catch let error as HTTPError {
            tally.ended(
                .failed("\(error.code.rawValue) \(error.phase.rawValue)"), ContinuousClock.now - start, what)
        } catch {
            tally.ended(.untyped("\(error)"), ContinuousClock.now - start, what)
        }
    }

    private static func pattern(
        _ path: String, _ size: Int, _ isSecure: Bool, _ peer: Peer, _ session: HTTPSession
    ) async throws -> Bool {
        let exchange = try await session.send(.get, try peer.url(path, isSecure: isSecure)).validated()
        return exchange.body.count == size && TestPattern.firstMismatch(in: exchange.body, at: 0) == nil
    }

    private static func streamed(
        _ size: Int, _ isSecure: Bool, _ peer: Peer, _ session: HTTPSession
    ) async throws -> Bool {
        let request = HTTPRequest(method: .get, url: try peer.url("/bytes/\(size)", isSecure: isSecure))
        return try await session.stream(request) { _, body in
            var offset = 0
            for try await chunk in body {
                if TestPattern.firstMismatch(in: chunk, at: UInt64(offset)) != nil { return false }
                offset += chunk.count
            }
            return offset == size
        }
    }

    private static func mirrored(
        _ size: Int, _ isSecure: Bool, _ peer: Peer, _ session: HTTPSession
    ) async throws -> Bool {
        let sent = TestPattern.bytes(from: UInt64(size), count: size)
        let exchange = try await session.send(
            .put, try peer.url("/mirror", isSecure: isSecure), body: .bytes(sent)
        ).validated()
        return exchange.body == sent
    }
}
