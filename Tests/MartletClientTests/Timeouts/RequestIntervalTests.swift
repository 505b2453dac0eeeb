import Martlet
import MartletTestSupport
import MartletTesting
import MartletTransport
import Synchronization
import Testing

@testable import MartletCore

@Suite("The minimum time between requests to one origin", .timeLimit(.minutes(20)))
struct RequestIntervalTests {
    /// The origin records the time at which each request arrives.
    private static func withOrigin(
        _ run: (TestOrigin, @escaping @Sendable () -> [MonotonicTime]) async throws -> Void
    ) async throws {
        let arrivals = Mutex<[MonotonicTime]>([])
        try await TestOrigin.withOrigin { request in
            arrivals.withLock { $0.append(.now()) }
            if request.target == "/moved" { return OriginResponse(302, headers: ["Location": "/next"]) }
            return OriginResponse(headers: ["Cache-Control": "max-age=100"], body: .text("ok"))
        } run: { origin async throws in
            try await run(origin) { arrivals.withLock { $0.sorted() } }
        }
    }

    @Test("Concurrent calls, redirects and other methods take turns")
    func spacing() async throws {
        try await Self.withOrigin { origin, arrivals in
            let interval = Duration.milliseconds(200)
            let session = HTTPSession.own { $0.requestInterval = interval }
            let start = MonotonicTime.now()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for path in ["/a", "/moved", "/b"] {
                    group.addTask { _ = try await session.get(origin.url(path)) }
                }
                group.addTask { _ = try await session.post(origin.url("/c"), body: .text("x")) }
                try await group.waitForAll()
            }
            #expect(arrivals().count == 5)
            // Requests may take different times to arrive, but none arrives before its turn.
            #expect(arrivals().enumerated().allSatisfy { $1.since(start) >= interval * $0 })
        }
    }

    @Test("Another origin, and a response from the cache, are not delayed")
    func others() async throws {
        try await Self.withOrigin { first, arrivals in
            try await Self.withOrigin { second, others in
                let session = HTTPSession.own {
                    $0.requestInterval = TestTimeouts.long
                    $0.cache = .memoryOnly(options: .withoutPressure)
                }
                _ = try await session.get(first.url("/a"))
                _ = try await session.get(second.url("/a"))
                #expect(try await session.get(first.url("/a")).source == .cache)
                #expect(arrivals().count == 1 && others().count == 1)
            }
        }
    }

    @Test(
        "A call that waits for its turn ends immediately when it is cancelled, and at its total timeout")
    func endings() async throws {
        try await Self.withOrigin { origin, arrivals in
            let session = HTTPSession.own { $0.requestInterval = TestTimeouts.long }
            _ = try await session.get(origin.url("/a"))
            let waiting = (0..<3).map { _ in Task { try await session.get(origin.url("/b")) } }
            #expect(await eventually { session.core.pacer.waitingCount == 3 })
            for task in waiting { task.cancel() }
            for task in waiting { await #expect(throws: CancellationError.self) { try await task.value } }
            let error = await #expect(throws: HTTPError.self) {
                try await session.get(origin.url("/b"), timeout: .milliseconds(50))
            }
            #expect(error?.code == .timedOut && error?.phase == .preparing && error?.wasSent == false)
            #expect(error?.message.contains("requestInterval") == true)
            let task = await session.task(for: origin.url("/b"))
            await task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            await session.invalidateAndCancel()
            #expect(arrivals().count == 1)
        }
    }

    @Test("The interval of an origin replaces that of the session")
    func ofOrigin() async throws {
        try await Self.withOrigin { first, _ in
            try await Self.withOrigin { second, _ in
                let session = HTTPSession.own()
                session.setRequestInterval(.milliseconds(300), for: try HTTPURL(first.base))
                let start = MonotonicTime.now()
                for origin in [first, first, second, second] { _ = try await session.get(origin.url("/a")) }
                #expect(MonotonicTime.now().since(start) >= .milliseconds(300))
                session.setRequestInterval(TestTimeouts.long, for: try HTTPURL(second.base))
                _ = try await session.get(second.url("/a"))
                session.setRequestInterval(nil, for: try HTTPURL(first.base))
                _ = try await session.get(first.url("/a"))
                _ = try await session.get(first.url("/a"))
                await #expect(throws: HTTPError.self) {
                    try await session.get(second.url("/a"), timeout: .milliseconds(50))
                }
            }
        }
    }

    // An earlier version never stopped to check each request.
    @Test("Once the last interval is removed, requests are not delayed")
    func removed() async throws {
        try await Self.withOrigin { origin, arrivals in
            let session = HTTPSession.own()
            let first = try HTTPURL(origin.base)
            let second = try HTTPURL("http://other.example")
            #expect(!session.core.pacer.isActive)
            session.setRequestInterval(TestTimeouts.long, for: first)
            session.setRequestInterval(TestTimeouts.long, for: second)
            _ = try await session.get(origin.url("/a"))
            session.setRequestInterval(nil, for: first)
            #expect(session.core.pacer.isActive)
            session.setRequestInterval(.zero, for: second)
            #expect(!session.core.pacer.isActive)
            let start = ContinuousClock.now
            _ = try await session.get(origin.url("/a"))
            #expect(ContinuousClock.now - start < TestTimeouts.ending)
            #expect(arrivals().count == 2)
        }
    }

    @Test("Cancelled calls do not delay later calls")
    func freedTurns() async throws {
        try await Self.withOrigin { origin, arrivals in
            let interval = Duration.milliseconds(300)
            let session = HTTPSession.own { $0.requestInterval = interval }
            _ = try await session.get(origin.url("/a"))
            session.setRequestInterval(TestTimeouts.long, for: try HTTPURL(origin.base))
            // Its turn comes after the session's interval, and starts the long one.
            _ = try await session.get(origin.url("/b"))
            let cancelled = (0..<200).map { _ in Task { try await session.get(origin.url("/c")) } }
            #expect(await eventually { session.core.pacer.waitingCount == 200 })
            for task in cancelled { task.cancel() }
            for task in cancelled { _ = await task.result }
            #expect(session.core.pacer.waitingCount == 0)
            #expect(arrivals().count == 2)
            let started = MonotonicTime.now()
            let other = HTTPSession.own { $0.requestInterval = interval }
            _ = try await other.get(origin.url("/a"))
            let more = (0..<200).map { _ in Task { try await other.get(origin.url("/b")) } }
            for task in more { task.cancel() }
            for task in more { _ = await task.result }
            _ = try await other.get(origin.url("/c"))
            #expect(arrivals().count >= 4)
            // If the cancelled calls kept their turns, this would take 60 s.
            #expect(MonotonicTime.now().since(started) < .seconds(30))
        }
    }
}
