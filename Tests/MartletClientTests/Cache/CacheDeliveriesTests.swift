import Martlet
import MartletTesting
import Testing

@testable import MartletCaching
@testable import MartletCore

@Suite("Deliveries from the cache and then the network")
struct CacheDeliveriesTests {
    /// Returns the deliveries for a URL whose first response is stored, and the number of requests.
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

    @Test("A fresh response is the only delivery")
    func fresh() async throws {
        let result = try await deliveries(CacheScene.answer("a"), then: CacheScene.answer("b"))
        #expect(result.count == 1 && result.deliveries.map(\.exchange.text) == ["a"])
        #expect(
            result.deliveries.map(\.isFromCache) == [true] && result.deliveries.map(\.isPreview) == [false])
    }

    @Test("A stale response is delivered first, and then the validated response")
    func validated() async throws {
        let result = try await deliveries(
            CacheScene.stale("a", "max-age=60", ["ETag": "\"1\""]),
            then: OriginResponse(304, headers: ["ETag": "\"1\"", "Cache-Control": "max-age=600"]))
        #expect(result.deliveries.map(\.exchange.text) == ["a", "a"])
        #expect(result.deliveries.map(\.exchange.source) == [.staleCache, .validatedCache])
        #expect(result.deliveries.map(\.isFromCache) == [true, true])
        #expect(result.deliveries.map(\.isPreview) == [true, false])
    }

    @Test("A stale response is delivered first, and then the new response")
    func renewed() async throws {
        let result = try await deliveries(CacheScene.stale("a", "max-age=60"), then: CacheScene.answer("b"))
        #expect(result.deliveries.map(\.exchange.text) == ["a", "b"])
        #expect(result.deliveries.map(\.exchange.source) == [.staleCache, .network])
    }

    @Test("Without a stored response, the network's response is the only delivery")
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

    /// An outcome of the network request after a stale preview.
    enum Ending: CaseIterable {
        case replaced, unchanged, validated, serverError, reset, offline, cancelled

        /// Returns the network's response, or throws a fault.
        func response() throws -> OriginResponse {
            switch self {
            case .replaced: CacheScene.answer("b")
            case .unchanged: CacheScene.answer("a")
            case .validated: OriginResponse(304, headers: ["ETag": "\"1\""])
            case .serverError: OriginResponse(503, body: .text("later"))
            case .reset, .offline, .cancelled: throw OriginFault(.reset)
            }
        }

        /// The text and source of the final response, and whether it equals the preview; `nil` for an error.
        var final: (text: String, source: HTTPExchange.Source, isUnchanged: Bool)? {
            switch self {
            case .replaced: ("b", .network, false)
            case .unchanged: ("a", .network, true)
            case .validated: ("a", .validatedCache, true)
            case .serverError: ("later", .network, false)
            case .reset, .offline, .cancelled: nil
            }
        }
    }

    @Test("A preview is followed by a final response or an error", arguments: Ending.allCases)
    func ending(_ ending: Ending) async throws {
        let counter = Counter()
        let origin = try await TestOrigin.start { _ in
            counter.add()
            guard counter.count > 1 else {
                return CacheScene.stale("a", "max-age=60, stale-if-error=600", ["ETag": "\"1\""])
            }
            return try ending.response()
        }
        let (session, _) = try CacheScene.session()
        let url = origin.url()
        _ = try await session.get(url)
        let run = Task {
            var iterator = session.deliveries(for: url).makeAsyncIterator()
            let preview = try #require(try await iterator.next())
            #expect(preview.exchange.text == "a" && preview.isPreview && !preview.isUnchanged)
            if ending == .offline { await origin.stop() }
            if ending == .cancelled { unsafe withUnsafeCurrentTask { unsafe $0?.cancel() } }
            let outcome: Result<CacheThenNetworkResponse?, any Error>
            do { outcome = .success(try await iterator.next()) } catch { outcome = .failure(error) }
            // The sequence ends after an error, too.
            let last = try await iterator.next()
            #expect(last.map(\.isPreview) == nil)
            return try outcome.get()
        }
        switch await run.result {
        case .success(let response):
            let final = try #require(ending.final)
            #expect(response?.exchange.text == final.text && response?.exchange.source == final.source)
            #expect(response?.isPreview == false && response?.isUnchanged == final.isUnchanged)
        case .failure(let error):
            #expect(ending.final == nil && (error is CancellationError) == (ending == .cancelled))
            #expect((error is HTTPError) == (ending != .cancelled))
        }
        await origin.stop()
    }

    @Test("A preview is delivered while another call waits for the network")
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
