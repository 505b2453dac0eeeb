import Martlet
import MartletTesting
import MartletTestSupport
import Synchronization
import Testing

@testable import MartletCaching
@testable import MartletCore
@testable import MartletStreams

@Suite("Stale responses")
struct CacheStaleTests {
    /// Collects the events of a cache.
    private final class Events: Sendable {
        private let received = Mutex<[CacheEvent]>([])
        private let task = Mutex<Task<Void, Never>?>(nil)

        init(_ cache: ResponseCache) {
            let events = cache.events
            let reader = Task { [weak self] in for await event in events { self?.add(event) } }
            task.withLock { $0 = reader }
        }

        deinit { task.withLock { $0 }?.cancel() }

        private func add(_ event: CacheEvent) { received.withLock { $0.append(event) } }

        var all: [CacheEvent] { received.withLock { $0 } }
    }

    @Test("A background validation ends if its response is endless and cannot be stored")
    func endlessRevalidation() async throws {
        let counter = Counter()
        try await TestOrigin.withOrigin { _ in
            counter.add()
            guard counter.count > 1 else { return CacheScene.stale("old", CacheScene.staleWhileRevalidate) }
            return CacheScene.answer("").with {
                $0.body = .stream(length: nil) { writer in
                    while true { try await writer.write(TestPattern.bytes(from: 0, count: 10_000)) }
                }
            }
        } run: { origin async throws in
            let (session, cache) = try CacheScene.session(memory: .bytes(80_000))
            _ = try await session.get(origin.url())
            #expect(try await session.get(origin.url()).source == .staleCache)
            #expect(await eventually { counter.count == 2 && session.diagnostics.isIdle })
            #expect(session.core.flights.all.isEmpty && cache.statistics.memoryEntries == 0)
        }
    }

    @Test("A validation response is closed when its only member leaves without accepting it")
    func leftOffer() async throws {
        let signals = SignalBox()
        let counter = Counter()
        try await TestOrigin.withOrigin { _ in
            counter.add()
            guard counter.count > 1 else { return CacheScene.stale("old", CacheScene.staleWhileRevalidate) }
            try await signals.wait(for: "go")
            return OriginResponse.pattern(3_000_000).with { $0.headers["Cache-Control"] = "no-store" }
        } run: { origin async throws in
            signals.use(origin)
            let (session, _) = try CacheScene.session()
            _ = try await session.get(origin.url())
            _ = try await session.get(origin.url())
            #expect(await eventually { session.core.flights.all.count == 1 })
            let flight = try #require(session.core.flights.all.first)
            let member = try #require(flight.join())
            signals.raise("go")
            #expect(await eventually { session.core.flights.all.isEmpty })
            member.leave()
            #expect(await eventually { session.diagnostics.isIdle })
            withExtendedLifetime(member) {}
        }
    }

