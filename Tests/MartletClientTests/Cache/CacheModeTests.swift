import Martlet
import MartletTesting
import MartletTestSupport
import Testing

@testable import MartletCaching
@testable import MartletCore

@Suite("Cache modes of a request")
struct CacheModeTests {
    /// Returns responses that contain the number of the request and are validated by entity tag.
    private static func counting(_ control: String = "max-age=600", age: String? = nil)
        -> @Sendable (
            OriginRequest
        ) -> OriginResponse
    {
        let counter = Counter()
        return { request in
            counter.add()
            if request.headers["If-None-Match"] == "\"t\"" {
                return OriginResponse(304, headers: ["ETag": "\"t\"", "Cache-Control": control])
            }
            return CacheScene.answer("\(counter.count)", control, ["ETag": "\"t\""]).with {
                if let age { $0.headers.append("Age", age) }
            }
        }
    }

    private static func sources(
        _ mode: CacheMode, fresh: Bool, viaSession: Bool = false, control: String = "max-age=600"
    ) async throws -> (first: HTTPExchange.Source, second: HTTPExchange, count: Int) {
        let respond = counting(control, age: fresh ? nil : "1200")
        return try await TestOrigin.withOrigin {
            respond($0)
        } run: { origin async throws in
            let (session, _) = try CacheScene.session()
            let first = try await session.get(origin.url()).source
            let second =
                viaSession
                ? try await session.with { $0.cacheMode = mode }.get(origin.url())
                : try await session.get(origin.url(), options: CacheScene.mode(mode))
            return (first, second, origin.requests.count)
        }
    }

    @Test("The standard mode serves fresh responses and validates stale ones", arguments: [true, false])
    func standard(viaSession: Bool) async throws {
        let fresh = try await CacheModeTests.sources(.standard, fresh: true, viaSession: viaSession)
        #expect(fresh.second.source == .cache && fresh.count == 1)
        let stale = try await CacheModeTests.sources(.standard, fresh: false, viaSession: viaSession)
        #expect(stale.second.source == .validatedCache && stale.count == 2 && stale.second.text == "1")
    }

    @Test("The reload mode always requests the network and stores the response", arguments: [true, false])
    func reload(viaSession: Bool) async throws {
        let respond = CacheModeTests.counting()
        try await TestOrigin.withOrigin {
            respond($0)
        } run: { origin async throws in
            let (session, _) = try CacheScene.session()
            _ = try await session.get(origin.url())
            let second =
                viaSession
                ? try await session.with { $0.cacheMode = .reload }.get(origin.url())
                : try await session.get(origin.url(), options: CacheScene.mode(.reload))
            #expect(second.source == .network && second.text == "2")
            #expect(origin.requests[1].headers["If-None-Match"] == nil)
            #expect(origin.requests[1].headers["Cache-Control"] == "no-cache")
            let third = try await session.get(origin.url())
            #expect(third.source == .cache && third.text == "2" && origin.requests.count == 2)
        }
    }

    @Test("The revalidate mode validates fresh responses as well")
    func revalidate() async throws {
        let result = try await CacheModeTests.sources(.revalidate, fresh: true)
        #expect(result.second.source == .validatedCache && result.second.text == "1" && result.count == 2)
    }

    @Test(
        "The preferCache mode serves stale responses and uses the network only without a stored one",
        arguments: [true, false])
    func preferCache(viaSession: Bool) async throws {
        let stale = try await CacheModeTests.sources(.preferCache, fresh: false, viaSession: viaSession)
        #expect(stale.first == .network && stale.second.source == .staleCache && stale.count == 1)
        let strict = try await CacheModeTests.sources(
            .preferCache, fresh: false, control: "max-age=1, must-revalidate")
        #expect(strict.second.source == .staleCache && strict.count == 1)
    }

    @Test(
        "Without the network, preferCache and onlyIfCached serve stored responses that must be validated",
        arguments: [CacheMode.preferCache, .onlyIfCached],
        ["no-cache", "max-age=0, must-revalidate", "max-age=600, no-cache", "no-store"])
    func offline(_ mode: CacheMode, _ control: String) async throws {
        try await TestOrigin.withOrigin { _ in
            CacheScene.answer("x", control)
        } run: { origin async throws in
            let (session, _) = try CacheScene.session()
            let url = origin.url()
            _ = try await session.get(url)
            await origin.stop()
            await #expect(throws: HTTPError.self) { try await session.get(url) }
            let stored = try? await session.get(url, options: CacheScene.mode(mode))
            guard control == "no-store" else {
                #expect(stored?.text == "x" && stored?.statusCode == 200)
                #expect(stored?.source == (control.hasPrefix("max-age=600") ? .cache : .staleCache))
                return
            }
            // Nothing is stored: a 504 by the cache, or the error of the network.
            #expect(stored?.statusCode == (mode == .onlyIfCached ? 504 : nil))
        }
    }

    @Test("The onlyIfCached mode serves stored responses, also stale ones, or a 504 without a connection")
    func onlyIfCached() async throws {
        let respond = CacheModeTests.counting("max-age=1", age: "5")
        try await TestOrigin.withOrigin {
            respond($0)
        } run: { origin async throws in
            let (session, cache) = try CacheScene.session { $0.retry = .transient() }
            let none = try await session.get(origin.url(), options: CacheScene.mode(.onlyIfCached))
            #expect(none.statusCode == 504 && none.source == .cache && none.body.isEmpty)
            #expect(none.metrics.connection == nil && none.metrics.hops.isEmpty)
            #expect(origin.requests.isEmpty && origin.connectionCount == 0)
            #expect(cache.statistics.unsatisfiable == 1)
            _ = try await session.get(origin.url())
            let stored = try await session.get(origin.url(), options: CacheScene.mode(.onlyIfCached))
            #expect(stored.source == .staleCache && stored.text == "1" && origin.requests.count == 1)
        }
    }

