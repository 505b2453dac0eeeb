@testable import MartletCredentials
@testable import MartletContent
import Martlet
import MartletTesting
import MartletTestSupport
import Testing

@testable import MartletAuthentication
@testable import MartletCaching
@testable import MartletCookies
@testable import MartletCore

@Suite("Isolation of users, and responses that are not stored")
struct CacheSecrecyTests {
    private struct Signing: HTTPMiddleware {
        let value: String

        func handle(
            _ request: HTTPCall.Request, context: CallContext, next: HTTPNext
        ) async throws -> HTTPCall.Response {
            var request = request
            request.headers[.authorization] = value
            return try await next(request)
        }
    }

    @Test("A response with no-store leaves nothing in memory and on disk")
    func noStoreOfServer() async throws {
        try await noTrace(CacheScene.answer("", "no-store"), headers: HTTPHeaders())
    }

    @Test("A request with no-store leaves nothing in memory and on disk")
    func noStoreOfRequest() async throws {
        try await noTrace(
            CacheScene.answer("", "max-age=600"), headers: CacheScene.fields(("Cache-Control", "no-store")))
    }

    private func noTrace(_ head: OriginResponse, headers: HTTPHeaders) async throws {
        let directory = try TemporaryDirectory()
        let signals = SignalBox()
        try await TestOrigin.withOrigin { _ in
            head.with {
                $0.body = .stream(length: 600_000) { writer in
                    try await writer.write([UInt8](repeating: 7, count: 300_000))
                    try await signals.wait(for: "rest")
                    try await writer.write([UInt8](repeating: 7, count: 300_000))
                }
            }
        } run: { origin async throws in
            signals.use(origin)
            let (session, cache) = try CacheScene.session(directory)
            await cache.flush()
            let before = CacheScene.files(directory)
            let request = try HTTPRequest(.get, origin, "/", headers.validated())
            try await session.stream(request) { _, body in
                var count = 0
                for try await piece in body {
                    count += piece.count
                    #expect(CacheScene.files(directory) == before)
                    if count >= 300_000 { signals.raise("rest") }
                }
                #expect(count == 600_000)
            }
            await cache.flush()
            #expect(CacheScene.files(directory) == before)
            #expect(cache.statistics.memoryEntries == 0 && cache.statistics.diskEntries == 0)
        }
    }

    @Test(
        "A user never gets a response that is stored for another user",
        arguments: ["field", "basic", "url", "middleware"])
    func users(way: String) async throws {
        try await TestOrigin.withOrigin { request in
            guard let user = request.headers["Authorization"] else {
                return OriginResponse(
                    401, headers: ["WWW-Authenticate": "Basic realm=\"x\"", "Cache-Control": "max-age=600"])
            }
            return CacheScene.answer(user, "max-age=600")
        } run: { origin async throws in
            let (session, _) = try CacheScene.session()
            func get(_ user: String) async throws -> HTTPExchange {
                switch way {
                case "field":
                    return try await session.get(
                        origin.url(), headers: CacheScene.fields(("Authorization", "Bearer \(user)")))
                case "basic":
                    var options = RequestOptions()
                    options.authentication = AuthenticationSettings(
                        credentials: .basic(user: user, password: "p"))
                    return try await session.get(origin.url(), options: options)
                case "url":
                    return try await session.get(
                        origin.url().replacing("//", with: "//\(user):p@", maxReplacements: 1))
                default:
                    return try await session.with { $0.middleware = [Signing(value: "Bearer \(user)")] }
                        .get(origin.url())
                }
            }
            let a = try await get("a")
            let b = try await get("b")
            #expect(a.statusCode == 200 && b.statusCode == 200)
            #expect(a.source == .network && b.source == .network && a.text != b.text)
            let count = origin.requests.count
            #expect(try await get("a").text == a.text)
            #expect(try await get("b").text == b.text)
            #expect(origin.requests.count == count)
            // A request without credentials gets neither response.
            #expect(try await session.get(origin.url()).statusCode == 401)
        }
    }

