import CircuitBreaker
import MartletCore
import MartletTesting
import Synchronization
import Testing

/// A clock that does not move until it is set forward.
private final class ManualClock: Sendable {
    private let instant = Mutex(ContinuousClock.now)

    var now: ContinuousClock.Instant { instant.withLock { $0 } }

    func advance(by duration: Duration) { instant.withLock { $0 += duration } }
}

@Suite("A feature of another package")
struct CircuitBreakerTests {
    @Test("A circuit breaker is a session setting that takes part in each call, and each call can disable it")
    func breaks() async throws {
        let clock = ManualClock()
        let status = Mutex(500)
        try await TestOrigin.withOrigin { _ in
            .text("x", status: status.withLock { $0 })
        } run: { origin in
            var configuration = SessionConfiguration.default
            configuration.circuitBreaker = CircuitBreaker(
                failures: 2, pause: .seconds(30), now: { clock.now })
            let session = HTTPSession(configuration: configuration)
            let url = origin.url("/")
            _ = try await session.get(url)
            _ = try await session.get(url)
            await #expect(throws: CircuitBreaker.OpenError(authority: "127.0.0.1:\(origin.port)")) {
                try await session.get(url)
            }
            #expect(origin.requests.count == 2)

            var options = RequestOptions()
            options.usesCircuitBreaker = false
            _ = try await session.get(url, options: options)
            #expect(origin.requests.count == 3)

            clock.advance(by: .seconds(31))
            status.withLock { $0 = 200 }
            _ = try await session.get(url)
            _ = try await session.get(url)
            #expect(origin.requests.count == 5)
        }
    }

    @Test("The circuit breaker receives each request that a redirect or a challenge causes")
    func place() async throws {
        try await TestOrigin.withOrigin { request in
            switch (request.path, request.headers["authorization"]) {
            case ("/start", _): OriginResponse(302, headers: ["Location": "/page"])
            case (_, nil): OriginResponse(401, headers: ["WWW-Authenticate": "Basic realm=\"a\""])
            default: .text("x")
            }
        } run: { origin in
            let seen = Seen()
            var configuration = SessionConfiguration.default
            configuration[SeenFeature.self] = seen
            configuration.delegate = Answering()
            let session = HTTPSession(configuration: configuration)
            let exchange = try await session.get(origin.url("/start"))
            #expect(exchange.text == "x")
            #expect(seen.paths == ["/start", "/page", "/page"])
        }
    }
}

/// A delegate that responds to challenges.
private struct Answering: SessionDelegate {
    func respond(to challenge: AuthenticationChallenge, in context: CallContext) async throws
        -> ChallengeDisposition
    {
        .credentials(.basic(user: "user", password: "secret"))
    }
}

/// A middleware that records the requests.
private final class Seen: HTTPMiddleware {
    private let requests = Mutex<[String]>([])

    /// The path of each request.
    var paths: [String] { requests.withLock { $0 } }

    func handle(
        _ request: HTTPCall.Request, context: CallContext, next: HTTPNext
    ) async throws -> HTTPCall.Response {
        requests.withLock { $0.append(request.head.path ?? "") }
        return try await next(request)
    }
}

private enum SeenFeature: FeatureKey {
    static var defaultValue: Seen? { nil }
    static var position: StagePosition { .cache }

    static func middleware(for seen: Seen?) -> (any HTTPMiddleware)? { seen }
}