    @Test("The noStore mode neither reads from nor writes to the cache")
    func noStore() async throws {
        let respond = CacheModeTests.counting()
        try await TestOrigin.withOrigin {
            respond($0)
        } run: { origin async throws in
            let (session, cache) = try CacheScene.session()
            for text in ["1", "2"] {
                let answer = try await session.get(origin.url(), options: CacheScene.mode(.noStore))
                #expect(answer.source == .network && answer.text == text)
            }
            #expect(cache.statistics.memoryEntries == 0 && cache.statistics.bypasses == 2)
            #expect(try await session.get(origin.url()).text == "3")
            #expect(origin.requests.map { $0.headers["Cache-Control"] } == ["no-store", "no-store", nil])
        }
    }

    @Test(
        "The noStore mode sends no-store with every method, unless the caller sets Cache-Control"
    )
    func noStoreIsSent() async throws {
        try await TestOrigin.withOrigin { _ in
            CacheScene.answer("x")
        } run: { origin async throws in
            let (session, _) = try CacheScene.session { $0.cacheMode = .noStore }
            let url = origin.url()
            _ = try await session.get(url)
            _ = try await session.get(url, headers: CacheScene.fields(("Range", "bytes=0-0")))
            _ = try await session.head(url)
            _ = try await session.post(url, body: .bytes([1]))
            for own in ["max-age=0", "no-store"] {
                _ = try await session.get(url, headers: CacheScene.fields(("Cache-Control", own)))
            }
            let standard = CacheScene.mode(.standard)
            _ = try await session.post(url, body: .bytes([1]), options: standard)
            let sent = origin.requests.map { $0.headers.values(of: "Cache-Control") }
            #expect(sent == Array(repeating: ["no-store"], count: 4) + [["max-age=0"], ["no-store"], []])
        }
    }

    @Test("Cache-Control directives of the request are applied")
    func directives() async throws {
        let respond = CacheModeTests.counting("max-age=600", age: "100")
        try await TestOrigin.withOrigin {
            respond($0)
        } run: { origin async throws in
            let (session, _) = try CacheScene.session()
            func source(_ control: String) async throws -> HTTPExchange {
                try await session.get(
                    origin.url(), headers: CacheScene.fields(("Cache-Control", control)))
            }
            _ = try await session.get(origin.url())
            #expect(try await source("max-age=3600").source == .cache)
            #expect(try await source("min-fresh=60").source == .cache)
            #expect(try await source("only-if-cached").source == .cache)
            #expect(origin.requests.count == 1)
            #expect(try await source("max-age=0").source == .validatedCache)
            #expect(try await source("min-fresh=3600").source == .validatedCache)
            #expect(try await source("no-cache").source == .validatedCache)
            #expect(origin.requests.count == 4)
            #expect(try await source("no-store").source == .network)
            let missing = try await session.get(
                origin.url("/other"), headers: CacheScene.fields(("Cache-Control", "only-if-cached")))
            #expect(missing.statusCode == 504 && origin.requests.count == 5)
        }
    }

    @Test("The max-stale directive accepts responses up to that staleness")
    func maxStale() async throws {
        try await TestOrigin.withOrigin { _ in
            CacheScene.answer("old", "max-age=60").with { $0.headers.append("Age", "160") }
        } run: { origin async throws in
            let (session, _) = try CacheScene.session()
            _ = try await session.get(origin.url())
            let any = try await session.get(
                origin.url(), headers: CacheScene.fields(("Cache-Control", "max-stale")))
            #expect(any.source == .staleCache)
            let long = try await session.get(
                origin.url(), headers: CacheScene.fields(("Cache-Control", "max-stale=3600")))
            #expect(long.source == .staleCache && origin.requests.count == 1)
            let short = try await session.get(
                origin.url(), headers: CacheScene.fields(("Cache-Control", "max-stale=10")))
            #expect(short.source == .network && origin.requests.count == 2)
        }
    }

    @Test("Default freshness applies to responses without freshness fields and is off by default")
    func defaults() async throws {
        try await TestOrigin.withOrigin { request in
            let age = request.query["age"] ?? "0"
            let type = request.path == "/image" ? "image/png" : "text/plain"
            return CacheScene.answer("x", "", ["Content-Type": type, "Age": age])
        } run: { origin async throws in
            func isStored(_ path: String, _ rules: DefaultFreshness) async throws -> Bool {
                var options = ResponseCache.Options.withoutPressure
                options.defaultFreshness = rules
                let (session, _) = try CacheScene.session(options: options)
                _ = try await session.get(origin.url(path))
                return try await session.get(origin.url(path)).source == .cache
            }
            #expect(try await !isStored("/text", .none))
            #expect(try await isStored("/text", .tenMinutesAndImagesSevenDays))
            #expect(try await !isStored("/text?age=700", .tenMinutesAndImagesSevenDays))
            #expect(try await isStored("/image?age=600000", .tenMinutesAndImagesSevenDays))
            #expect(try await !isStored("/image?age=700000", .tenMinutesAndImagesSevenDays))
            #expect(try await !isStored("/image?age=700", .tenMinutes))
        }
    }
}
