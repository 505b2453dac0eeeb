import Martlet

/// A scenario with ten gigabytes for a slow reader that once pauses completely.
struct SlowConsumer: SoakScenario {
    let name = "slow-consumer"

    func run(_ options: SoakOptions, _ report: inout SoakReport) async throws {
        let total = (options.count ?? 10_000_000_000)
        let peer = try Peer(["origin"])
        defer { peer.stop() }
        let control = peer.session()
        let session = peer.session()
        let warm = try await stream(min(total, 64 << 20), session, peer, control)
        let before = ProcessFigures.residentBytes
        let run = try await stream(total, session, peer, control)
        report.add("bytes", run.bytes, exactly: total)
        report.add(
            "resident memory above that of a short stream",
            Double(max(run.peak, warm.peak) - before) / 1_048_576,
            atMost: 1, unit: "MiB")
        report.add(
            "bytes sent during the reader's pause", run.movedWhileStopped, exactly: 0)
        report.note("bytes in the kernel's buffers then", "\(run.underway >> 10) KiB")
        report.note("megabytes per second", SoakReport.short(Double(total) / 1e6 / run.seconds))
        _ = try await session.isIdle()
    }

    private struct Run {
        var bytes = 0
        var peak = 0
        var movedWhileStopped = 0
        var underway = 0
        var seconds = 0.0
    }

    private func stream(
        _ total: Int, _ session: HTTPSession, _ peer: Peer, _ control: HTTPSession
    ) async throws -> Run {
        var run = Run()
        let request = HTTPRequest(method: .get, url: try peer.url("/bytes/\(total)"))
        let sentBefore = try await sent(peer, control)
        let start = ContinuousClock.now
        try await session.stream(request) { _, body in
            var untilPause = 4 << 20
            var hasStopped = false
            for try await chunk in body {
                run.bytes += chunk.count
                untilPause -= chunk.count
                guard untilPause <= 0 else { continue }
                untilPause = 4 << 20
                try await Task.sleep(for: .milliseconds(5))
                run.peak = max(run.peak, ProcessFigures.residentBytes)
                guard !hasStopped, run.bytes > total / 10 else { continue }
                hasStopped = true
                try await Task.sleep(for: .seconds(1))
                let first = try await sent(peer, control)
                try await Task.sleep(for: .seconds(2))
                let second = try await sent(peer, control)
                run.movedWhileStopped = second - first
                run.underway = second - sentBefore - run.bytes
            }
        }
        run.seconds = (ContinuousClock.now - start).seconds
        return run
    }

    /// Returns the number of bytes that the origin has passed to its kernel.
    private func sent(_ peer: Peer, _ control: HTTPSession) async throws -> Int {
        let text = try await control.text(try peer.controlURL("/counts"))
        for line in text.split(separator: "\n") where line.hasPrefix("sent ") {
            if let count = Int(line.dropFirst(5)) { return count }
        }
        throw SoakFailure("the peer does not report its sent bytes: \(text)")
    }
}
