import Foundation
import Martlet
import MartletTesting
import MartletWire
import Testing

@Suite("Private caches behind nginx as a shared one", .timeLimit(.minutes(20)))
struct NginxCacheTests {
    /// A client with a cache of its own.
    private func client() -> HTTPSession {
        .plain {
            $0.proxy = .none
            $0.cache = .memoryOnly(options: .withoutPressure)
        }
    }

    /// Runs `body` with an origin, nginx before it, and a URL there.
    private func run(
        _ respond: @escaping OriginHandler.Respond, _ body: (TestOrigin, String) async throws -> Void
    ) async throws {
        try await TestOrigin.withOrigin(.plain, respond: respond) { origin in
            try await NginxCache.withServer(before: origin.port) { nginx in
                try await body(origin, nginx.url(nginx.port, "/page"))
            }
        }
    }

    @Test("A response's age in the shared cache counts in the private one, by its Date")
    func age() async throws {
        let made = HTTPDate(secondsSinceEpoch: Int64(Date().timeIntervalSince1970) - 50_000).text
        try await run { _ in
            OriginResponse(
                200, fields: ["Date": made, "Cache-Control": "max-age=1000000"], body: .text("old"))
        } _: { origin, url in
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

    @Test("What is stale in private and fresh in the shared cache is validated there")
    func validatedByShared() async throws {
        let page = VersionedPage()
        try await run { request in
            page.answer(request, ["Cache-Control": "max-age=0, s-maxage=1000000"])
        } _: { origin, url in
            for session in [client(), client()] {
                #expect(try await session.get(url).source == .network)
                let again = try await session.get(url)
                #expect(again.source == .validatedCache && again.text == "version 1")
                #expect(again.field("Cache-Status") == "shared; hit")
            }
            #expect(origin.requests.count == 1)
        }
    }

    @Test("A POST invalidates the private response alone; a reload replaces both")
    func invalidated() async throws {
        let page = VersionedPage()
        try await run { request in
            page.answer(request, ["Cache-Control": "max-age=1000000"])
        } _: { origin, url in
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
            #expect(origin.requests.map(\.method) == ["GET", "POST", "GET"])
        }
    }

    @Test("What is to leave no trace leaves none in nginx either")
    func noStore() async throws {
        try await run { _ in
            OriginResponse(200, fields: ["Cache-Control": "max-age=1000000"], body: .text("page"))
        } _: { origin, url in
            let session = client()
            for _ in 0..<2 {
                let answer = try await session.get(url, options: .using(.noStore))
                #expect(answer.text == "page" && answer.field("Cache-Status") == "shared; fwd=uri-miss")
                #expect(origin.requests.last?.fields["Cache-Control"]?.contains("no-store") == true)
            }
            #expect(try await session.get(url).field("Cache-Status") == "shared; fwd=uri-miss")
            // What others have left may answer.
            let found = try await session.get(url, options: .using(.noStore))
            #expect(found.source == .network && found.field("Cache-Status") == "shared; hit")
            #expect(origin.requests.count == 3)
        }
    }

    @Test("A revalidation fetches the shared response anew, and is answered 304 where it is the same")
    func revalidated() async throws {
        let page = VersionedPage()
        try await run { request in
            page.answer(request, ["Cache-Control": "max-age=1000000"])
        } _: { origin, url in
            let session = client()
            _ = try await session.get(url)
            let validated = try await session.get(url, options: .using(.revalidate))
            #expect(validated.source == .validatedCache && validated.text == "version 1")
            #expect(origin.requests.count == 2)
        }
    }

    @Test("Each variant of a URL is fetched once for all clients")
    func variants() async throws {
        try await run { request in
            let language = request.fields["Accept-Language"] ?? "none"
            return OriginResponse(
                200,
                fields: [
                    "Cache-Control": "max-age=1000000", "Vary": "Accept-Language", "ETag": "\"\(language)\"",
                ], body: .text(language))
        } _: { origin, url in
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

    @Test("What is private is stored in private alone, and so is what credentials brought")
    func unshared() async throws {
        for control in ["private, max-age=1000000", "max-age=1000000"] {
            try await run { request in
                OriginResponse(
                    200, fields: ["Cache-Control": control],
                    body: .text(request.fields["Authorization"] ?? "nobody"))
            } _: { origin, url in
                let session = client()
                for source in [HTTPExchange.Source.network, .cache] {
                    for user in ["Bearer wren", "Bearer robin"] {
                        let answer = try await session.get(url, headers: [.authorization: user])
                        #expect(answer.text == user && answer.source == source)
                    }
                }
                #expect(try await client().get(url).text == "nobody")
                #expect(origin.requests.count == 3)
            }
        }
    }

    @Test("Many requests of several clients for a cold URL are one to the origin")
    func collapsed() async throws {
        let gate = Gate()
        try await run { _ in
            await gate.pass()
            return OriginResponse(
                200, fields: ["Cache-Control": "max-age=1000000"],
                body: .text(String(repeating: "0123456789", count: 20_000)))
        } _: { origin, url in
            defer { gate.open() }
            let sessions = [client(), client()]
            try await withThrowingTaskGroup(of: Int.self) { group in
                for session in sessions {
                    for _ in 0..<10 { group.addTask { try await session.get(url).body.count } }
                }
                // Whichever client comes first: the other one waits at the shared cache, or finds it there afterwards.
                while sessions.contains(where: { $0.poolStatus.opened == 0 }) {
                    try await Task.sleep(for: .milliseconds(1))
                }
                try await origin.waitForRequests(count: 1)
                gate.open()
                for try await count in group { #expect(count == 200_000) }
            }
            #expect(origin.requests.count == 1)
        }
    }
}
