import Martlet

/// A scenario with ten thousand requests to a server that responds only after all of them have arrived.
struct InFlight: SoakScenario {
    let name: String
    /// Whether the requests use TLS.
    let isSecure: Bool
    /// The maximum resident memory per request in bytes.
    let bytesTarget: Double

    func run(_ options: SoakOptions, _ report: inout SoakReport) async throws {
        let count = options.count ?? 10_000
        let peer = try Peer(["origin"])
        defer { peer.stop() }
        let control = peer.session()
        let url = try peer.url("/hold", isSecure: isSecure)
        try await warmUp(peer)
        _ = try await control.text(try peer.controlURL("/held"))
        // The first sleep opens descriptors of the runtime.
        try await Task.sleep(for: .milliseconds(1))
        let descriptors = ProcessFigures.descriptors

        let session = peer.session { configuration in
            configuration.pool.connectionsPerHost = count
            configuration.pool.totalConnections = count
            configuration.timeouts.connect = .seconds(120)
            configuration.timeouts.head = .seconds(240)
        }
        ProcessFigures.trimMemory()
        let before = ProcessFigures.residentBytes
        let allocatedBefore = ProcessFigures.allocatedBytes
        let outcome = try await withThrowingTaskGroup(of: Bool.self) { group in
            for _ in 0..<count {
                group.addTask {
                    do {
                        // The call uses no helper of this program, because its frame would count as part of the
                        // request.
                        return try await session.send(.get, url).body.count == 4
                    } catch {
                        print("\(error)")
                        return false
                    }
                }
            }
            let held = try await waitUntilHeld(count, peer, control)
            let resident = ProcessFigures.residentBytes - before
            let allocated = ProcessFigures.allocatedBytes - allocatedBefore
            let threads = ProcessFigures.threads
            _ = try await control.text(try peer.controlURL("/open"))
            var answered = 0
            for try await isRight in group where isRight { answered += 1 }
            return (
                held: held, resident: resident, allocated: allocated, threads: threads, answered: answered
            )
        }
        report.add("requests in flight concurrently", outcome.held, exactly: count)
        report.add("responses", outcome.answered, exactly: count)
        report.add(
            "resident memory per request", Double(outcome.resident) / Double(count) / 1024,
            atMost: bytesTarget / 1024, unit: "KiB")
        report.note(
            "allocated memory per request", "\(SoakReport.short(Double(outcome.allocated) / Double(count) / 1024)) KiB")
        report.note("peak resident memory", "\(ProcessFigures.peakResidentBytes >> 20) MiB")
        report.add(
            "threads", Double(outcome.threads), atMost: Double(ProcessFigures.processors + 4), unit: "")
        await session.finishAndInvalidate()
        let isIdle = try await session.isIdle()
        report.add(
            "calls and connections at the end", "\(session.diagnostics)".firstLine, target: "none",
            isMet: isIdle)
        report.add("leaked descriptors", ProcessFigures.descriptors - descriptors, exactly: 0)
    }

    /// Loads everything that the first request loads, and opens the control connection.
    private func warmUp(_ peer: Peer) async throws {
        let session = peer.session()
        for _ in 0..<20 { _ = try await session.text(try peer.url("/bytes/10", isSecure: isSecure)) }
        await session.finishAndInvalidate()
    }

    private func waitUntilHeld(_ count: Int, _ peer: Peer, _ control: HTTPSession) async throws -> Int {
        var held = 0
        for _ in 0..<1200 {
            held = Int(try await control.text(try peer.controlURL("/held"))) ?? 0
            if held >= count { break }
            try await Task.sleep(for: .milliseconds(100))
        }
        return held
    }
}

extension String {
    /// The text before the first line break.
    var firstLine: String { split(separator: "\n").first.map(String.init) ?? "" }
}
