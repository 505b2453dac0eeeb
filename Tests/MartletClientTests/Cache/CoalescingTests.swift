import Martlet
import MartletTesting
import MartletTestSupport
import Testing

@testable import MartletCaching
@testable import MartletCore

#if Tracing
    import InMemoryTracing
    import Tracing
#endif

@Suite("Coalescing of equal requests")
struct CoalescingTests {
    @Test("Requests that differ only in fields of tracing are equal")
    func tracingFields() throws {
        let (session, cache) = try CacheScene.session()
        func key(_ value: String, _ traced: Set<String>) throws -> FlightRegistry.Key {
            let call = try Call(
                .get, [.accept: value], url: try HTTPSession.url("http://a/"), body: .none, options: RequestOptions(),
                settings: session.settings)
            let request = call.supplemented { $0.tracingFields = traced }
            return FlightRegistry.Key(request.cacheRequest(), of: request, cache: cache, dialer: session.dialer)
        }
        #expect(try key("a", ["accept"]) == key("b", ["accept"]))
        #expect(try key("a", ["x-trace"]) != key("b", ["x-trace"]))
        #expect(try key("a", []) != key("b", []))
    }

    #if Tracing
        @Test(
            "Traced requests share a transfer, unless the response varies with a field of tracing",
            arguments: [true, false])
        func traced(varies: Bool) async throws {
            try await CacheScene.withHeldOrigin { _ in
                CacheScene.answer("x", "max-age=600", varies ? ["Vary": InMemoryTracer.spanIDKey] : [:])
            } _: { origin, signals async throws in
                let tracer = InMemoryTracer()
                let (session, _) = try CacheScene.session { $0.tracer = tracer }
                let url = origin.url()
                let tasks = (0..<10).map { _ in Task { try await session.get(url).text } }
                #expect(await eventually { session.core.flights.memberCount == 10 })
                signals.raise("go")
                for task in tasks { #expect(try await task.value == "x") }
                #expect(origin.requests.count == (varies ? 10 : 1))
            }
        }
    #endif

    @Test("Cancelling all fifty requests cancels the transfer and closes its connection")
    func allCancelled() async throws {
        try await TestOrigin.withOrigin { _ in
            throw OriginFault(.stall)
        } run: { origin async throws in
            let (session, _) = try CacheScene.session()
            let url = origin.url()
            let tasks = (0..<50).map { _ in Task { try await session.get(url) } }
            #expect(await eventually { session.core.flights.memberCount == 50 && origin.requests.count == 1 })
            for task in tasks { task.cancel() }
            for task in tasks { await #expect(throws: CancellationError.self) { try await task.value } }
            #expect(await eventually { origin.openConnectionCount == 0 })
            #expect(await eventually { session.core.flights.memberCount == 0 })
            #expect(origin.requests.count == 1)
        }
    }

    @Test(
        "Cancelling all readers during the body ends the transfer and stores nothing",
        arguments: [true, false])
    func allCancelledInBody(hasDisk: Bool) async throws {
        let directory = try TemporaryDirectory()
        try await TestOrigin.withOrigin { _ in
            CacheScene.answer("").with {
                $0.body = .pattern(1_000_000)
                $0.fault = OriginFault(.stall, afterBodyBytes: 300_000)
            }
        } run: { origin async throws in
            let (session, cache) = try CacheScene.session(hasDisk ? directory : nil)
            let url = origin.url()
            let tasks = (0..<5).map { _ in Task { try await session.get(url) } }
            #expect(
                await eventually {
                    session.core.flights.heldByteCount > 100_000 || session.core.flights.memberCount == 5
                })
            for task in tasks { task.cancel() }
            for task in tasks { await #expect(throws: CancellationError.self) { try await task.value } }
            #expect(await eventually { origin.openConnectionCount == 0 })
            #expect(cache.statistics.stores == 0 && cache.statistics.memoryEntries == 0)
        }
    }

    @Test("A response that cannot be shared belongs to the first request")
    func firstKeepsItsResponse() async throws {
        for _ in 0..<5 {
            let signals = SignalBox()
            let counter = Counter()
            try await TestOrigin.withOrigin { _ in
                counter.add()
                let number = counter.count
                try await signals.wait(for: "go")
                return OriginResponse(headers: ["Cache-Control": "no-store"], body: .text("\(number)"))
            } run: { origin async throws in
                signals.use(origin)
                let (session, _) = try CacheScene.session()
                let url = origin.url()
                let first = Task { try await session.get(url) }
                #expect(await eventually { origin.requests.count == 1 })
                let others = (0..<8).map { _ in Task { try await session.get(url) } }
                #expect(await eventually { session.core.flights.memberCount == 9 })
                signals.raise("go")
                #expect(try await first.value.text == "1")
                for task in others { #expect(try await task.value.text != "1") }
            }
        }
    }

    @Test("After a response that could not be shared, requests for its URL do not wait for each other")
    func notCoalescedForAWhile() async throws {
        let signals = SignalBox()
        let counter = Counter()
        try await TestOrigin.withOrigin { _ in
            counter.add()
            if counter.count > 1 { try await signals.wait(for: "go") }
            return OriginResponse(headers: ["Cache-Control": "no-store"], body: .text("x"))
        } run: { origin async throws in
            signals.use(origin)
            let (session, _) = try CacheScene.session()
            let url = origin.url()
            _ = try await session.get(url)
            let tasks = (0..<3).map { _ in Task { try await session.get(url) } }
            // All three requests are at the origin before any of them has a response.
            #expect(await eventually { origin.requests.count == 4 })
            signals.raise("go")
            for task in tasks { #expect(try await task.value.text == "x") }
        }
    }

    @Test(
        "A response that must not be stored is not shared: each waiting request is sent itself",
        arguments: [200, 500])
    func uncacheable(status: Int) async throws {
        let signals = SignalBox()
        let counter = Counter()
        try await TestOrigin.withOrigin { _ in
            counter.add()
            let number = counter.count
            try await signals.wait(for: "go")
            return OriginResponse(
                status, headers: ["Cache-Control": "no-store"],
                body: .text(String(repeating: "\(number % 10)", count: 5000)))
        } run: { origin async throws in
            signals.use(origin)
            let (session, cache) = try CacheScene.session()
            let url = origin.url()
            let tasks = (0..<10).map { _ in Task { try await session.get(url) } }
            #expect(await eventually { session.core.flights.memberCount == 10 && origin.requests.count == 1 })
            signals.raise("go")
            for task in tasks {
                let answer = try await task.value
                #expect(answer.statusCode == status && answer.source == .network && answer.body.count == 5000)
                #expect(Set(answer.body).count == 1)
            }
            #expect(origin.requests.count == 10 && cache.statistics.memoryEntries == 0)
            #expect(cache.statistics.misses == 10 && cache.statistics.shared == 0)
        }
    }

    @Test("Concurrent requests with different Vary fields do not share a response")
    func differingFields() async throws {
        try await CacheScene.withHeldOrigin { request in
            CacheScene.answer(
                request.headers["Accept-Language"] ?? "-", "max-age=600", ["Vary": "Accept-Language"])
        } _: { origin, signals async throws in
            let (session, _) = try CacheScene.session()
            let url = origin.url()
            let tasks = (0..<8).map { number in
                Task {
                    try await session.get(
                        url, headers: CacheScene.fields(("Accept-Language", number % 2 == 0 ? "de" : "fr")))
                }
            }
            #expect(await eventually { session.core.flights.memberCount == 8 && origin.requests.count == 2 })
            signals.raise("go")
            for (number, task) in tasks.enumerated() {
                #expect(try await task.value.text == (number % 2 == 0 ? "de" : "fr"))
            }
            #expect(origin.requests.count == 2)
        }
    }

    @Test("A request with different timeouts, bandwidth or priority has its own transfer")
    func ownPace() async throws {
        try await CacheScene.withHeldOrigin({ _ in CacheScene.answer("x") }) { origin, signals async throws in
            let (session, _) = try CacheScene.session()
            let url = origin.url()
            var held = RequestOptions()
            held.bandwidth = BandwidthLimit(download: .bytesPerSecond(1_000_000))
            // The first three share a transfer: the total timeout applies to each call anyway.
            let options = [
                RequestOptions(), RequestOptions(), RequestOptions(timeouts: .patient(total: TestTimeouts.long)),
                RequestOptions(timeouts: .patient(idle: nil)), held, RequestOptions(priority: .high),
            ]
            let tasks = options.map { options in Task { try await session.get(url, options: options).text } }
            #expect(await eventually { session.core.flights.memberCount == 6 })
            try await origin.waitForRequests(count: 4)
            signals.raise("go")
            for task in tasks { #expect(try await task.value == "x") }
            #expect(origin.requests.count == 4)
        }
    }

    @Test("The total timeout of the first request does not end the transfer of the others")
    func leaderTimesOut() async throws {
        var total = Duration.seconds(1)
        while try await !leaderTimesOut(after: total) {
            total *= 4
            try #require(total < TestTimeouts.ending, "no call joined in time")
        }
    }

    /// - Returns: Whether the other request joined before the total timeout of the first expired.
    private func leaderTimesOut(after total: Duration) async throws -> Bool {
        let signals = SignalBox()
        return try await TestOrigin.withOrigin { _ in
            try await signals.wait(for: "go")
            return CacheScene.answer("late")
        } run: { origin async throws in
            signals.use(origin)
            let (session, _) = try CacheScene.session()
            let url = origin.url()
            let isOver = Shared(false)
            let leader = Task {
                defer { isOver.withLock { $0 = true } }
                return try await session.get(url, options: RequestOptions(timeouts: .patient(total: total)))
            }
            _ = await eventually { session.core.flights.memberCount == 1 || isOver.withLock { $0 } }
            let other = Task { try await session.get(url) }
            _ = await eventually { session.core.flights.memberCount == 2 || isOver.withLock { $0 } }
            let hasJoined = session.core.flights.memberCount == 2
            let error = await #expect(throws: HTTPError.self) { try await leader.value }
            #expect(error?.code == .timedOut && error?.timeout == .total)
            #expect(error?.message.contains(", after ") == true, "\(error as Any)")
            signals.raise("go")
            #expect(try await other.value.text == "late")
            if hasJoined { #expect(origin.requests.count == 1) }
            return hasJoined
        }
    }

    @Test("The error of a total timeout after a retry counts the attempts, with a cache too")
    func totalAfterRetry() async throws {
        try await withEnoughTime(from: .seconds(1)) { total in
            try await TestOrigin.withOrigin(
                handler: .inTurn([.status(503), .fault(OriginFault(.stall))])
            ) { origin async throws in
                let (session, _) = try CacheScene.session { $0.retry = .transient(backoff: .constant(.zero)) }
                let error = try #require(
                    await #expect(throws: HTTPError.self) { try await session.get(origin.url("/a"), timeout: total) })
                #expect(error.timeout == .total)
                guard error.attempts > 1 else { return false }
                #expect(error.attempts == 2)
                #expect(error.message.contains(", after "), "\(error)")
                #expect(error.description.hasSuffix(" (2 attempts)"), "\(error)")
                return true
            }
        }
    }

    @Test("The total timeout applies to the body of a response that is not stored")
    func totalOfUncacheable() async throws {
        try await TestOrigin.withOrigin { _ in
            CacheScene.answer("", "no-store").with {
                $0.body = .pattern(1_000_000)
                $0.fault = OriginFault(.stall, afterBodyBytes: 100_000)
            }
        } run: { origin async throws in
            let (session, _) = try CacheScene.session()
            let error = await #expect(throws: HTTPError.self) {
                try await session.get(
                    origin.url(), options: RequestOptions(timeouts: .patient(total: .seconds(1))))
            }
            #expect(error?.code == .timedOut && error?.timeout == .total)
        }
    }

    @Test("The body limit of one reader does not affect the others", arguments: [true, false])
    func bodyLimit(hasDisk: Bool) async throws {
        let directory = try TemporaryDirectory()
        let signals = SignalBox()
        try await TestOrigin.withOrigin { _ in
            try await signals.wait(for: "go")
            return CacheScene.answer("").with { $0.body = .pattern(500_000) }
        } run: { origin async throws in
            signals.use(origin)
            let (session, _) = try CacheScene.session(hasDisk ? directory : nil)
            let url = origin.url()
            let small = Task { try await session.get(url, options: RequestOptions(bodyLimit: .bytes(1000))) }
            let whole = (0..<3).map { _ in Task { try await session.get(url) } }
            #expect(await eventually { session.core.flights.memberCount == 4 && origin.requests.count == 1 })
            signals.raise("go")
            let error = await #expect(throws: HTTPError.self) { try await small.value }
            #expect(error?.code == .bodyTooLarge)
            for task in whole {
                let body = try await task.value.body
                #expect(body.count == 500_000 && TestPattern.firstMismatch(in: body, at: 0) == nil)
            }
            #expect(origin.requests.count == 1)
        }
    }

    @Test("Pausing one reader does not delay the others", arguments: [true, false])
    func pause(hasDisk: Bool) async throws {
        let directory = try TemporaryDirectory()
        let signals = SignalBox()
        try await TestOrigin.withOrigin { _ in
            CacheScene.answer("").with {
                $0.body = .stream(length: 3_000_000) { writer in
                    try await writer.write(TestPattern.bytes(from: 0, count: 1000))
                    try await signals.wait(for: "go")
                    try await writer.write(TestPattern.bytes(from: 1000, count: 2_999_000))
                }
            }
        } run: { origin async throws in
            signals.use(origin)
            let (session, _) = try CacheScene.session(hasDisk ? directory : nil)
            let request = try HTTPRequest(.get, origin)
            let paused = await session.task(for: request)
            _ = try await paused.response
            await paused.pause()
            let url = origin.url()
            let other = Task { try await session.get(url) }
            #expect(await eventually { session.core.flights.memberCount == 2 })
            signals.raise("go")
            let body = try await other.value.body
            #expect(body.count == 3_000_000 && TestPattern.firstMismatch(in: body, at: 0) == nil)
            #expect(await paused.state == .paused)
            await paused.resume()
            #expect(try await paused.value.body == body)
            #expect(origin.requests.count == 1)
        }
    }
}
