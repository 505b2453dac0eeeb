import Martlet
import MartletTesting

/// A scenario of shared transfers: the delay of cancelled requests, and the cost of joining a body in the middle.
struct CacheSharing: SoakScenario {
    let name = "cache-sharing"

    /// The number of concurrent requests for the same response.
    private static let requests = 50
    /// The length of the joined body in bytes.
    private static let byteCount = 256 << 20

    func run(_ options: SoakOptions, _ report: inout SoakReport) async throws {
        let rounds = options.count ?? 100
        let peer = try Peer(["origin"])
        defer { peer.stop() }
        let control = peer.session()
        try await cancel(rounds, peer, control, &report)
        try await join(peer, &report)
        await control.finishAndInvalidate()
    }

    /// The cache options, which treat responses without freshness information as fresh for ten minutes.
    private static var options: ResponseCache.Options {
        var options = ResponseCache.Options()
        options.memoryPressure = nil
        options.defaultFreshness = .tenMinutes
        return options
    }

    /// Cancels all requests for a shared response, or all but one.
    private func cancel(
        _ rounds: Int, _ peer: Peer, _ control: HTTPSession, _ report: inout SoakReport
    ) async throws {
        var (longest, sum, unharmed, requests) = (Duration.zero, Duration.zero, 0, 0)
        for round in 0..<rounds {
            _ = try await control.text(try peer.controlURL("/shut"))
            let cache = ResponseCache.memoryOnly(options: CacheSharing.options)
            let session = peer.session { $0.cache = cache }
            let url = try peer.url("/hold?\(round)")
            let tasks = (0..<CacheSharing.requests).map { _ in
                Task { try await session.send(.get, url).validated().text }
            }
            let deadline = ContinuousClock.now + .seconds(30)
            while session.diagnostics.runningCalls < CacheSharing.requests, ContinuousClock.now < deadline {
                try await Task.sleep(for: .milliseconds(1))
            }
            var held = 0
            while held == 0, ContinuousClock.now < deadline {
                held = Int(try await control.text(try peer.controlURL("/held"))) ?? 0
            }
            requests += held
            let start = ContinuousClock.now
            for task in tasks.dropLast() { task.cancel() }
            for task in tasks.dropLast() { _ = await task.result }
            let elapsed = ContinuousClock.now - start
            longest = max(longest, elapsed)
            sum += elapsed
            _ = try await control.text(try peer.controlURL("/open"))
            if try await tasks[CacheSharing.requests - 1].value == "held" { unharmed += 1 }
            await session.finishAndInvalidate()
        }
        report.add("requests, each shared by \(CacheSharing.requests) callers", requests, exactly: rounds)
        report.add("remaining callers with a response", unharmed, exactly: rounds)
        report.add(
            "maximum time until 49 cancelled calls returned", longest.seconds * 1000, atMost: 50, unit: "ms")
        report.note("average time", "\(SoakReport.short(sum.seconds * 1000 / Double(rounds))) ms")
    }

    /// Lets a second reader join a body in the middle.
    private func join(_ peer: Peer, _ report: inout SoakReport) async throws {
        let directory = try CacheDirectory()
        defer { directory.remove() }
        let cache = try ResponseCache.at(
            FilePath(directory.path), memory: .mebibytes(1), disk: .mebibytes(2304),
            options: CacheSharing.options
        )
        let session = peer.session { $0.cache = cache }
        // All resources are in use once before anything is counted.
        _ = try await read(8 << 20, session, peer) {}
        ProcessFigures.trimMemory()
        let before = ProcessFigures.residentBytes
        var second: Task<(bytes: Int, peak: Int), any Error>?
        let first = try await read(CacheSharing.byteCount, session, peer) {
            second = Task { try await read(CacheSharing.byteCount, session, peer) {} }
        }
        let joined = try await second?.value ?? (bytes: 0, peak: 0)
        report.add("bytes of the first reader", first.bytes, exactly: CacheSharing.byteCount)
        report.add("bytes of a reader that joined in the middle", joined.bytes, exactly: CacheSharing.byteCount)
        report.add("requests for both", Int(cache.statistics.misses) - 1, exactly: 1)
        report.add(
            "growth of resident memory", Double(max(first.peak, joined.peak) - before) / 1_048_576,
            atMost: 10, unit: "MiB")
        await session.finishAndInvalidate()
    }

    /// Reads a body and runs an action in its middle.
    private func read(
        _ byteCount: Int, _ session: HTTPSession, _ peer: Peer, inTheMiddle: () -> Void
    ) async throws -> (bytes: Int, peak: Int) {
        let request = HTTPRequest(method: .get, url: try peer.url("/bytes/\(byteCount)"))
        var (bytes, peak) = (0, 0)
        try await session.stream(request) { _, body in
            var isBefore = true
            for try await piece in body {
                guard TestPattern.firstMismatch(in: piece, at: UInt64(bytes)) == nil else { return }
                bytes += piece.count
                if isBefore, bytes >= byteCount / 2 {
                    isBefore = false
                    inTheMiddle()
                }
                if bytes & 0xFFFFF < piece.count { peak = max(peak, ProcessFigures.residentBytes) }
            }
        }
        return (bytes, peak)
    }
}
