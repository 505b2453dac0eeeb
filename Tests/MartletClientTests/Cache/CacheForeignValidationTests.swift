import Martlet
import MartletTesting
import MartletTestSupport
import Testing

@testable import MartletCaching
@testable import MartletCore
@testable import MartletStreams

@Suite("304 responses with a foreign entity tag")
struct CacheForeignValidationTests {
    /// Responds once with `first`, and then always with a 304 for a different entity tag.
    private static func respond(_ first: OriginResponse) -> @Sendable (OriginRequest) -> OriginResponse {
        let counter = Counter()
        return { _ in
            counter.add()
            return counter.count == 1 ? first : OriginResponse(304, headers: ["ETag": "\"b\""])
        }
    }

    @Test(
        "After a 304 for a different entity tag, the request is repeated without conditions",
        arguments: [true, false])
    func endless(hasDisk: Bool) async throws {
        let directory = try TemporaryDirectory()
        let respond = CacheForeignValidationTests.respond(
            CacheScene.answer("x", "max-age=0", ["ETag": "\"a\""]))
        try await TestOrigin.withOrigin {
            respond($0)
        } run: { origin async throws in
            let (session, cache) = try CacheScene.session(hasDisk ? directory : nil)
            _ = try await session.get(origin.url())
            let answer = try await session.get(origin.url())
            #expect(answer.statusCode == 304 && answer.source == .network && answer.body.isEmpty)
            #expect(
                origin.requests.map { $0.headers["If-None-Match"] != nil } == [false, true, false])
            #expect(cache.statistics.stores == 1)
        }
    }

    @Test("A background validation with such a 304 is repeated once, and then emits an event")
    func unattended() async throws {
        let respond = CacheForeignValidationTests.respond(
            CacheScene.stale("x", CacheScene.staleWhileRevalidate, ["ETag": "\"a\""]))
        try await TestOrigin.withOrigin {
            respond($0)
        } run: { origin async throws in
            let (session, cache) = try CacheScene.session()
            var events = cache.events.makeAsyncIterator()
            _ = try await session.get(origin.url())
            #expect(try await session.get(origin.url()).source == .staleCache)
            let event = await events.next()
            #expect(event == .revalidationFailed(url: origin.url()))
            #expect(await eventually { session.core.runningCount == 0 })
            #expect(origin.requests.count == 3)
        }
    }
}
