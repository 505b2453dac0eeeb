import Martlet
import MartletTesting
import MartletTestSupport
import Testing

@testable import MartletCaching
@testable import MartletCore
@testable import MartletStreams

@Suite("Metrics, events and statistics of the cache")
struct CacheAccountTests {
    @Test("The event of a response names its source: the network, the cache, or a validation with 304")
    func eventSource() async throws {
        try await TestOrigin.withOrigin { request in
            request.headers["If-None-Match"] == nil
                ? CacheScene.answer("x", "max-age=600", ["ETag": "\"1\""])
                : OriginResponse(304, headers: ["ETag": "\"1\""])
        } run: { origin async throws in
            let (session, _) = try CacheScene.session()
            let events = session.events
            for mode in [CacheMode.standard, .standard, .revalidate] {
                _ = try await session.get(origin.url(), options: CacheScene.mode(mode))
            }
            await session.finishAndInvalidate()
            let received = await SessionEventTests.all(events).filter {
                if case .responseReceived = $0.kind { true } else { false }
            }
            let sources = received.compactMap { event -> HTTPExchange.Source? in
                if case .responseReceived(_, _, let source) = event.kind { source } else { nil }
            }
            #expect(sources == [.network, .cache, .validatedCache])
            #expect(received.last?.description.hasSuffix("response 200, 1 bytes, source validatedCache") == true)
        }
    }

    @Test("The metrics of a cached response contain no connection and no attempt")
    func metrics() async throws {
        try await TestOrigin.withOrigin { _ in
            CacheScene.answer("x")
        } run: { origin async throws in
            let (session, _) = try CacheScene.session()
            let first = try await session.get(origin.url()).metrics
            #expect(first.connection != nil && first.attempts == 1 && first.receivedBodyByteCount == 1)
            let second = try await session.get(origin.url()).metrics
            #expect(second.connection == nil && second.attempts == 0 && second.receivedBodyByteCount == 0)
            #expect(second.sentByteCount == 0 && second.dns == nil && second.hops.isEmpty)
        }
    }

    @Test("The metrics of a validated response have the connection, the times and the attempts of its validation")
    func validatedMetrics() async throws {
        try await TestOrigin.withOrigin { request in
            if request.path == "/redirect" { return OriginResponse(302, headers: ["Location": "/"]) }
            if request.headers["If-None-Match"] != nil { return OriginResponse(304, headers: ["ETag": "\"1\""]) }
            return CacheScene.answer("x", "no-cache", ["ETag": "\"1\""])
        } run: { origin async throws in
            let (session, _) = try CacheScene.session()
            let first = try await session.get(origin.url("/"))
            #expect(first.storage.provenance?.transfer == nil)
            for (path, attempts) in [("/", 1), ("/redirect", 2)] {
                let exchange = try await session.get(origin.url(path))
                // A program that keeps the exchange keeps nothing of the session.
                #expect(exchange.storage.provenance?.transfer == nil && exchange.cacheStatus != nil)
                #expect(exchange.source == .validatedCache && exchange.text == "x")
                let metrics = exchange.metrics
                #expect(metrics.connection?.remoteAddress == origin.address)
                #expect(metrics.attempts == attempts && metrics.hops.count == attempts - 1)
                #expect(metrics.sentByteCount > 0 && metrics.receivedBodyByteCount == 0 && metrics.send != nil)
                let firstByte = try #require(metrics.firstByte)
                #expect(firstByte > .zero && firstByte <= metrics.total)
            }
        }
    }

    @Test("The progress of a task ends with the whole cached body", arguments: [UInt64(0), 1000, 2_000_000])
    func progress(size: UInt64) async throws {
        let directory = try TemporaryDirectory()
        try await TestOrigin.withOrigin { _ in
            CacheScene.answer("").with { $0.body = .pattern(size) }
        } run: { origin async throws in
            let (session, _) = try CacheScene.session(directory)
            let request = try HTTPRequest(.get, origin)
            for source in [HTTPExchange.Source.network, .cache] {
                let task = await session.task(for: request)
                #expect(try await task.value.source == source)
                var last: TransferProgress?
                for await progress in task.downloadProgress { last = progress }
                #expect(last?.completedByteCount == size && last?.totalByteCount == size)
                #expect(last?.isFinished == true)
            }
        }
    }

