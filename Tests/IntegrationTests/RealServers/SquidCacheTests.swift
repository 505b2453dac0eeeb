import Foundation
import Martlet
import MartletTesting
import MartletTestSupport
import MartletWire
import Testing

@Suite("Private caches with Squid as a shared cache", .timeLimit(.minutes(20)))
struct SquidCacheTests {
    /// A client with a private cache.
    private func client(_ squid: SquidCache) throws -> HTTPSession {
        SharedCacheScene.client(try .http("127.0.0.1:\(squid.port)"))
    }

    /// Runs `body` with Squid, an origin, and a new URL on it.
    private func run(
        _ respond: @escaping OriginHandler.Respond,
        _ body: (SquidCache, TestOrigin, String) async throws -> Void
    ) async throws {
        try await SquidCache.withServer { squid in
            try await TestOrigin.withOrigin(.plain, respond: respond) { origin in
                try await body(squid, origin, origin.url("/\(UUID().uuidString)"))
            }
        }
    }

    @Test("A response's age in the shared cache counts in the private one", arguments: ["Age", "Date"])
    func age(field: String) async throws {
        let made = HTTPDate(secondsSinceEpoch: Int64(Date().timeIntervalSince1970) - 50_000).text
        let fields: OriginFields = [
            field: field == "Age" ? "50000" : made, "Cache-Control": "max-age=1000000",
        ]
        try await run { _ in
            OriginResponse(200, headers: fields, body: .text("old"))
        } _: { squid, origin, url async throws in
            let (first, second) = (try client(squid), try client(squid))
            _ = try await first.get(url)
            let shared = try await second.get(url)
            #expect(shared.source == .network && shared.text == "old")
            #expect(shared.field("X-Cache") == "HIT from shared")
            let sharedAge = try #require(shared.age)
            #expect(sharedAge >= 50_000)
            for session in [first, second] {
                let stored = try await session.get(url)
                #expect(stored.source == .cache && stored.text == "old")
                let age = try #require(stored.age)
                #expect(age >= 50_000)
                let status = try #require(stored.cacheStatus)
                let left = try #require(status.split(separator: "ttl=").last.flatMap { Int($0) })
                #expect(left <= 950_000 && left > 0)
            }
            let last = try await second.get(url)
            let later = try #require(last.age)
            #expect(later >= sharedAge)
            #expect(origin.requests.count == 1)
        }
    }

    @Test("A stale private response is validated by a fresh one in the shared cache")
    func validatedByShared() async throws {
        try await run(SharedCacheScene.page("max-age=0, s-maxage=1000000")) {
            squid, origin, url async throws in
            for session in [try client(squid), try client(squid)] {
                #expect(try await session.get(url).source == .network)
                for _ in 0..<2 {
                    let again = try await session.get(url)
                    #expect(again.source == .validatedCache && again.text == "version 1")
                    #expect(again.cacheStatus?.contains("fwd=stale; fwd-status=304") == true)
                }
            }
            #expect(origin.requests.count == 1)
        }
    }

    @Test("A response that is stale in both caches is validated by the origin, once for both")
    func validatedByOrigin() async throws {
        try await run(SharedCacheScene.page("max-age=0")) { squid, origin, url async throws in
            let session = try client(squid)
            #expect(try await session.get(url).source == .network)
            let same = try await session.get(url)
            #expect(same.source == .validatedCache && same.text == "version 1")
            #expect(origin.requests.count == 2)
            #expect(origin.requests.last?.headers["If-None-Match"] == "\"1\"")
            _ = try await session.post(url, body: .text("change"))
            let other = try await session.get(url)
            #expect(other.source == .network && other.text == "version 2")
            let validated = try await session.get(url)
            #expect(validated.source == .validatedCache && validated.text == "version 2")
            #expect(origin.requests.count == 5)
        }
    }

