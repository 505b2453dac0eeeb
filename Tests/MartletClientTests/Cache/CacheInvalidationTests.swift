@testable import MartletURL
import Martlet
import MartletTesting
import MartletTestSupport
import SystemPackage
import Testing

@testable import MartletCaching
@testable import MartletCore
@testable import MartletHosts

@Suite("Invalidation of stored responses")
struct CacheInvalidationTests {
    @Test(
        "Successful POST, PUT, PATCH and DELETE requests invalidate", arguments: ["POST", "PUT", "PATCH", "DELETE"])
    func methods(method: String) async throws {
        try await isInvalidated(method, status: 204, true)
    }

    @Test(
        "A redirect as the response to a POST invalidates, and an error does not",
        arguments: [(303, true), (400, false), (500, false)])
    func statuses(status: Int, invalidates: Bool) async throws {
        try await isInvalidated("POST", status: status, invalidates)
    }

    private func isInvalidated(_ method: String, status: Int, _ expected: Bool) async throws {
        let directory = try TemporaryDirectory()
        try await TestOrigin.withOrigin { request in
            request.method == .get ? CacheScene.answer("\(request.path)") : OriginResponse(status)
        } run: { origin async throws in
            let (session, _) = try CacheScene.session(directory)
            _ = try await session.get(origin.url("/x"))
            let request = try HTTPRequest(HTTPRequest.Method(method) ?? .post, origin, "/x")
            #expect(try await session.send(request, body: .bytes([1])).statusCode == status)
            #expect(try await session.get(origin.url("/x")).source == (expected ? .network : .cache))
        }
    }

    @Test(
        "A newer response invalidates the stored one even if it cannot be stored itself",
        arguments: ["length", "chunked", "condition", "precondition"], [true, false])
    func superseded(_ way: String, _ hasDirectory: Bool) async throws {
        let directory = hasDirectory ? try TemporaryDirectory() : nil
        try await TestOrigin.withOrigin { request in
            guard request.headers["X-New"] != nil else {
                return CacheScene.answer("old", "max-age=600", ["ETag": "\"1\""])
            }
            let isLarge = way == "length" || way == "chunked"
            let body = [UInt8](repeating: 7, count: isLarge ? 300_000 : 3)
            return CacheScene.answer("", "max-age=600", ["ETag": "\"2\""]).with {
                $0.body = way == "chunked" ? .stream { try await $0.write(body) } : .bytes(body)
            }
        } run: { origin async throws in
            let cache: ResponseCache =
                if let directory {
                    try .at(
                        FilePath(directory.path).appending("cache"), memory: .mebibytes(1), disk: .mebibytes(1),
                        options: .withoutPressure)
                } else {
                    .memoryOnly(.mebibytes(1), options: .withoutPressure)
                }
            let session = HTTPSession.own { $0.cache = cache }
            #expect(try await session.get(origin.url()).text == "old")
            #expect(try await session.get(origin.url()).source == .cache)
            var fields = CacheScene.fields(("X-New", "1"))
            if way == "condition" { fields[.ifNoneMatch] = "\"0\"" }
            if way == "precondition" { fields[.ifMatch] = "\"2\"" }
            let newer = try await session.get(
                origin.url(), headers: fields, options: CacheScene.mode(.revalidate))
            #expect(newer.source == .network && newer.response.headerFields[.eTag] == "\"2\"")
            #expect(try await session.get(origin.url()).source == .network)
        }
    }

    @Test("Location and Content-Location are invalidated as well, for the same origin only")
    func locations() async throws {
        try await TestOrigin.withOrigin { _ in
            CacheScene.answer("other")
        } run: { other async throws in
            let foreign = other.url("/c")
            try await TestOrigin.withOrigin { request in
                request.method == .get
                    ? CacheScene.answer("x")
                    : OriginResponse(
                        201,
                        headers: [
                            "Location": request.path == "/near" ? "/a" : foreign, "Content-Location": "/b",
                        ])
            } run: { origin async throws in
                let (session, _) = try CacheScene.session()
                for path in ["/a", "/b", "/d"] { _ = try await session.get(origin.url(path)) }
                _ = try await session.get(foreign)
                _ = try await session.post(origin.url("/near"), body: .bytes([1]))
                #expect(try await session.get(origin.url("/a")).source == .network)
                #expect(try await session.get(origin.url("/b")).source == .network)
                #expect(try await session.get(origin.url("/d")).source == .cache)
                _ = try await session.post(origin.url("/far"), body: .bytes([1]))
                #expect(try await session.get(foreign).source == .cache)
            }
        }
    }