    @Test("Delegate and events report the start and end of each call once, whether cached or shared")
    func events() async throws {
        try await CacheScene.withHeldOrigin { _ in
            CacheScene.answer("x")
        } _: { origin, signals async throws in
            let delegate = RecordingDelegate()
            let (session, _) = try CacheScene.session { $0.delegate = delegate }
            let received = Shared<[SessionEvent]>([])
            let events = session.events
            let reader = Task { for await event in events { received.withLock { $0.append(event) } } }
            let url = origin.url()
            let tasks = (0..<3).map { _ in Task { try await session.get(url) } }
            #expect(await eventually { session.core.flights.memberCount == 3 && origin.requests.count == 1 })
            tasks[0].cancel()
            await #expect(throws: CancellationError.self) { try await tasks[0].value }
            signals.raise("go")
            for task in tasks.dropFirst() { _ = try await task.value }
            _ = try await session.get(url)
            func count(_ predicate: (SessionEvent.Kind) -> Bool) -> Int {
                received.withLock { $0.filter { predicate($0.kind) }.count }
            }
            #expect(
                await eventually {
                    count { if case .finished = $0 { true } else { false } } == 3
                })
            #expect(count { if case .started = $0 { true } else { false } } == 4)
            #expect(count { if case .cancelled = $0 { true } else { false } } == 1)
            #expect(count { if case .responseReceived = $0 { true } else { false } } == 3)
            // No event of a call follows its end.
            let all = received.withLock { $0 }
            for number in Set(all.map(\.call)) {
                let kinds = all.filter { $0.call == number }.map(\.kind)
                switch kinds.last {
                case .finished, .cancelled: break
                default: Issue.record("\(String(describing: kinds.last)) came last")
                }
            }
            #expect(delegate.calls.filter { $0.hasPrefix("answered") }.count == 3)
            #expect(delegate.calls.filter { $0 == "cancelled" }.count == 1)
            reader.cancel()
        }
    }

    @Test(
        "The statistics match the requests at the origin for random requests", arguments: [1, 5], [true, false])
    func agreement(lanes: Int, hasDisk: Bool) async throws {
        let directory = try TemporaryDirectory()
        try await TestOrigin.withOrigin { request in
            guard request.method == .get || request.method == .head else { return OriginResponse(204) }
            let language = request.headers["Accept-Language"] ?? ""
            let tag = "\"\(language)\""
            if request.headers["If-None-Match"]?.contains(tag) == true {
                return OriginResponse(304, headers: ["ETag": tag, "Cache-Control": "max-age=0"])
            }
            let fields: OriginFields = ["ETag": tag, "Vary": "Accept-Language"]
            let text = request.path + language
            switch request.path.dropFirst().first {
            case "f": return CacheScene.answer(text, "max-age=600", fields)
            case "v": return CacheScene.answer(text, "max-age=0", fields)
            default: return CacheScene.answer(text, "no-store", fields)
            }
        } run: { origin async throws in
            let (session, cache) = try CacheScene.session(hasDisk ? directory : nil)
            let served = Shared(UInt64(0))
            try await withThrowingTaskGroup(of: Void.self) { group in
                for lane in 0..<lanes {
                    group.addTask {
                        var random = SplitMix64(state: UInt64(lane) * 7919 + 11)
                        for _ in 0..<(500 / lanes) {
                            try await CacheAccountTests.ask(session, origin, &random, served)
                        }
                    }
                }
                try await group.waitForAll()
            }
            let counts = cache.statistics
            let asked = counts.misses + counts.validated + counts.bypasses
            #expect(UInt64(origin.requests.count) == asked + counts.revalidations)
            let answered =
                asked + counts.hits + counts.staleHits + counts.shared + counts.unsatisfiable
                + counts.staleOnErrors
            #expect(answered == 500)
            #expect(counts.bytesServed == served.withLock { $0 })
            #expect(counts.hits > 0 && counts.validated > 0 && counts.bypasses > 0)
        }
    }

    /// Sends a random request and checks its response.
    private static func ask(
        _ session: HTTPSession, _ origin: TestOrigin, _ random: inout SplitMix64,
        _ served: Shared<UInt64>
    ) async throws {
        let path =
            "/" + (["f", "f", "v", "n"].randomElement(using: &random) ?? "f")
            + "\(Int.random(in: 0..<8, using: &random))"
        let language = ["de", "fr"].randomElement(using: &random) ?? "de"
        let headers = CacheScene.fields(("Accept-Language", language))
        let answer: HTTPExchange
        switch Int.random(in: 0..<20, using: &random) {
        case 0: answer = try await session.post(origin.url(path), body: .bytes([1]))
        case 1: answer = try await session.head(origin.url(path), headers: headers)
        case 2:
            answer = try await session.get(
                origin.url(path), headers: headers, options: CacheScene.mode(.onlyIfCached))
        case 3:
            answer = try await session.get(
                origin.url(path), headers: headers, options: CacheScene.mode(.noStore))
        default: answer = try await session.get(origin.url(path), headers: headers)
        }
        if answer.statusCode == 200, !answer.body.isEmpty { #expect(answer.text == path + language) }
        if answer.source != .network { served.withLock { $0 += UInt64(answer.body.count) } }
    }
}