    @Test(
        "With stale-while-revalidate, requests get the stale body until the one validation ends",
        arguments: [true, false])
    func whileRevalidating(hasDisk: Bool) async throws {
        let directory = try TemporaryDirectory()
        let signals = SignalBox()
        let counter = Counter()
        try await TestOrigin.withOrigin { _ in
            counter.add()
            guard counter.count > 1 else { return CacheScene.stale("old", CacheScene.staleWhileRevalidate) }
            try await signals.wait(for: "go")
            return CacheScene.answer("new")
        } run: { origin async throws in
            signals.use(origin)
            let (session, cache) = try CacheScene.session(hasDisk ? directory : nil)
            let url = origin.url()
            _ = try await session.get(url)
            // The validation cannot end before all of these requests have their responses.
            for _ in 0..<5 { #expect(try await session.get(url).source == .staleCache) }
            try await withThrowingTaskGroup(of: HTTPExchange.self) { group in
                for _ in 0..<15 { group.addTask { try await session.get(url) } }
                for try await answer in group {
                    #expect(answer.source == .staleCache && answer.text == "old")
                }
            }
            try await origin.waitForRequests(count: 2)
            #expect(origin.requests.count == 2 && cache.statistics.revalidations == 1)
            #expect(cache.statistics.staleHits == 20)
            signals.raise("go")
            #expect(await eventually { cache.statistics.stores == 2 && session.core.runningCount == 0 })
            let fresh = try await session.get(url)
            #expect(fresh.source == .cache && fresh.text == "new" && origin.requests.count == 2)
        }
    }

    /// Gives each request a number of its own.
    private struct Numbering: HTTPMiddleware {
        let counter = Counter()

        func handle(
            _ request: HTTPCall.Request, context: CallContext, next: HTTPNext
        ) async throws -> HTTPCall.Response {
            var request = request
            request.headers["X-Request-ID"] = "\(counter.next())"
            return try await next(request)
        }
    }

    @Test("A stale response is validated once at a time, also for requests that differ and in two sessions")
    func oneValidation() async throws {
        let signals = SignalBox()
        let counter = Counter()
        try await TestOrigin.withOrigin { _ in
            guard counter.next() > 1 else { return CacheScene.stale("old", CacheScene.staleWhileRevalidate) }
            try await signals.wait(for: "go")
            return OriginResponse(500)
        } run: { origin async throws in
            signals.use(origin)
            let (session, cache) = try CacheScene.session { $0.middleware = [Numbering()] }
            let other = HTTPSession.own { $0.cache = cache }
            let url = origin.url()
            _ = try await session.get(url)
            for _ in 0..<5 {
                #expect(try await session.get(url).source == .staleCache)
                #expect(try await other.get(url).source == .staleCache)
            }
            #expect(cache.statistics.revalidations == 1)
            signals.raise("go")
            #expect(await eventually { session.core.runningCount == 0 })
            #expect(origin.requests.count == 2)
            // After the end of the validation, which failed, the next request starts another one.
            #expect(try await other.get(url).source == .staleCache)
            #expect(await eventually { other.core.runningCount == 0 })
            #expect(cache.statistics.revalidations == 2 && origin.requests.count == 3)
        }
    }

    @Test("A failed background validation only emits an event", arguments: [true, false])
    func failedRevalidation(hasAnswer: Bool) async throws {
        let counter = Counter()
        try await TestOrigin.withOrigin { _ in
            counter.add()
            guard counter.count > 1 else { return CacheScene.stale("old", CacheScene.staleWhileRevalidate) }
            if hasAnswer { return OriginResponse(500) }
            throw OriginFault(.close)
        } run: { origin async throws in
            let (session, cache) = try CacheScene.session()
            let events = Events(cache)
            _ = try await session.get(origin.url())
            #expect(try await session.get(origin.url()).source == .staleCache)
            #expect(await eventually { !events.all.isEmpty && session.core.runningCount == 0 })
            #expect(events.all == [.revalidationFailed(url: origin.url())])
            #expect(cache.statistics.staleOnErrors == 0)
            // The stale response is still served within its limit.
            #expect(try await session.get(origin.url()).text == "old")
        }
    }

    @Test("A background validation ends with its session")
    func endsWithSession() async throws {
        let counter = Counter()
        try await TestOrigin.withOrigin { _ in
            counter.add()
            guard counter.count > 1 else { return CacheScene.stale("old", CacheScene.staleWhileRevalidate) }
            throw OriginFault(.stall)
        } run: { origin async throws in
            let (session, _) = try CacheScene.session()
            _ = try await session.get(origin.url())
            #expect(try await session.get(origin.url()).source == .staleCache)
            try await origin.waitForRequests(count: 2)
            await session.invalidateAndCancel()
            #expect(session.core.runningCount == 0)
            #expect(await eventually { origin.openConnectionCount == 0 })
        }
    }

    @Test(
        "With stale-if-error, a stale response replaces a server error, and one event is emitted",
        arguments: [500, 502, 503, 504])
    func ifError(status: Int) async throws {
        let counter = Counter()
        try await TestOrigin.withOrigin { _ in
            counter.add()
            return counter.count == 1
                ? CacheScene.stale("old", CacheScene.staleIfError) : OriginResponse(status)
        } run: { origin async throws in
            let (session, cache) = try CacheScene.session()
            let events = Events(cache)
            _ = try await session.get(origin.url())
            let answer = try await session.get(origin.url())
            #expect(answer.source == .staleCache && answer.text == "old" && answer.statusCode == 200)
            #expect(cache.statistics.staleOnErrors == 1 && cache.statistics.misses == 1)
            #expect(await eventually { !events.all.isEmpty })
            #expect(events.all == [.staleOnError(url: origin.url(), status: status)])
        }
    }

    @Test("With stale-if-error, a stale response replaces a connection failure", arguments: [true, false])
    func ifNoAnswer(hasDisk: Bool) async throws {
        let directory = try TemporaryDirectory()
        let counter = Counter()
        try await TestOrigin.withOrigin { _ in
            counter.add()
            guard counter.count > 1 else { return CacheScene.stale("old", CacheScene.staleIfError) }
            throw OriginFault(.reset)
        } run: { origin async throws in
            let (session, cache) = try CacheScene.session(
                hasDisk ? directory : nil, memory: hasDisk ? .bytes(0) : .mebibytes(1))
            _ = try await session.get(origin.url())
            let answer = try await session.get(origin.url())
            #expect(answer.source == .staleCache && answer.text == "old")
            #expect(cache.statistics.staleOnErrors == 1)
            // No `fwd-status`, because the origin sent no response.
            let status = try #require(answer.cacheStatus)
            #expect(
                status.hasPrefix("martlet; fwd=stale; ttl=") && status.hasSuffix("detail=\"stale-if-error\""))
        }
    }