    @Test(
        "A POST invalidates the response in both; another client's private one is unchanged until validation")
    func invalidated() async throws {
        try await run(SharedCacheScene.page()) { squid, origin, url async throws in
            let (writer, reader) = (try client(squid), try client(squid))
            for session in [writer, reader] { #expect(try await session.get(url).text == "version 1") }
            #expect(origin.requests.count == 1)
            _ = try await writer.post(url, body: .text("change"))
            let after = try await writer.get(url)
            #expect(after.source == .network && after.text == "version 2")
            #expect(origin.requests.map(\.method) == [.get, .post, .get])
            let unaware = try await reader.get(url)
            #expect(unaware.source == .cache && unaware.text == "version 1")
            let aware = try await reader.get(url, options: .using(.revalidate))
            #expect(aware.source == .network && aware.text == "version 2")
            #expect(try await reader.get(url).source == .cache)
        }
    }

    @Test("A variant of a URL is fetched once for all clients that request it before another")
    func variants() async throws {
        try await run(SharedCacheScene.byLanguage) { squid, origin, url async throws in
            let sessions = [try client(squid), try client(squid)]
            for source in [HTTPExchange.Source.network, .cache] {
                for language in ["de", "en"] {
                    for session in sessions {
                        let answer = try await session.get(url, headers: [.acceptLanguage: language])
                        #expect(answer.text == language && answer.source == source)
                    }
                }
            }
            #expect(origin.requests.count == 2)
        }
    }

    @Test("Private responses are stored only in the private cache, and no-store ones in neither")
    func unshared() async throws {
        for (control, hits) in [("private, max-age=1000000", true), ("no-store", false)] {
            try await run(SharedCacheScene.text("mine", control)) { squid, origin, url async throws in
                for session in [try client(squid), try client(squid)] {
                    let first = try await session.get(url)
                    #expect(first.source == .network && first.field("X-Cache") == "MISS from shared")
                    #expect(try await session.get(url).source == (hits ? .cache : .network))
                }
                #expect(origin.requests.count == (hits ? 2 : 4))
            }
        }
    }

    @Test("A response to one user's credentials is not served to others, unless it is public")
    func credentials() async throws {
        for isPublic in [false, true] {
            let control = isPublic ? "public, max-age=1000000" : SharedCacheScene.lasting
            try await run(SharedCacheScene.byUser(control)) { squid, origin, url async throws in
                try await SharedCacheScene.requestAsUsers(try client(squid), url) {
                    isPublic ? "Bearer wren" : $0
                }
                #expect(origin.requests.count == (isPublic ? 1 : 2))
                let stranger = try await client(squid).get(url)
                #expect(stranger.text == (isPublic ? "Bearer wren" : "nobody"))
            }
        }
    }

    @Test("A no-store request leaves no response in Squid either")
    func noStore() async throws {
        try await run(SharedCacheScene.text("page")) { squid, origin, url async throws in
            try await SharedCacheScene.requestWithoutStoring(
                try client(squid), try client(squid), url, origin,
                .init(
                    field: "X-Cache", missed: "MISS from shared", found: "HIT from shared"))
        }
    }

    @Test("A reload reaches the origin, and its response replaces those in both caches")
    func reloaded() async throws {
        try await run(SharedCacheScene.page()) { squid, origin, url async throws in
            let (first, second) = (try client(squid), try client(squid))
            for session in [first, second] { #expect(try await session.get(url).text == "version 1") }
            #expect(origin.requests.count == 1)
            // Neither cache learns of this change.
            _ = try await HTTPSession.plain { $0.proxy = .none }.post(url, body: .text("change"))
            #expect(try await first.get(url).text == "version 1")
            let reloaded = try await first.get(url, options: .using(.reload))
            #expect(reloaded.source == .network && reloaded.text == "version 2")
            #expect(origin.requests.last?.headers["Cache-Control"]?.contains("no-cache") == true)
            #expect(try await first.get(url).source == .cache)
            let third = try await client(squid).get(url)
            #expect(third.text == "version 2" && third.field("X-Cache") == "HIT from shared")
            #expect(origin.requests.count == 3)
        }
    }

    @Test("A revalidation makes the shared cache validate with the origin, too")
    func revalidated() async throws {
        try await run(SharedCacheScene.page()) { squid, origin, url async throws in
            let session = try client(squid)
            _ = try await session.get(url)
            let validated = try await session.get(url, options: .using(.revalidate))
            #expect(validated.source == .validatedCache && validated.text == "version 1")
            #expect(origin.requests.count == 2)
            let asked = try #require(origin.requests.last?.headers)
            #expect(asked["If-None-Match"] == "\"1\"")
            #expect(asked["Cache-Control"]?.contains("max-age=0") == true)
        }
    }

    @Test("Concurrent requests of several clients for an uncached URL are one request to the origin")
    func collapsed() async throws {
        let gate = Gate()
        try await run(SharedCacheScene.large(after: gate)) { squid, origin, url async throws in
            let sessions = [try client(squid), try client(squid)]
            try await SharedCacheScene.stampede(sessions, url, squid, origin, gate)
            #expect(sessions.allSatisfy { $0.poolStatus.opened == 1 })
        }
    }

    @Test("Squid sees TLS as tunnels: each client has its private cache, and nothing is shared")
    func tunnels() async throws {
        try await TestOrigin.withOrigin(.tls()) { _ in
            OriginResponse(200, headers: ["Cache-Control": "public, max-age=1000000"], body: .text("sealed"))
        } run: { origin in
            try await SquidCache.withServer(tunnellingTo: origin.port) { squid in
                for _ in 0..<2 {
                    let session = try client(squid).with {
                        $0.tls.trust = .only(.text(origin.authorityPEM ?? ""))
                        $0.cache = .memoryOnly(options: .withoutPressure)
                    }
                    #expect(try await session.get(origin.url("/a")).source == .network)
                    #expect(try await session.get(origin.url("/a")).source == .cache)
                }
                #expect(origin.requests.count == 2)
            }
        }
    }
}
