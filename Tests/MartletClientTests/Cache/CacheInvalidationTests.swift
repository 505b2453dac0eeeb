import Martlet
import MartletTesting
import Testing

@testable import MartletClient

@Suite("What changes a resource ends what is stored of it")
struct CacheInvalidationTests {
    @Test(
        "POST, PUT, PATCH and DELETE that succeed invalidate", arguments: ["POST", "PUT", "PATCH", "DELETE"])
    func methods(method: String) async throws {
        try await isInvalidated(method, status: 204, true)
    }

    @Test(
        "A redirect as the answer invalidates, and an error does not",
        arguments: [(303, true), (400, false), (500, false)])
    func statuses(status: Int, invalidates: Bool) async throws {
        try await isInvalidated("POST", status: status, invalidates)
    }

    private func isInvalidated(_ method: String, status: Int, _ expected: Bool) async throws {
        let folder = try TemporaryFolder()
        try await TestOrigin.withOrigin { request in
            request.method == "GET" ? CacheScene.answer("\(request.path)") : OriginResponse(status)
        } run: { origin async throws in
            let (session, _) = try CacheScene.session(folder)
            _ = try await session.get(origin.url("/x"))
            let request = try HTTPRequest(HTTPRequest.Method(method) ?? .post, origin, "/x")
            #expect(try await session.send(request, body: .bytes([1])).statusCode == status)
            #expect(try await session.get(origin.url("/x")).source == (expected ? .network : .cache))
        }
    }

    @Test("Location and Content-Location are invalidated, too, at the same origin alone")
    func locations() async throws {
        try await TestOrigin.withOrigin { _ in
            CacheScene.answer("other")
        } run: { other async throws in
            let foreign = other.url("/c")
            try await TestOrigin.withOrigin { request in
                request.method == "GET"
                    ? CacheScene.answer("x")
                    : OriginResponse(
                        201,
                        fields: [
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
        "An older GET that is under way is not stored behind a PUT, and answers nobody who asks after it",
        arguments: [true, false])
    func olderInFlight(asksMeanwhile: Bool) async throws {
        let signals = SignalBox()
        let puts = Counter()
        try await TestOrigin.withOrigin { request in
            guard request.method == "GET" else {
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
                // The PUT is done: what was asked for before it is out of date, though it has not come yet.
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

    @Test("What is removed by its owner while it comes is not stored")
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