    @Test(
        "Credentials and Vary fields that differ only in non-UTF-8 bytes are different",
        arguments: ["Authorization", "Cookie", "X-Key"])
    func bytes(_ name: String) async throws {
        try await TestOrigin.withOrigin { _ in
            CacheScene.answer("x", "max-age=600", ["Vary": name])
        } run: { origin async throws in
            let (session, _) = try CacheScene.session()
            let field = try #require(HTTPField.Name(name))
            func get(_ values: [UInt8]...) async throws -> HTTPExchange {
                var fields = HTTPHeaders()
                for value in values { fields.append(HTTPField(name: field, value: value)) }
                return try await session.get(origin.url(), headers: fields)
            }
            let values: [[UInt8]] = [
                [0x4B, 0xFC], [0x4B, 0xE4], [0x4B, 0xEF, 0xBF, 0xBD], [0x4B, 0xC3, 0xBC],
            ]
            for value in values { #expect(try await get(value).source == .network) }
            for value in values { #expect(try await get(value).source == .cache) }
            // Every line of a repeated field counts.
            #expect(try await get([0x4B, 0xFC], [0x32]).source == .network)
            #expect(try await get([0x4B, 0xFC], [0x33]).source == .network)
        }
    }

    @Test("A cache partition replaces the credentials in the cache key")
    func partition() async throws {
        try await TestOrigin.withOrigin { request in
            CacheScene.answer(request.headers["Authorization"] ?? "", "max-age=600")
        } run: { origin async throws in
            let (session, _) = try CacheScene.session()
            func get(_ user: String, _ partition: String) async throws -> HTTPExchange {
                var options = RequestOptions()
                options.cachePartition = partition
                return try await session.get(
                    origin.url(), headers: CacheScene.fields(("Authorization", user)), options: options)
            }
            #expect(try await get("token 1", "anna").text == "token 1")
            #expect(try await get("token 2", "anna").text == "token 1")
            #expect(try await get("token 3", "berta").text == "token 3")
            #expect(origin.requests.count == 2)
        }
    }

    @Test("Concurrent requests of different users never share a response")
    func noSharing() async throws {
        try await CacheScene.withHeldOrigin { request in
            CacheScene.answer(request.headers["Authorization"] ?? "-", "max-age=600, public")
        } _: { origin, signals async throws in
            let (session, _) = try CacheScene.session()
            let url = origin.url()
            let tasks = (0..<6).map { number in
                Task {
                    try await session.get(
                        url, headers: CacheScene.fields(("Authorization", "u\(number % 3)")))
                }
            }
            #expect(await eventually { session.core.flights.memberCount == 6 && origin.requests.count == 3 })
            signals.raise("go")
            for (number, task) in tasks.enumerated() {
                #expect(try await task.value.text == "u\(number % 3)")
            }
            #expect(origin.requests.count == 3)
        }
    }

    @Test("A stored response does not set its cookies again, but a 304 sets its cookies")
    func cookies() async throws {
        try await TestOrigin.withOrigin { request in
            if request.headers["If-None-Match"] != nil {
                return OriginResponse(304, headers: ["ETag": "\"1\"", "Set-Cookie": "of304=yes"])
            }
            return CacheScene.answer("x", "max-age=600", ["ETag": "\"1\"", "Set-Cookie": "first=1"])
        } run: { origin async throws in
            let jar = CookieJar()
            let (session, _) = try CacheScene.session { $0.cookies = jar }
            _ = try await session.get(origin.url())
            #expect(await jar.allCookies.map(\.name) == ["first"])
            await jar.removeAll()
            #expect(try await session.get(origin.url()).source == .cache)
            #expect(await jar.allCookies.isEmpty)
            let validated = try await session.get(origin.url(), options: CacheScene.mode(.revalidate))
            #expect(validated.source == .validatedCache)
            #expect(await jar.allCookies.map(\.name) == ["of304"])
        }
    }

    @Test("A response with Vary: Cookie is served only for the same cookies")
    func varyByCookie() async throws {
        try await TestOrigin.withOrigin { request in
            CacheScene.answer(request.headers["Cookie"] ?? "-", "max-age=600", ["Vary": "Cookie"])
        } run: { origin async throws in
            let (session, _) = try CacheScene.session()
            for _ in 0..<3 {
                for cookie in ["a=1", "a=2"] {
                    let answer = try await session.get(
                        origin.url(), headers: CacheScene.fields(("Cookie", cookie)))
                    #expect(answer.text == cookie)
                }
            }
            #expect(origin.requests.count == 2)
        }
    }
}
