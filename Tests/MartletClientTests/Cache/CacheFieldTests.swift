@testable import MartletCredentials
import Martlet
import MartletTesting
import Testing

@testable import MartletCaching
@testable import MartletCore

/// Checks for tables of response fields whether a second request is served from the cache.
@Suite("Response fields that control the cache")
struct CacheFieldTests {
    /// Response fields, and whether the next request is served without the network.
    struct Row: Sendable, CustomTestStringConvertible {
        let fields: OriginFields
        let isFresh: Bool

        init(_ isFresh: Bool, _ fields: (String, String)...) {
            self.isFresh = isFresh
            var lines = OriginFields()
            for (name, value) in fields { lines.append(name, value) }
            self.fields = lines
        }

        var testDescription: String { fields.map { "\($0.name): \($0.value)" }.joined(separator: " | ") }
    }

    private static let past = "Tue, 04 Nov 1997 08:49:37 GMT"
    private static let rows = [
        Row(true, ("Cache-Control", "max-age=600")),
        Row(true, ("CACHE-CONTROL", "MAX-AGE=600")),
        Row(false, ("Cache-Control", "max-age=0")),
        // A private cache ignores the directives for shared caches.
        Row(true, ("Cache-Control", "s-maxage=0, max-age=600")),
        Row(false, ("Cache-Control", "s-maxage=600")),
        Row(true, ("Cache-Control", "private, max-age=600")),
        Row(false, ("Cache-Control", "no-cache, max-age=600")),
        Row(false, ("Cache-Control", "no-store, max-age=600")),
        // Malformed or ambiguous values are treated as stale.
        Row(true, ("Cache-Control", "max-age=\"600\"")),
        Row(false, ("Cache-Control", "max-age=1.5")),
        Row(false, ("Cache-Control", "max-age=-1")),
        Row(false, ("Cache-Control", "max-age=")),
        Row(false, ("Cache-Control", "max-age=600, max-age=0")),
        Row(false, ("Cache-Control", "max-age=0"), ("Cache-Control", "max-age=600")),
        Row(true, ("Cache-Control", "max-age=99999999999")),
        Row(true, ("Cache-Control", "max-age=18446744073709551616")),
        Row(true, ("Cache-Control", "max-age=600"), ("Age", "599999999999999999999x")),
        Row(true, ("Cache-Control", "max-age=600"), ("Age", "-700")),
        Row(false, ("Cache-Control", "max-age=600"), ("Age", "99999999999999999999")),
        Row(false, ("Cache-Control", "max-age=600"), ("Age", "700"), ("Age", "0")),
        // Dates in the three formats of RFC 9110, and invalid ones.
        Row(true, ("Expires", "Sat, 06 Nov 2094 08:49:37 GMT")),
        Row(true, ("Expires", "Saturday, 06-Nov-66 08:49:37 GMT")),
        Row(true, ("Expires", "Sat Nov  6 08:49:37 2094")),
        Row(false, ("Expires", "Sunday, 06-Nov-94 08:49:37 GMT")),
        Row(false, ("Expires", "Sun Nov  6 08:49:37 1994")),
        Row(false, ("Expires", past)),
        Row(false, ("Expires", "0")),
        Row(false, ("Expires", "-1")),
        Row(false, ("Expires", "tomorrow")),
        Row(
            false, ("Expires", "Sat, 06 Nov 2094 08:49:37 GMT"), ("Expires", "Sun, 06 Nov 2095 08:49:37 GMT")),
        // `max-age` has precedence over `Expires`.
        Row(true, ("Cache-Control", "max-age=600"), ("Expires", past)),
        Row(false, ("Cache-Control", "max-age=0"), ("Expires", "Sat, 06 Nov 2094 08:49:37 GMT")),
        // Heuristic freshness: a tenth of the time since the last modification, at most one day.
        Row(true, ("Last-Modified", past)),
        Row(true, ("Last-Modified", past), ("Age", "86000")),
        Row(false, ("Last-Modified", past), ("Age", "86401")),
        Row(false, ("Last-Modified", "long ago")),
    ]

