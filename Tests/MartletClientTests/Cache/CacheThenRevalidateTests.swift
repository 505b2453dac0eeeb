import Martlet
import MartletTesting
import MartletTestSupport
import Testing

@testable import MartletCaching
@testable import MartletCore

@Suite("The mode cacheThenRevalidate", .timeLimit(.minutes(20)))
struct CacheThenRevalidateTests {
    /// A stored response, the network's response, and the expected deliveries.
    struct Row: Sendable {
        let name: String
        let first: OriginResponse?
        let second: OriginResponse
        let delivered: [String]
        /// Whether each delivery is stale.
        let stale: [Bool]
        let requests: Int
    }

    private static let tag: OriginFields = ["ETag": "\"1\""]
    static let rows: [Row] = [
        Row(
            name: "fresh and replaced", first: CacheScene.answer("a"), second: CacheScene.answer("b"),
            delivered: ["cache a", "network b"], stale: [false, false], requests: 2),
        Row(
            name: "fresh and validated", first: CacheScene.answer("a", "max-age=600", tag),
            second: OriginResponse(304, headers: tag), delivered: ["cache a", "validatedCache a"],
            stale: [false, false], requests: 2),
        Row(
            name: "fresh and the same", first: CacheScene.answer("a"), second: CacheScene.answer("a"),
            delivered: ["cache a", "network a"], stale: [false, false], requests: 2),
        Row(
            name: "stale and replaced", first: CacheScene.stale("a", "max-age=60"),
            second: CacheScene.answer("b"), delivered: ["staleCache a", "network b"], stale: [true, false],
            requests: 2),
        Row(
            name: "missing", first: nil, second: CacheScene.answer("b"), delivered: ["network b"],
            stale: [false], requests: 1),
        Row(
            name: "not stored", first: CacheScene.answer("a", "no-store"), second: CacheScene.answer("b"),
            delivered: ["network b"], stale: [false], requests: 2),
        Row(
            name: "fresh and immutable", first: CacheScene.answer("a", "max-age=600, immutable"),
            second: CacheScene.answer("b"), delivered: ["cache a"], stale: [false], requests: 1),
    ]

    @Test(
        "The stored response is delivered first, fresh or stale, and then the network's response",
        arguments: rows.indices)
    func deliveries(_ index: Int) async throws {
        let row = CacheThenRevalidateTests.rows[index]
        let counter = Counter()
        try await TestOrigin.withOrigin { _ in
            counter.add()
            return counter.count == 1 ? row.first ?? row.second : row.second
        } run: { origin async throws in
            let (session, _) = try CacheScene.session()
            if row.first != nil { _ = try await session.get(origin.url()) }
            var found: [CacheThenNetworkResponse] = []
            for try await delivery in session.deliveries(for: origin.url(), cache: .cacheThenRevalidate) {
                found.append(delivery)
            }
            #expect(found.map { "\($0.exchange.source.rawValue) \($0.exchange.text)" } == row.delivered)
            #expect(found.map(\.isStale) == row.stale)
            #expect(found.last?.isPreview == false && found.dropLast().allSatisfy(\.isPreview))
            #expect(origin.requests.count == row.requests)
        }
    }

    @Test("A single response in this mode is validated, whether set per request or per session")
    func single() async throws {
        try await TestOrigin.withOrigin { request in
            request.headers["If-None-Match"] == nil
                ? CacheScene.answer("a", "max-age=600", CacheThenRevalidateTests.tag)
                : OriginResponse(304, headers: CacheThenRevalidateTests.tag)
        } run: { origin async throws in
            let (session, _) = try CacheScene.session()
            _ = try await session.get(origin.url())
            let option = try await session.get(origin.url(), options: CacheScene.mode(.cacheThenRevalidate))
            let setting = try await session.with { $0.cacheMode = .cacheThenRevalidate }.get(origin.url())
            #expect(option.source == .validatedCache && setting.source == .validatedCache)
            #expect(!option.isPreview && origin.requests.count == 3)
        }
    }

    @Test("A network error after a fresh response is thrown and ends the sequence")
    func failed() async throws {
        let counter = Counter()
        try await TestOrigin.withOrigin { _ in
            counter.add()
            guard counter.count > 1 else { return CacheScene.answer("a") }
            throw OriginFault(.reset)
        } run: { origin async throws in
            let (session, _) = try CacheScene.session()
            _ = try await session.get(origin.url())
            let responses = session.deliveries(for: origin.url(), cache: .cacheThenRevalidate)
            var iterator = responses.makeAsyncIterator()
            let first = try await iterator.next()
            #expect(first?.isPreview == true)
            var isThrown = false
            do { _ = try await iterator.next() } catch is HTTPError { isThrown = true }
            #expect(isThrown)
            let last = try await iterator.next()
            #expect(last?.isPreview == nil)
        }
    }

    @Test(
        "Cancelling after the first delivery cancels the network request", arguments: CacheMode.previews)
    func cancelled(_ mode: CacheMode) async throws {
        let counter = Counter()
        let signals = SignalBox()
        try await TestOrigin.withOrigin { _ in
            counter.add()
            guard counter.count > 1 else { return CacheScene.stale("a", "max-age=60") }
            try await signals.wait(for: "never")
            return CacheScene.answer("b")
        } run: { origin async throws in
            signals.use(origin)
            let (session, _) = try CacheScene.session()
            let url = origin.url()
            _ = try await session.get(url)
            let task = Task {
                var count = 0
                for try await delivery in session.deliveries(for: url, cache: mode) {
                    count += delivery.isPreview ? 1 : 100
                }
                return count
            }
            try await origin.waitForRequests(count: 2)
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            #expect(await eventually { session.diagnostics.isIdle })
        }
    }

    @Test("Leaving the loop after the first delivery sends no network request")
    func left() async throws {
        try await TestOrigin.withOrigin { _ in
            CacheScene.answer("a")
        } run: { origin async throws in
            let (session, _) = try CacheScene.session()
            _ = try await session.get(origin.url())
            for try await _ in session.deliveries(for: origin.url(), cache: .cacheThenRevalidate) {
                break
            }
            #expect(origin.requests.count == 1)
        }
    }
}

extension CacheMode {
    fileprivate static let previews: [CacheMode] = [.cacheThenNetwork, .cacheThenRevalidate]
}
