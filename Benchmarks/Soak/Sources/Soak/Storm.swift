import Martlet
import MartletTesting

/// A scenario of an hour through the fault proxy: resets, stalls, truncations, drips and garbage, plain and over TLS.
struct Storm: SoakScenario {
    let name = "storm"

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
        // Runs of ten minutes and more exclude their first minute.
        let run = await StormRun(options, rest: Storm.rest, warmUp: min(60, options.minutes * 6)) { generator in
            await Storm.fetch(peer, session, tally, &generator)
        }
        let words = StormRun.Words(visit: "request", wrong: "wrong bodies", failed: "failed: ")
        try await run.report(words, tally, goodShare: 80, peer, session, control, to: &report)
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
