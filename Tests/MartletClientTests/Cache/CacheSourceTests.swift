import Martlet
import MartletTesting
import MartletTestSupport
import Testing

@testable import MartletCaching
@testable import MartletCore

@Suite("Sources of responses")
struct CacheSourceTests {
    /// A way to obtain a response.
    enum Way: CaseIterable {
        case missing, memory, disk, part, head, condition
        case validated, replaced, staleAllowed, staleWhileRevalidating, staleOnError
        case reload, noStore, post, onlyIfCached, onlyIfCachedMissing

        var source: HTTPExchange.Source {
            switch self {
            case .memory, .disk, .part, .head, .condition, .onlyIfCached, .onlyIfCachedMissing: .cache
            case .validated: .validatedCache
            case .staleAllowed, .staleWhileRevalidating, .staleOnError: .staleCache
            case .missing, .replaced, .reload, .noStore, .post: .network
            }
        }

        var status: Int {
            switch self {
            case .part: 206
            case .condition: 304
            case .onlyIfCachedMissing: 504
            default: 200
            }
        }

        /// Whether the stored response is stale.
        private var isStale: Bool {
            switch self {
            case .validated, .replaced, .staleAllowed, .staleWhileRevalidating, .staleOnError: true
            default: false
            }
        }

        var first: OriginResponse {
            let control =
                "max-age=60, stale-if-error=600"
                + (self == .staleWhileRevalidating ? ", stale-while-revalidate=600" : "")
            let fields: OriginFields = ["ETag": "\"1\""]
            return isStale ? CacheScene.stale("a", control, fields) : CacheScene.answer("a", control, fields)
        }

        var second: OriginResponse {
            switch self {
            case .validated: OriginResponse(304, headers: ["ETag": "\"1\""])
            case .staleOnError: OriginResponse(503)
            default: CacheScene.answer("b", "max-age=60", ["ETag": "\"2\""])
            }
        }

        func request(_ url: String) throws -> HTTPRequest {
            var request = try HTTPRequest(method: self == .post ? .post : self == .head ? .head : .get, url: url)
            if self == .part { request.headerFields[.range] = "bytes=0-0" }
            if self == .condition { request.headerFields[.ifNoneMatch] = "\"1\"" }
            return request
        }

        var mode: CacheMode {
            switch self {
            case .reload: .reload
            case .noStore: .noStore
            case .staleAllowed: .preferCache
            case .onlyIfCached, .onlyIfCachedMissing: .onlyIfCached
            default: .standard
            }
        }
    }

    @Test(
        "Each way to obtain a response reports its source, in memory and on disk",
        arguments: Way.allCases, [false, true])
    func source(_ way: Way, onDisk: Bool) async throws {
        if way == .disk, !onDisk { return }
        let directory = try TemporaryDirectory()
        let counter = Counter()
        try await TestOrigin.withOrigin { _ in
            counter.add()
            return counter.count == 1 ? way.first : way.second
        } run: { origin async throws in
            let isInMemory = !onDisk || way == .memory
            let (session, _) = try CacheScene.session(
                onDisk ? directory : nil, memory: isInMemory ? .mebibytes(32) : .bytes(0))
            let url = origin.url()
            if way != .missing, way != .onlyIfCachedMissing { _ = try await session.get(url) }
            let exchange = try await session.send(way.request(url), options: CacheScene.mode(way.mode))
            #expect(exchange.source == way.source && exchange.statusCode == way.status)
        }
    }

    @Test("Calls that share a transfer report network, and calls that share a validation validatedCache")
    func shared() async throws {
        for isValidation in [false, true] {
            let signals = SignalBox()
            let counter = Counter()
            try await TestOrigin.withOrigin { _ in
                counter.add()
                if isValidation, counter.count == 1 { return CacheScene.stale("a", "max-age=60", ["ETag": "\"1\""]) }
                try await signals.wait(for: "go")
                return isValidation ? OriginResponse(304, headers: ["ETag": "\"1\""]) : CacheScene.answer("a")
            } run: { origin async throws in
                signals.use(origin)
                let (session, _) = try CacheScene.session()
                let url = origin.url()
                if isValidation { _ = try await session.get(url) }
                let calls = (0..<3).map { _ in Task { try await session.get(url) } }
                #expect(await eventually { session.core.flights.memberCount == 3 })
                signals.raise("go")
                var connectionCount = 0
                for call in calls {
                    let exchange = try await call.value
                    #expect(exchange.source == (isValidation ? .validatedCache : .network))
                    if exchange.metrics.connection != nil { connectionCount += 1 }
                }
                #expect(connectionCount == 1)
            }
        }
    }
}