    @Test("Fields determine freshness, and ambiguous values count as stale", arguments: rows)
    func freshness(_ row: Row) async throws {
        try await TestOrigin.withOrigin { _ in
            OriginResponse(200, headers: row.fields, body: .text("body"))
        } run: { origin async throws in
            let (session, _) = try CacheScene.session()
            #expect(try await session.get(origin.url()).source == .network)
            let second = try await session.get(origin.url())
            #expect((second.source == .cache) == row.isFresh && second.text == "body")
            #expect(origin.requests.count == (row.isFresh ? 1 : 2))
        }
    }

    @Test(
        "A stale response is validated with its strong or weak tag, its date, or both",
        arguments: [
            ("\"strong\"", ""), ("W/\"weak\"", ""), ("", past), ("\"both\"", past), ("W/\"both\"", past),
        ], [true, false])
    func validators(_ validators: (tag: String, date: String), isOnDisk: Bool) async throws {
        let directory = try TemporaryDirectory()
        try await TestOrigin.withOrigin { request in
            var fields: OriginFields = ["Cache-Control": "max-age=0"]
            if !validators.tag.isEmpty { fields.append("ETag", validators.tag) }
            if !validators.date.isEmpty { fields.append("Last-Modified", validators.date) }
            let isAsked =
                request.headers.contains("If-None-Match") || request.headers.contains("If-Modified-Since")
            fields.append("X-Turn", isAsked ? "second" : "first")
            return isAsked
                ? OriginResponse(304, headers: fields)
                : OriginResponse(200, headers: fields, body: .text("body"))
        } run: { origin async throws in
            let (session, _) = try CacheScene.session(
                isOnDisk ? directory : nil, memory: isOnDisk ? .bytes(0) : .mebibytes(1))
            _ = try await session.get(origin.url())
            let second = try await session.get(origin.url())
            #expect(second.source == .validatedCache && second.statusCode == 200 && second.text == "body")
            let asked = try #require(origin.requests.last)
            #expect(asked.headers["If-None-Match"] == (validators.tag.isEmpty ? nil : validators.tag))
            // Both validators are sent, because a server without entity tags uses the date.
            #expect(asked.headers["If-Modified-Since"] == (validators.date.isEmpty ? nil : validators.date))
            // The fields of the 304 are stored with the first response's body.
            let stored = try await session.get(origin.url(), options: CacheScene.mode(.onlyIfCached))
            #expect(stored.source == .staleCache && stored.text == "body")
            #expect(stored.field("X-Turn") == "second")
        }
    }

    @Test("Fields of a 304 are stored on disk for the next session, also with large bodies")
    func freshenedOnDisk() async throws {
        let directory = try TemporaryDirectory()
        try await TestOrigin.withOrigin { request in
            let isAsked = request.headers["If-None-Match"] != nil
            return OriginResponse(
                isAsked ? 304 : 200,
                headers: [
                    "ETag": "\"1\"", "X-Turn": isAsked ? "2" : "1",
                    "Cache-Control": isAsked ? "max-age=600" : "max-age=0",
                ], body: isAsked ? .empty : .pattern(request.path == "/small" ? 10 : 200_000))
        } run: { origin async throws in
            let (session, _) = try CacheScene.session(directory, memory: .bytes(0))
            for path in ["/small", "/large"] {
                _ = try await session.get(origin.url(path))
                #expect(try await session.get(origin.url(path)).source == .validatedCache)
            }
            let (next, _) = try CacheScene.session(directory, memory: .bytes(0))
            for (path, count) in [("/small", 10), ("/large", 200_000)] {
                let exchange = try await next.get(origin.url(path))
                #expect(exchange.source == .cache && exchange.field("X-Turn") == "2")
                #expect(exchange.body == TestPattern.bytes(from: 0, count: count))
            }
            #expect(origin.requests.count == 4)
        }
    }

