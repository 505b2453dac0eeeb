import Foundation
import Martlet
import MartletTesting
import MartletWire
import Testing

@Suite("Private caches with nginx as a shared cache", .timeLimit(.minutes(20)))
struct NginxCacheTests {
    private func client() -> HTTPSession { SharedCacheScene.client(.none) }

    /// Runs `body` with nginx, an origin of that cache, and a URL on it.
    private func run(
        _ respond: @escaping OriginHandler.Respond,
        _ body: (NginxCache, TestOrigin, String) async throws -> Void
    ) async throws {
        try await TestOrigin.withOrigin(.plain, respond: respond) { origin in
            try await NginxCache.withServer(before: origin.port) { nginx in
                try await body(nginx, origin, nginx.url(nginx.port, "/page"))
            }
        }
    }

    @Test("A response's age in the shared cache counts in the private one, by its Date")
    func age() async throws {
        let made = HTTPDate(secondsSinceEpoch: Int64(Date().timeIntervalSince1970) - 50_000).text
        try await run { _ in
            OriginResponse(
                200, headers: ["Date": made, "Cache-Control": "max-age=1000000"], body: .text("old"))
        } _: { _, origin, url async throws in
            let (first, second) = (client(), client())
            #expect(try await first.get(url).field("Cache-Status") == "shared; fwd=uri-miss")
            let shared = try await second.get(url)
            #expect(shared.source == .network && shared.text == "old")
            #expect(shared.field("Cache-Status") == "shared; hit" && shared.field("Date") == made)
            for session in [first, second] {
                let stored = try await session.get(url)
                #expect(stored.source == .cache && stored.text == "old")
                let age = try #require(stored.age)
                #expect(age >= 50_000)
            }
            #expect(origin.requests.count == 1)
        }
    }

    @Test("A stale private response is validated by a fresh one in the shared cache")
    func validatedByShared() async throws {
        try await run(SharedCacheScene.page("max-age=0, s-maxage=1000000")) { _, origin, url async throws in
            for session in [client(), client()] {
                #expect(try await session.get(url).source == .network)
                let again = try await session.get(url)
                #expect(again.source == .validatedCache && again.text == "version 1")
                #expect(again.field("Cache-Status") == "shared; hit")
            }
            #expect(origin.requests.count == 1)
        }
    }

    @Test("A POST invalidates only the private response; a reload replaces both")
    func invalidated() async throws {
        try await run(SharedCacheScene.page()) { _, origin, url async throws in
            let session = client()
            _ = try await session.get(url)
            _ = try await session.post(url, body: .text("change"))
            let shared = try await session.get(url)
            #expect(shared.source == .network && shared.text == "version 1")
            #expect(shared.field("Cache-Status") == "shared; hit")
            let reloaded = try await session.get(url, options: .using(.reload))
            #expect(reloaded.source == .network && reloaded.text == "version 2")
            #expect(reloaded.field("Cache-Status") == "shared; fwd=request")
            #expect(try await session.get(url).source == .cache)
            let other = try await client().get(url)
            #expect(other.text == "version 2" && other.field("Cache-Status") == "shared; hit")
            #expect(origin.requests.map(\.method) == [.get, .post, .get])
        }
    }

    @Test("A no-store request leaves no response in nginx either")
    func noStore() async throws {
        try await run(SharedCacheScene.text("page")) { _, origin, url async throws in
            try await SharedCacheScene.requestWithoutStoring(
                client(), client(), url, origin,
                .init(
                    field: "Cache-Status", missed: "shared; fwd=uri-miss", found: "shared; hit"))
        }
    }

    @Test("A revalidation refreshes the shared response, and gets 304 if it is unchanged")
    func revalidated() async throws {
        try await run(SharedCacheScene.page()) { _, origin, url async throws in
            let session = client()
            _ = try await session.get(url)
            let validated = try await session.get(url, options: .using(.revalidate))
            #expect(validated.source == .validatedCache && validated.text == "version 1")
            #expect(origin.requests.count == 2)
        }
    }

    @Test("Each variant of a URL is fetched once for all clients")
    func variants() async throws {
        try await run(SharedCacheScene.byLanguage) { _, origin, url async throws in
            for session in [client(), client()] {
                for source in [HTTPExchange.Source.network, .cache] {
                    for language in ["de", "en"] {
                        let answer = try await session.get(url, headers: [.acceptLanguage: language])
                        #expect(answer.text == language && answer.source == source)
                    }
                }
            }
            #expect(origin.requests.count == 2)
        }
    }

    @Test("Private responses and those to credentials are stored only in the private cache")
    func unshared() async throws {
        for control in ["private, max-age=1000000", "max-age=1000000"] {
            try await run(SharedCacheScene.byUser(control)) { _, origin, url async throws in
                try await SharedCacheScene.requestAsUsers(client(), url) { $0 }
                #expect(try await client().get(url).text == "nobody")
                #expect(origin.requests.count == 3)
            }
        }
    }

    @Test("Concurrent requests of several clients for an uncached URL are one request to the origin")
    func collapsed() async throws {
        let gate = Gate()
        try await run(SharedCacheScene.large(after: gate)) { nginx, origin, url async throws in
            try await SharedCacheScene.stampede([client(), client()], url, nginx, origin, gate)
        }
    }
}
