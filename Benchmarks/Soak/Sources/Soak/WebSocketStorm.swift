import Martlet
import MartletTesting
import MartletWebSocket

/// A scenario of an hour with WebSocket connections to a server with random faults, through the fault proxy, with
/// cancellations at random moments.
struct WebSocketStorm: SoakScenario {
    let name = "websocket"

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
        // The first minute is excluded, or half of a shorter run.
        let run = await StormRun(options, rest: WebSocketStorm.rest, warmUp: min(60, options.minutes * 30)) {
            generator in
            await WebSocketStorm.visit(peer, session, tally, &generator)
        }
        let words = StormRun.Words(visit: "visit", wrong: "wrong or reordered messages", failed: "")
        // A quarter is cancelled, and a third of the others meets a fault.
        try await run.report(words, tally, goodShare: 25, peer, session, control, to: &report)
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
