@testable import MartletContent
import Martlet
import MartletTesting
import Testing

@testable import MartletCaching
@testable import MartletCore

@Suite("Variants, ranges and HEAD requests")
struct CacheVariantTests {
    @Test("Two languages that alternate ten times make two requests", arguments: [true, false])
    func languages(hasDisk: Bool) async throws {
        let directory = try TemporaryDirectory()
        try await TestOrigin.withOrigin { request in
            CacheScene.answer(
                request.headers["Accept-Language"] ?? "-", "max-age=600", ["Vary": "Accept-Language"])
        } run: { origin async throws in
            let (session, _) = try CacheScene.session(hasDisk ? directory : nil)
            for _ in 0..<10 {
                for language in ["de", "fr"] {
                    let answer = try await session.get(
                        origin.url(), headers: CacheScene.fields(("Accept-Language", language)))
                    #expect(answer.text == language)
                }
            }
            #expect(origin.requests.count == 2)
        }
    }

    @Test("A response with Vary: * is never served from the cache")
    func varyEverything() async throws {
        try await TestOrigin.withOrigin { _ in
            CacheScene.answer("x", "max-age=600", ["Vary": "*"])
        } run: { origin async throws in
            let (session, _) = try CacheScene.session()
            for _ in 0..<3 { #expect(try await session.get(origin.url()).source == .network) }
            #expect(origin.requests.count == 3)
        }
    }

    @Test("A compressed body is stored compressed and decoded for each request")
    func coded() async throws {
        let text = String(repeating: "martlet ", count: 5000)
        let coded = Deflated.bytes(Array(text.utf8), as: .gzip)
        try await TestOrigin.withOrigin { request in
            guard request.headers["Accept-Encoding"]?.contains("gzip") == true else {
                return CacheScene.answer(text, "max-age=600", ["Vary": "Accept-Encoding"])
            }
            return OriginResponse.encoded(coded, coding: "gzip").with {
                $0.headers.append("Cache-Control", "max-age=600")
            }
        } run: { origin async throws in
            let (session, cache) = try CacheScene.session()
            for source in [HTTPExchange.Source.network, .cache] {
                let answer = try await session.get(origin.url())
                #expect(answer.source == source && answer.text == text)
            }
            #expect(cache.statistics.bytesStored == UInt64(coded.count))
            // A request without decompression gets a different variant.
            for source in [HTTPExchange.Source.network, .cache] {
                let plain = try await session.get(origin.url(), options: RequestOptions(decompresses: false))
                #expect(plain.source == source && plain.text == text)
            }
            #expect(origin.requests.count == 2)
        }
    }

    @Test(
        "A range of a fresh stored body is served with its exact bytes",
        arguments: [
            ("bytes=0-9", 206, 0..<10), ("bytes=995-", 206, 995..<1000), ("bytes=-7", 206, 993..<1000),
            ("bytes=990-5000", 206, 990..<1000), ("bytes=2000-", 416, 0..<0),
            ("bytes=0-1,5-6", 200, 0..<1000),
            ("lines=1-2", 200, 0..<1000), ("bytes=9-1", 200, 0..<1000),
        ])
    func parts(range: String, status: Int, bytes: Range<Int>) async throws {
        try await TestOrigin.withOrigin { _ in
            OriginResponse.pattern(1000).with { $0.headers.append("Cache-Control", "max-age=600") }
        } run: { origin async throws in
            let (session, _) = try CacheScene.session()
            let whole = try await session.get(origin.url()).body
            let part = try await session.get(origin.url(), headers: CacheScene.fields(("Range", range)))
            #expect(part.statusCode == status && part.source == .cache)
            #expect(part.body == Array(whole[bytes]))
            if status == 206 {
                #expect(
                    part.field("Content-Range") == "bytes \(bytes.lowerBound)-\(bytes.upperBound - 1)/1000")
                #expect(part.field("Content-Length") == "\(bytes.count)")
            }
            if status == 416 { #expect(part.field("Content-Range") == "bytes */1000") }
            #expect(origin.requests.count == 1)
        }
    }

    @Test("A range of a body in its own file is served with its exact bytes")
    func partOfFile() async throws {
        let directory = try TemporaryDirectory()
        try await TestOrigin.withOrigin { _ in
            OriginResponse.pattern(3_000_000).with { $0.headers.append("Cache-Control", "max-age=600") }
        } run: { origin async throws in
            let (session, _) = try CacheScene.session(directory, memory: .bytes(0))
            _ = try await session.get(origin.url())
            let part = try await session.get(
                origin.url(), headers: CacheScene.fields(("Range", "bytes=1000001-2500000")))
            #expect(part.statusCode == 206 && part.body.count == 1_500_000 && part.source == .cache)
            #expect(TestPattern.firstMismatch(in: part.body, at: 1_000_001) == nil)
            #expect(origin.requests.count == 1)
        }
    }

    @Test("A range request with If-Range gets the range only if the entity tag matches strongly")
    func ifRange() async throws {
        try await TestOrigin.withOrigin { _ in
            OriginResponse.pattern(100).with {
                $0.headers.append("Cache-Control", "max-age=600")
                $0.headers.append("ETag", "\"v1\"")
            }
        } run: { origin async throws in
            let (session, _) = try CacheScene.session()
            _ = try await session.get(origin.url())
            func status(_ tag: String) async throws -> Int {
                try await session.get(
                    origin.url(), headers: CacheScene.fields(("Range", "bytes=0-9"), ("If-Range", tag))
                ).statusCode
            }
            #expect(try await status("\"v1\"") == 206)
            #expect(try await status("\"v2\"") == 200)
            #expect(try await status("W/\"v1\"") == 200)
            #expect(origin.requests.count == 1)
        }
    }

    @Test("A partial response from the network is not stored")
    func partNotStored() async throws {
        try await TestOrigin.withOrigin { _ in
            OriginResponse(
                206, headers: ["Content-Range": "bytes 0-9/100", "Cache-Control": "max-age=600"],
                body: .pattern(10))
        } run: { origin async throws in
            let (session, cache) = try CacheScene.session()
            for _ in 0..<2 {
                let part = try await session.get(
                    origin.url(), headers: CacheScene.fields(("Range", "bytes=0-9")))
                #expect(part.statusCode == 206 && part.source == .network)
            }
            #expect(cache.statistics.memoryEntries == 0 && origin.requests.count == 2)
        }
    }

    @Test("A HEAD request is served from a stored GET response, without its body")
    func head() async throws {
        try await TestOrigin.withOrigin { _ in
            CacheScene.answer("12345")
        } run: { origin async throws in
            let (session, _) = try CacheScene.session()
            #expect(try await session.head(origin.url()).source == .network)
            _ = try await session.get(origin.url())
            let head = try await session.head(origin.url())
            #expect(head.source == .cache && head.body.isEmpty && head.field("Content-Length") == "5")
            #expect(origin.requests.count == 2)
        }
    }

    @Test(
        "A HEAD response with the same entity tag freshens the stored response, and another removes it",
        arguments: [true, false])
    func headUpdates(isSame: Bool) async throws {
        try await TestOrigin.withOrigin { request in
            let isHead = request.method == .head
            return CacheScene.answer(
                "12345", isHead ? "max-age=600" : "max-age=60",
                ["ETag": isHead && !isSame ? "\"2\"" : "\"1\"", "Age": isHead ? "0" : "120"])
        } run: { origin async throws in
            let (session, cache) = try CacheScene.session()
            _ = try await session.get(origin.url())
            _ = try await session.head(origin.url())
            #expect(origin.requests.count == 2)
            if isSame {
                #expect(try await session.get(origin.url()).source == .cache)
            } else {
                #expect(cache.statistics.memoryEntries == 0)
                #expect(try await session.get(origin.url()).source == .network)
            }
        }
    }

    @Test("A conditional request of the caller is served from the cache, or else sent unchanged")
    func conditions() async throws {
        try await TestOrigin.withOrigin { request in
            request.headers["If-None-Match"] == "\"1\""
                ? OriginResponse(304, headers: ["ETag": "\"1\""])
                : CacheScene.answer("x", "max-age=600", ["ETag": "\"1\""])
        } run: { origin async throws in
            let (session, _) = try CacheScene.session()
            let mine = CacheScene.fields(("If-None-Match", "\"1\""))
            let asked = try await session.get(origin.url(), headers: mine)
            #expect(asked.statusCode == 304 && asked.source == .network && asked.body.isEmpty)
            _ = try await session.get(origin.url())
            let met = try await session.get(origin.url(), headers: mine)
            #expect(met.statusCode == 304 && met.source == .cache && origin.requests.count == 2)
            let other = try await session.get(
                origin.url(), headers: CacheScene.fields(("If-None-Match", "\"2\"")))
            #expect(other.statusCode == 200 && other.text == "x" && origin.requests.count == 2)
            // Only the origin can evaluate If-Match.
            let match = try await session.get(
                origin.url(), headers: CacheScene.fields(("If-Match", "\"1\"")))
            #expect(match.source == .network && origin.requests.count == 3)
        }
    }

    @Test("A stored redirect is followed without the network", arguments: [301, 308])
    func redirect(status: Int) async throws {
        try await TestOrigin.withOrigin { request in
            request.path == "/old"
                ? OriginResponse.redirect(to: "/new", status: status).with {
                    $0.headers.append("Cache-Control", "max-age=600")
                } : CacheScene.answer("new")
        } run: { origin async throws in
            let (session, _) = try CacheScene.session()
            for _ in 0..<3 {
                let answer = try await session.get(origin.url("/old"))
                #expect(answer.text == "new" && answer.url.path == "/new" && answer.metrics.hops.count == 1)
            }
            #expect(origin.requests.count == 2)
        }
    }
}
