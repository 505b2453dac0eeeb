import Martlet
import MartletTesting
import MartletTestSupport
import Testing

@testable import MartletCaching
@testable import MartletCore
@testable import MartletDiagnostics
@testable import MartletStreams

@Suite("Stale responses for a failing origin")
struct CacheFailingOriginTests {
    /// The way an origin fails each connection.
    enum Failure: String, CaseIterable, Sendable {
        case closed, reset, cutHead, garbage, stalled, error500, error502, error503, error504

        var script: ServerScript {
            switch self {
            case .closed: ServerScript(.expectRequestHead, .close)
            case .reset: ServerScript(.expectRequestHead, .reset)
            case .cutHead: .respond("HTTP/1.1 200 OK\r\nCache-Control: max-a")
            case .garbage: .respond("SSH-2.0-OpenSSH_9.2\r\n\r\n")
            case .stalled: ServerScript(.expectRequestHead, .stall)
            case .error500, .error502, .error503, .error504:
                .respond(
                    "HTTP/1.1 \(rawValue.suffix(3)) No\r\nCache-Control: max-age=600\r\nContent-Length: 5\r\n"
                        + "Connection: close\r\n\r\nerror")
            }
        }

        /// Whether the origin sends a response.
        var isAnswer: Bool { rawValue.hasPrefix("error") }

        /// The options of a request. If the origin sends nothing, the head timeout ends it, even before it is sent.
        var options: RequestOptions {
            var options = RequestOptions()
            if self == .stalled { options.timeouts = .patient(head: .milliseconds(50)) }
            return options
        }
    }

    /// Runs a test with an origin that sends one response, stale by a minute, and fails from then on.
    private func with(
        _ failure: Failure, _ control: String,
        _ body: (TestOrigin, HTTPSession, ResponseCache, CacheFaultScene) async throws -> Void
    ) async throws {
        let scene = try CacheFaultScene()
        let stale = ServerScript.respond(
            "HTTP/1.1 200 OK\r\nAge: 120\r\nCache-Control: max-age=60\(control)\r\nETag: \"1\"\r\n"
                + "Content-Length: 3\r\nConnection: close\r\n\r\nold")
        try await TestOrigin.withOrigin(scripts: stale, failure.script) { origin in
            let cache = try await scene.openedCache()
            let session = scene.session(cache)
            #expect(try await session.get(origin.url()).source == .network)
            try await body(origin, session, cache, scene)
        }
    }

    @Test("A stale response within stale-if-error replaces any failure and stays stored", arguments: Failure.allCases)
    func staleIfError(_ failure: Failure) async throws {
        try await with(failure, ", stale-if-error=600") { origin, session, cache, scene in
            for _ in 0..<3 {
                let exchange = try await session.get(origin.url(), options: failure.options)
                #expect(exchange.source == .staleCache && exchange.statusCode == 200)
                #expect(exchange.text == "old" && exchange.field("Age").flatMap { Int($0) } ?? 0 >= 120)
                #expect(exchange.cacheStatus?.contains("stale-if-error") == true)
            }
            #expect(cache.statistics.staleOnErrors == 3 && cache.statistics.stores == 1)
            #expect(
                await scene.hears {
                    guard case .staleOnError(_, let status) = $0 else { return false }
                    return (status != nil) == failure.isAnswer
                })
        }
    }

    @Test(
        "A stale response beyond its limit does not replace a failure",
        arguments: Failure.allCases,
        [
            ", stale-if-error=10", ", stale-if-error=600, must-revalidate",
            ", stale-while-revalidate=600, no-cache",
        ])
    func tooStale(_ failure: Failure, _ control: String) async throws {
        try await with(failure, control) { origin, session, cache, _ in
            if failure.isAnswer {
                let exchange = try await session.get(origin.url(), options: failure.options)
                #expect("\(exchange.statusCode)" == failure.rawValue.suffix(3) && exchange.text == "error")
            } else {
                await #expect(throws: HTTPError.self) {
                    try await session.get(origin.url(), options: failure.options)
                }
            }
            #expect(cache.statistics.staleOnErrors == 0 && cache.statistics.staleHits == 0)
            #expect(cache.statistics.stores == 1)
        }
    }

    @Test(
        "A failed background validation keeps the stale response, and the next request tries again",
        arguments: Failure.allCases)
    func staleWhileRevalidate(_ failure: Failure) async throws {
        try await with(failure, ", stale-while-revalidate=600") { origin, session, cache, scene in
            for round in 1...3 {
                for _ in 0..<5 {
                    let exchange = try await session.get(origin.url(), options: failure.options)
                    #expect(exchange.source == .staleCache && exchange.text == "old")
                }
                // Each validation ends, and the next stale response starts another one.
                #expect(await eventually { session.core.runningCount == 0 })
                #expect(cache.statistics.revalidations >= UInt64(round))
            }
            let count = cache.statistics.revalidations
            #expect(count <= 15 && cache.statistics.staleHits == 15 && cache.statistics.stores == 1)
            #expect(
                await eventually {
                    scene.events.count { $0 == .revalidationFailed(url: origin.url()) } == Int(count)
                })
            #expect(cache.statistics.staleOnErrors == 0)
        }
    }

    @Test(
        "Background validations are limited to one per URL and to the connections per host"
    )
    func bounded() async throws {
        let scene = try CacheFaultScene()
        let signals = SignalBox()
        let seen = Shared<Set<String>>([])
        let urls = 40
        try await TestOrigin.withOrigin { request in
            let isFirst = seen.withLock { $0.insert(request.path).inserted }
            if isFirst { return CacheScene.stale(request.path, CacheScene.staleWhileRevalidate) }
            try await signals.wait(for: "go")
            return OriginResponse(500)
        } run: { origin async throws in
            signals.use(origin)
            let cache = try await scene.openedCache()
            let session = HTTPSession.own { configuration in
                configuration.cache = cache
                configuration.pool.connectionsPerHost = 4
            }
            for number in 0..<urls { _ = try await session.get(origin.url("/\(number)")) }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for turn in 0..<urls * 5 {
                    group.addTask {
                        let path = "/\(turn % urls)"
                        let exchange = try await session.get(origin.url(path))
                        #expect(exchange.source == .staleCache && exchange.text == path)
                    }
                }
                try await group.waitForAll()
            }
            #expect(cache.statistics.staleHits == UInt64(urls * 5))
            #expect(cache.statistics.revalidations == UInt64(urls))
            #expect(session.core.runningCount == urls)
            try await origin.waitForRequests(count: urls + 4)
            #expect(origin.requests.count == urls + 4 && origin.openConnectionCount <= 4)
            signals.raise("go")
            #expect(await eventually { session.core.runningCount == 0 })
            #expect(origin.requests.count == 2 * urls && cache.statistics.stores == UInt64(urls))
            #expect(
                await eventually {
                    scene.events.count { if case .revalidationFailed = $0 { true } else { false } } == urls
                })
        }
    }
}
