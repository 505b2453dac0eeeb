@testable import MartletContent
import Martlet
import MartletTesting
import MartletTestSupport
import Testing

@testable import MartletCaching
@testable import MartletCore
@testable import MartletHosts

@Suite("Response cache")
struct ResponseCacheTests {
    @Test("The statistics count each request once")
    func statistics() {
        let cache = ResponseCache.memoryOnly()
        let figures: [WritableKeyPath<ResponseCache.Statistics, UInt64>] = [
            \.hits, \.hits, \.staleHits, \.validated, \.misses, \.staleOnErrors, \.bypasses, \.shared,
            \.unsatisfiable, \.stores, \.revalidations,
        ]
        for figure in figures { cache.count(figure) }
        cache.count {
            $0.bytesStored += 10
            $0.bytesServed += 7
            $0.removals += 3
        }
        let statistics = cache.statistics
        #expect(
            statistics.hits == 2 && statistics.staleHits == 1 && statistics.validated == 1
                && statistics.misses == 1)
        #expect(
            statistics.staleOnErrors == 1 && statistics.bypasses == 1 && statistics.shared == 1
                && statistics.unsatisfiable == 1)
        #expect(statistics.stores == 1 && statistics.bytesStored == 10 && statistics.bytesServed == 7)
        #expect(statistics.removals == 3 && statistics.revalidations == 1)
    }

    /// Makes a session with a cache in memory, or in the given directory with memory in front of it.
    static func session(
        _ directory: TemporaryDirectory? = nil, _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> HTTPSession {
        try CacheScene.session(directory, change).0
    }

    static func fresh(_ text: String, _ fields: OriginFields = ["Cache-Control": "max-age=600"])
        -> OriginResponse
    {
        OriginResponse(200, headers: fields, body: .text(text))
    }

    @Test(
        "A fresh response is served from memory, and from disk by another session", arguments: [true, false])
    func hit(hasDisk: Bool) async throws {
        let directory = try TemporaryDirectory()
        try await TestOrigin.withOrigin { _ in
            ResponseCacheTests.fresh("stored")
        } run: { origin async throws in
            let session = try ResponseCacheTests.session(hasDisk ? directory : nil)
            let first = try await session.get(origin.url("/a"))
            #expect(first.text == "stored" && first.source == .network)
            let second = try await session.get(origin.url("/a"))
            #expect(second.text == "stored" && second.source == .cache)
            #expect(second.response.headerFields[.age] != nil)
            #expect(second.cacheStatus?.hasPrefix("martlet; hit; ttl=") == true)
            #expect(origin.requests.count == 1)
            guard hasDisk else { return }
            let other = try ResponseCacheTests.session(directory)
            #expect(try await other.get(origin.url("/a")).source == .cache)
            #expect(origin.requests.count == 1)
        }
    }

    @Test("A stale response is validated, and a 304 updates its fields")
    func validated() async throws {
        try await TestOrigin.withOrigin { request in
            if request.headers["If-None-Match"] == "\"1\"" {
                return OriginResponse(
                    304, headers: ["ETag": "\"1\"", "Cache-Control": "max-age=0", "X-Turn": "2"])
            }
            return ResponseCacheTests.fresh(
                "body", ["ETag": "\"1\"", "Cache-Control": "max-age=0", "X-Turn": "1"])
        } run: { origin async throws in
            let session = try ResponseCacheTests.session()
            #expect(try await session.get(origin.url()).source == .network)
            let second = try await session.get(origin.url())
            #expect(second.source == .validatedCache && second.text == "body" && second.statusCode == 200)
            #expect(second.response.headerFields[HTTPField.Name("X-Turn") ?? .age] == "2")
            #expect(origin.requests.count == 2)
        }
    }

    @Test(
        "Fifty concurrent requests for an uncached URL make one request and get the same body",
        arguments: [true, false])
    func coalesced(hasDisk: Bool) async throws {
        let directory = try TemporaryDirectory()
        try await TestOrigin.withOrigin { _ in
            ResponseCacheTests.fresh(String(repeating: "0123456789", count: 20_000))
        } run: { origin async throws in
            let session = try ResponseCacheTests.session(hasDisk ? directory : nil)
            try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<50 { group.addTask { try await session.get(origin.url()).body.count } }
                for try await count in group { #expect(count == 200_000) }
            }
            #expect(origin.requests.count == 1)
        }
    }

    @Test(
        "The last of 50 waiting requests gets the response after 49 are cancelled"
    )
    func cancelledWaiters() async throws {
        try await CacheScene.withHeldOrigin { _ in
            ResponseCacheTests.fresh("late")
        } _: { origin, signals async throws in
            let session = try ResponseCacheTests.session()
            let url = origin.url()
            let tasks = (0..<50).map { _ in Task { try await session.get(url) } }
            #expect(await eventually { session.core.flights.memberCount == 50 && origin.requests.count == 1 })
            for task in tasks.dropLast() { task.cancel() }
            for task in tasks.dropLast() {
                await #expect(throws: CancellationError.self) { try await task.value }
            }
            signals.raise("go")
            #expect(try await tasks[49].value.text == "late")
            #expect(origin.requests.count == 1)
        }
    }

    @Test("A successful unsafe request invalidates the stored response")
    func invalidated() async throws {
        try await TestOrigin.withOrigin { request in
            request.method == .get ? ResponseCacheTests.fresh("\(request.number)") : OriginResponse(204)
        } run: { origin async throws in
            let session = try ResponseCacheTests.session()
            let before = try await session.get(origin.url("/x")).text
            #expect(try await session.get(origin.url("/x")).text == before)
            _ = try await session.post(origin.url("/x"), body: .bytes([1]))
            let after = try await session.get(origin.url("/x"))
            #expect(after.source == .network && after.text != before)
        }
    }
}