    @Test("Must-revalidate overrides stale-if-error")
    func mustRevalidate() async throws {
        let counter = Counter()
        try await TestOrigin.withOrigin { _ in
            counter.add()
            return counter.count == 1
                ? CacheScene.stale("old", "max-age=60, stale-if-error=600, must-revalidate")
                : OriginResponse(503)
        } run: { origin async throws in
            let (session, _) = try CacheScene.session()
            _ = try await session.get(origin.url())
            #expect(try await session.get(origin.url()).statusCode == 503)
        }
    }

    @Test(
        "The cache's staleIfError option applies to responses without the directive, and is off by default",
        arguments: [true, false])
    func policy(allows: Bool) async throws {
        let counter = Counter()
        try await TestOrigin.withOrigin { _ in
            counter.add()
            return counter.count == 1 ? CacheScene.stale("old", "max-age=60") : OriginResponse(503)
        } run: { origin async throws in
            var options = ResponseCache.Options.withoutPressure
            if allows { options.staleIfError = .seconds(3600) }
            let (session, _) = try CacheScene.session(options: options)
            _ = try await session.get(origin.url())
            #expect(try await session.get(origin.url()).statusCode == (allows ? 200 : 503))
        }
    }

    @Test("Retries come before stale-if-error, and the result is counted once", arguments: [true, false])
    func retriesFirst(recovers: Bool) async throws {
        let counter = Counter()
        try await TestOrigin.withOrigin { _ in
            counter.add()
            if counter.count == 1 { return CacheScene.stale("old", CacheScene.staleIfError) }
            return recovers && counter.count == 3 ? CacheScene.answer("new") : OriginResponse(503)
        } run: { origin async throws in
            let (session, cache) = try CacheScene.session {
                $0.retry = .transient(maximumAttempts: 3, backoff: .constant(.zero), budget: nil)
            }
            _ = try await session.get(origin.url())
            let answer = try await session.get(origin.url())
            #expect(answer.text == (recovers ? "new" : "old"))
            #expect(answer.source == (recovers ? .network : .staleCache))
            #expect(origin.requests.count == (recovers ? 3 : 4))
            #expect(cache.statistics.staleOnErrors == (recovers ? 0 : 1))
        }
    }

    @Test(
        "A stale response replaces a server error whose Retry-After is longer than the total timeout",
        arguments: [503, 429])
    func retryTooLate(status: Int) async throws {
        let counter = Counter()
        try await TestOrigin.withOrigin { _ in
            counter.next() == 1
                ? CacheScene.stale("old", CacheScene.staleIfError)
                : OriginResponse(status, headers: ["Retry-After": "86400"])
        } run: { origin async throws in
            let (session, cache) = try CacheScene.session {
                $0.retry = .transient(budget: nil)
                $0.retry.maximumRetryAfter = .seconds(86_400)
                $0.timeouts.total = TestTimeouts.long
            }
            _ = try await session.get(origin.url())
            if status == 503 {
                let answer = try await session.get(origin.url())
                #expect(answer.source == .staleCache && answer.text == "old")
            } else {
                // Only server errors are replaced.
                let error = await #expect(throws: HTTPError.self) { try await session.get(origin.url()) }
                #expect(error?.code == .timedOut && error?.exchange?.statusCode == 429)
            }
            #expect(origin.requests.count == 2)
            #expect(cache.statistics.staleOnErrors == (status == 503 ? 1 : 0))
            #expect(await eventually { session.diagnostics.isIdle })
        }
    }
}