    @Test("Fields of interim responses do not affect the stored response", arguments: [true, false])
    func interim(isStorable: Bool) async throws {
        try await TestOrigin.withOrigin { _ in
            var response = CacheScene.answer("body", isStorable ? "max-age=600" : "no-store")
            response.interim = [
                InterimResponse(
                    103,
                    headers: [
                        "Cache-Control": isStorable ? "no-store" : "max-age=600", "ETag": "\"early\"",
                        "X-Early": "yes",
                    ]), .proceed,
            ]
            return response
        } run: { origin async throws in
            let (session, cache) = try CacheScene.session()
            #expect(try await session.get(origin.url()).interimResponses.count == 2)
            let second = try await session.get(origin.url())
            #expect(second.source == (isStorable ? .cache : .network) && second.text == "body")
            #expect(second.field("X-Early") == nil && second.field("ETag") == nil)
            #expect(second.interimResponses.isEmpty == isStorable)
            #expect(cache.statistics.stores == (isStorable ? 1 : 0))
        }
    }

    @Test("Storing a ninth variant of a URL evicts the oldest variant", arguments: [true, false])
    func variants(hasDisk: Bool) async throws {
        let directory = try TemporaryDirectory()
        try await TestOrigin.withOrigin { request in
            CacheScene.answer(
                request.headers["Accept-Language"] ?? "", "max-age=600", ["Vary": "Accept-Language"])
        } run: { origin async throws in
            let (session, _) = try CacheScene.session(
                hasDisk ? directory : nil, memory: hasDisk ? .bytes(0) : .mebibytes(1))
            func source(_ number: Int) async throws -> HTTPExchange.Source {
                let exchange = try await session.get(
                    origin.url(), headers: CacheScene.fields(("Accept-Language", "x-\(number)")))
                #expect(exchange.text == "x-\(number)")
                return exchange.source
            }
            for number in 0..<8 { #expect(try await source(number) == .network) }
            for number in 0..<8 { #expect(try await source(number) == .cache) }
            #expect(try await source(8) == .network)
            var fresh = 0
            for number in 1..<9 where try await source(number) == .cache { fresh += 1 }
            #expect(fresh == 8)
            #expect(try await source(0) == .network)
        }
    }

    @Test("The statistics of stores, evictions and bytes match the origin's responses", arguments: [true, false])
    func statistics(hasDisk: Bool) async throws {
        let directory = try TemporaryDirectory()
        try await TestOrigin.withOrigin { request in
            let count = UInt64(request.path.split(separator: "/").last.flatMap { Int($0) } ?? 0)
            return CacheScene.answer("", request.path.hasPrefix("/no") ? "no-store" : "max-age=600").with {
                $0.body = .pattern(count)
            }
        } run: { origin async throws in
            let (session, cache) = try CacheScene.session(
                hasDisk ? directory : nil, memory: hasDisk ? .bytes(0) : .kibibytes(96))
            var (stored, served) = (0, 0)
            for number in 0..<60 {
                let count = 1000 + number * 100
                let isStored = number % 3 != 0
                let url = origin.url(isStored ? "/yes/\(count)" : "/no/\(count)")
                _ = try await session.get(url)
                if isStored { stored += count }
                if try await session.get(url).source == .cache { served += count }
            }
            let counts = cache.statistics
            #expect(counts.stores == 40 && counts.bytesStored == UInt64(stored))
            #expect(counts.bytesServed == UInt64(served) && counts.hits == 40)
            let entries = hasDisk ? counts.diskEntries : counts.memoryEntries
            #expect(UInt64(entries) + counts.evictions == 40)
            #expect((counts.evictions > 0) == !hasDisk)
            #expect(origin.requests.count == 80 && counts.misses == 80)
        }
    }
}
