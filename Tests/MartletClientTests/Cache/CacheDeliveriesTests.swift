import Martlet
import MartletTesting
import Testing

@testable import MartletCaching
@testable import MartletCore

@Suite("What is stored at once, and then what the network says")
struct CacheDeliveriesTests {
    /// The deliveries behind one answer that is stored.
    private func deliveries(
        _ first: OriginResponse, then second: OriginResponse
    ) async throws -> (deliveries: [CacheThenNetworkResponse], count: Int) {
        let counter = Counter()
        return try await TestOrigin.withOrigin { _ in
            counter.add()
            return counter.count == 1 ? first : second
        } run: { origin async throws in
            let (session, _) = try CacheScene.session()
            _ = try await session.get(origin.url())
            var deliveries: [CacheThenNetworkResponse] = []
            for try await delivery in session.deliveries(for: origin.url()) {
                deliveries.append(delivery)
            }
            return (deliveries, origin.requests.count)
        }
    }

    @Test("What is fresh is all there is")
    func fresh() async throws {
        let result = try await deliveries(CacheScene.answer("a"), then: CacheScene.answer("b"))
        #expect(result.count == 1 && result.deliveries.map(\.exchange.text) == ["a"])
        #expect(
            result.deliveries.map(\.isFromCache) == [true] && result.deliveries.map(\.isPreview) == [false])
    }

    @Test("Behind what is stale comes that it is still good")
    func validated() async throws {
        let result = try await deliveries(
            CacheScene.stale("a", "max-age=60", ["ETag": "\"1\""]),
            then: OriginResponse(304, fields: ["ETag": "\"1\"", "Cache-Control": "max-age=600"]))
        #expect(result.deliveries.map(\.exchange.text) == ["a", "a"])
        #expect(result.deliveries.map(\.exchange.source) == [.staleCache, .validatedCache])
        #expect(result.deliveries.map(\.isFromCache) == [true, false])
        #expect(result.deliveries.map(\.isPreview) == [true, false])
    }

    @Test("Behind what is stale comes what is new")
    func renewed() async throws {
        let result = try await deliveries(CacheScene.stale("a", "max-age=60"), then: CacheScene.answer("b"))
        #expect(result.deliveries.map(\.exchange.text) == ["a", "b"])
        #expect(result.deliveries.map(\.exchange.source) == [.staleCache, .network])
    }

    @Test("What is sent anew and is the same does not come again")
    func same() async throws {
        let result = try await deliveries(CacheScene.stale("a", "max-age=60"), then: CacheScene.answer("a"))
        #expect(result.deliveries.map(\.exchange.text) == ["a"] && result.count == 2)
    }

    @Test("Where nothing is stored there is one")
    func miss() async throws {
        try await TestOrigin.withOrigin { _ in
            CacheScene.answer("a")
        } run: { origin async throws in
            let (session, _) = try CacheScene.session()
            var sources: [HTTPExchange.Source] = []
            for try await delivery in session.deliveries(for: origin.url()) {
                sources.append(delivery.exchange.source)
                #expect(!delivery.isFromCache && !delivery.isPreview)
            }
            #expect(sources == [.network])
        }
    }

    @Test("An error behind a preview is thrown, and ends the sequence")
    func error() async throws {
        let counter = Counter()
        try await TestOrigin.withOrigin { _ in
            counter.add()
            guard counter.count > 1 else { return CacheScene.stale("a", "max-age=60, stale-if-error=600") }
            throw OriginFault(.reset)
        } run: { origin async throws in
            let (session, _) = try CacheScene.session()
            _ = try await session.get(origin.url())
            var iterator = session.deliveries(for: origin.url()).makeAsyncIterator()
            let preview = try await iterator.next()
            #expect(preview?.exchange.text == "a")
            var isThrown = false
            do { _ = try await iterator.next() } catch is HTTPError { isThrown = true }
            #expect(isThrown)
            let behind = try await iterator.next()
            #expect(behind.map(\.isPreview) == nil)
        }
    }

    @Test("A preview comes while another call waits for the network")
    func previewMeanwhile() async throws {
        let signals = SignalBox()
        let counter = Counter()
        try await TestOrigin.withOrigin { _ in
            counter.add()
            guard counter.count > 1 else { return CacheScene.stale("a", "max-age=60") }
            try await signals.wait(for: "go")
            return CacheScene.answer("b")
        } run: { origin async throws in
            signals.use(origin)
            let (session, _) = try CacheScene.session()
            let url = origin.url()
            _ = try await session.get(url)
            let other = Task { try await session.get(url) }
            try await origin.waitForRequests(count: 2)
            var iterator = session.deliveries(for: url).makeAsyncIterator()
            let preview = try await iterator.next()
            #expect(preview?.exchange.text == "a" && preview?.isPreview == true)
            signals.raise("go")
            let second = try await iterator.next()
            #expect(second?.exchange.text == "b")
            #expect(try await other.value.text == "b")
        }
    }
}