    @Test(
        "A GET that started before a PUT is not stored after it and not shared with later requests",
        arguments: [true, false])
    func olderInFlight(asksMeanwhile: Bool) async throws {
        let signals = SignalBox()
        let puts = Counter()
        try await TestOrigin.withOrigin { request in
            guard request.method == .get else {
                puts.add()
                return OriginResponse(204)
            }
            guard puts.count == 0 else { return CacheScene.answer("new") }
            try await signals.wait(for: "go")
            return CacheScene.answer("old")
        } run: { origin async throws in
            signals.use(origin)
            let (session, _) = try CacheScene.session()
            let url = origin.url()
            let old = Task { try await session.get(url) }
            try await origin.waitForRequests(count: 1)
            _ = try await session.put(url, body: .bytes([1]))
            if asksMeanwhile {
                // After the PUT, the response to the earlier request is out of date, although it has not arrived yet.
                let after = try await session.get(url)
                #expect(after.text == "new" && after.source == .network)
                #expect(origin.requests.count == 3)
            }
            signals.raise("go")
            #expect(try await old.value.text == "old")
            let last = try await session.get(url)
            #expect(last.text == "new" && last.source == (asksMeanwhile ? .cache : .network))
            #expect(origin.requests.count == 3)
        }
    }

    @Test("Removing a URL removes its responses for all users, also from disk", arguments: [true, false])
    func removedForAll(hasDisk: Bool) async throws {
        let directory = try TemporaryDirectory()
        try await TestOrigin.withOrigin { request in
            CacheScene.answer(request.headers["Authorization"] ?? "nobody")
        } run: { origin async throws in
            var mine = RequestOptions()
            mine.cachePartition = "mine"
            let ways: [(credential: String?, options: RequestOptions)] = [
                (nil, RequestOptions()), ("Basic YTpi", RequestOptions()),
                (nil, mine),
            ]
            func sources(_ session: HTTPSession) async throws -> [HTTPExchange.Source] {
                var sources: [HTTPExchange.Source] = []
                for path in ["/kept", "/gone"] {
                    for way in ways {
                        var request = try HTTPRequest(.get, origin, path)
                        if let credential = way.credential {
                            request.headerFields[.authorization] = credential
                        }
                        sources.append(try await session.send(request, options: way.options).source)
                    }
                }
                return sources
            }
            let (session, cache) = try CacheScene.session(hasDisk ? directory : nil)
            #expect(try await sources(session) == Array(repeating: .network, count: 6))
            await cache.remove(try HTTPURL(origin.url("/gone")))
            if hasDisk {
                // A new session has an empty memory, so it serves only what is on disk.
                await cache.flush()
                let (other, _) = try CacheScene.session(directory)
                #expect(
                    try await sources(other)
                        == Array(repeating: .cache, count: 3) + Array(repeating: .network, count: 3))
            } else {
                #expect(
                    try await sources(session)
                        == Array(repeating: .cache, count: 3) + Array(repeating: .network, count: 3))
            }
        }
    }

    @Test("A response whose URL is removed during its transfer is not stored")
    func removedMeanwhile() async throws {
        try await CacheScene.withHeldOrigin { _ in
            CacheScene.answer("x")
        } _: { origin, signals async throws in
            let (session, cache) = try CacheScene.session()
            let url = origin.url()
            let first = Task { try await session.get(url) }
            try await origin.waitForRequests(count: 1)
            await cache.remove(try HTTPURL(url))
            signals.raise("go")
            #expect(try await first.value.text == "x")
            #expect(cache.statistics.memoryEntries == 0)
            #expect(try await session.get(url).source == .network)
        }
    }
}
