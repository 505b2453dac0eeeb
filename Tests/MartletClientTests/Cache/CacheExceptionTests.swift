import HTTPTypes
import Martlet
import MartletTesting
import Testing

@Suite("Exceptions of the cache")
struct CacheExceptionTests {
    @Test(
        "A retry after a response is not served that response from the cache",
        arguments: [408, 429, 503])
    func retries(_ status: Int) async throws {
        let bad = CacheScene.answer("bad").with { $0.status = status }
        let counter = Counter()
        try await TestOrigin.withOrigin { _ in
            counter.add()
            return counter.count == 1 ? bad : CacheScene.answer("good")
        } run: { origin async throws in
            let (session, _) = try CacheScene.session {
                $0.retry = .transient(maximumAttempts: 3, backoff: .constant(.zero), budget: nil)
                $0.retry.statuses = [408, 429, 503]
            }
            let answer = try await session.get(origin.url())
            #expect(answer.text == "good" && answer.source == .network)
            #expect(counter.count == 2)
        }
    }

    @Test(
        "Responses about the request itself or from a proxy are not stored",
        arguments: [407, 428, 429, 431, 511])
    func neverStored(_ status: Int) async throws {
        let answer = CacheScene.answer("no").with { $0.status = status }
        try await TestOrigin.withOrigin(.plain, handler: .fixed(answer)) { origin in
            let (session, cache) = try CacheScene.session()
            for _ in 0..<2 { #expect(try await session.get(origin.url()).source == .network) }
            #expect(cache.statistics.stores == 0 && origin.requests.count == 2)
        }
    }

    @Test("A malformed entity tag is not used for validation, and the date is")
    func unreadableTag() async throws {
        let date = "Wed, 12 Nov 2025 08:15:30 GMT"
        let fields: OriginFields = ["ETag": "abc", "Last-Modified": date]
        try await TestOrigin.withOrigin { request in
            request.headers["If-Modified-Since"] == date
                ? OriginResponse(304, headers: fields) : CacheScene.answer("body", "max-age=0", fields)
        } run: { origin async throws in
            let (session, _) = try CacheScene.session()
            _ = try await session.get(origin.url())
            let again = try await session.get(origin.url())
            #expect(again.text == "body" && again.source == .validatedCache)
            #expect(origin.requests.count == 2)
        }
    }

    @Test("Responses to Digest requests are stored by user and password")
    func digest() async throws {
        try await TestOrigin.withOrigin { request in
            request.headers["Authorization"] == nil
                ? OriginResponse(
                    401, headers: ["WWW-Authenticate": "Digest realm=\"r\", nonce=\"n\", qop=\"auth\""])
                : CacheScene.answer("for \(request.headers["Authorization"]?.contains("\"me\"") == true)")
        } run: { origin async throws in
            let (session, cache) = try CacheScene.session()
            func get(_ user: String, _ password: String) async throws -> HTTPExchange {
                var options = RequestOptions()
                options.authentication = AuthenticationSettings(
                    credentials: .digest(user: user, password: password))
                return try await session.get(origin.url(), options: options)
            }
            for number in 0..<3 {
                let answer = try await get("me", "secret")
                #expect(answer.text == "for true" && answer.source == (number == 0 ? .network : .cache))
            }
            #expect(origin.requests.count == 2 && cache.statistics.stores == 1)
            #expect(try await get("you", "secret").text == "for false")
            // A request with the wrong password does not get the response that is stored for the right one.
            #expect(try await get("me", "guess").source == .network)
        }
    }

    @Test("A Content-Length next to chunked coding is not stored")
    func lengthBesideChunks() async throws {
        let script = ServerScript(
            .expectRequestHead,
            .send(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
                    + "5\r\nhello\r\n0\r\n\r\n"), .awaitClose)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let (session, _) = try CacheScene.session()
            _ = try await session.get(origin.url())
            let stored = try await session.get(origin.url())
            #expect(stored.source == .cache && stored.text == "hello")
            #expect(stored.field("Content-Length") != "3")
        }
    }

    @Test("A reason phrase that is not UTF-8 is not changed by storing the response")
    func reason() async throws {
        let head: [UInt8] = Array("HTTP/1.1 200 caf".utf8) + [0xE9]
        let rest = Array("\r\nCache-Control: max-age=600\r\nContent-Length: 2\r\n\r\nok".utf8)
        let script = ServerScript(.expectRequestHead, .send(head + rest), .awaitClose)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let (session, _) = try CacheScene.session()
            #expect(try await session.get(origin.url()).response.status.reasonPhrase == "café")
            let stored = try await session.get(origin.url())
            #expect(
                stored.source == .cache && ["", "OK", "café"].contains(stored.response.status.reasonPhrase))
        }
    }

    @Test("An unsafe request also invalidates responses that are stored for other users", arguments: [false, true])
    func othersToo(_ hasDisk: Bool) async throws {
        let directory = try TemporaryDirectory()
        try await TestOrigin.withOrigin(.plain, handler: .fixed(CacheScene.answer("page"))) { origin in
            let (session, _) = try CacheScene.session(
                hasDisk ? directory : nil, memory: hasDisk ? .bytes(0) : .mebibytes(1))
            func source(_ token: String) async throws -> HTTPExchange.Source {
                try await session.get(origin.url(), headers: [.authorization: "Bearer \(token)"]).source
            }
            for expected in [HTTPExchange.Source.network, .cache] {
                let (first, second) = (try await source("a"), try await source("b"))
                #expect(first == expected && second == expected)
            }
            _ = try await session.post(origin.url(), body: .none, headers: [.authorization: "Bearer a"])
            let (others, own) = (try await source("b"), try await source("a"))
            #expect(others == .network && own == .network)
        }
    }
}