@Suite("Values decoded from stored bodies")
struct StoredValueTests {
    @Test("A value is decoded once per stored body and evicted when the body is invalidated")
    func decodedOnce() async throws {
        let decodings = Counter()
        try await TestOrigin.withOrigin { request in
            request.method == .get ? ResponseCacheTests.fresh("a picture") : OriginResponse(204)
        } run: { origin async throws in
            let session = try ResponseCacheTests.session()
            let values = try DecodedCache<Int>(session: session, memoryPressure: nil, cost: { _ in 1 }) {
                exchange in
                decodings.add()
                return exchange.body.count
            }
            for _ in 0..<3 { #expect(try await values.value(for: origin.url("/p")) == 9) }
            #expect(decodings.count == 1 && values.count == 1 && origin.requests.count == 1)
            _ = try await session.post(origin.url("/p"), body: .bytes([1]))
            #expect(values.count == 0)
            #expect(try await values.value(for: origin.url("/p")) == 9)
            #expect(decodings.count == 2)
        }
    }

    @Test("Equal requests for a value share one request, and cancelling one does not affect the others")
    func merged() async throws {
        try await CacheScene.withHeldOrigin { _ in
            ResponseCacheTests.fresh("a picture")
        } _: { origin, signals async throws in
            let session = try ResponseCacheTests.session()
            let values = try DecodedCache<Int>(session: session, memoryPressure: nil, cost: { _ in 1 }) {
                $0.body.count
            }
            let url = origin.url("/p")
            let tasks = (0..<10).map { _ in Task { try await values.value(for: url) } }
            #expect(await eventually { values.waiterCount == 10 && origin.requests.count == 1 })
            tasks[0].cancel()
            await #expect(throws: CancellationError.self) { try await tasks[0].value }
            signals.raise("go")
            for task in tasks.dropFirst() { #expect(try await task.value == 9) }
            #expect(origin.requests.count == 1)
        }
    }
}
