@testable import MartletURL
import Martlet
import MartletTesting
import MartletTestSupport
import Testing

@testable import MartletCaching
@testable import MartletCore

@Suite("Validation of entries that are lost")
struct CacheLostValidationTests {
    /// The way an entry is lost during its validation.
    enum Loss: String, CaseIterable, Sendable {
        case evicted, removed, wiped, invalidated, directoryRemoved, damaged
    }

    @Test(
        "A 304 for an entry that was evicted, removed, invalidated or damaged gives the whole body",
        arguments: Loss.allCases, [100, 100_000])
    func lost(_ loss: Loss, _ count: Int) async throws {
        let scene = try CacheFaultScene()
        let signals = SignalBox()
        let path = "/7/\(count)"
        try await TestOrigin.withOrigin { request in
            let whole = CacheFaultScene.answer(request)
            guard request.path == path, request.method == .get else { return whole }
            let fields: OriginFields = ["ETag": "\"1\"", "Cache-Control": "max-age=0"]
            guard request.headers["If-None-Match"] != nil else { return whole.with { $0.headers = fields } }
            try await signals.wait(for: "go")
            return OriginResponse(304, headers: fields)
        } run: { origin async throws in
            signals.use(origin)
            let cache = try await scene.openedCache(disk: .mebibytes(1))
            let session = scene.session(cache)
            try await CacheFaultScene.get(7, count, session, origin)
            let stored = scene.entryFiles
            #expect(stored.count == (count > 32_768 ? 2 : 1))
            let url = origin.url(path)
            let validated = Task { try await session.get(url) }
            try await origin.waitForRequests(count: 2)
            switch loss {
            case .evicted:
                for number in 10..<30 { try await CacheFaultScene.get(number, 100_000, session, origin) }
            case .removed: await cache.remove(try HTTPURL(url))
            case .wiped: await cache.removeAll()
            case .invalidated: _ = try await session.post(url, body: .bytes([1]))
            case .directoryRemoved:
                // A concurrent write can make the removal fail, so it is repeated.
                #expect(await eventually { (try? scene.remove()) != nil || scene.names.isEmpty })
            case .damaged:
                let name = try #require(stored.last)
                var bytes = try scene.contents(name)
                bytes[bytes.count / 2] ^= 1
                try scene.write(bytes, to: name)
            }
            if loss != .damaged { #expect(Set(scene.names).isDisjoint(with: stored)) }
            signals.raise("go")
            let exchange = try await validated.value
            #expect(exchange.statusCode == 200)
            #expect(exchange.body == TestPattern.bytes(from: 7, count: count))
            // The validation does not store an entry again that was removed on request.
            try await CacheFaultScene.get(7, count, session, origin)
            #expect(await scene.isTidy())
        }
    }

    @Test("A body that is found damaged after its 304 is requested again without conditions")
    func damagedBehind() async throws {
        let scene = try CacheFaultScene()
        try await TestOrigin.withOrigin { request in
            let fields: OriginFields = ["ETag": "\"1\"", "Cache-Control": "max-age=0"]
            if request.headers["If-None-Match"] != nil { return OriginResponse(304, headers: fields) }
            return CacheFaultScene.answer(request).with { $0.headers = fields }
        } run: { origin async throws in
            let session = scene.session(try await scene.openedCache())
            try await CacheFaultScene.get(1, 100_000, session, origin)
            let name = try #require(scene.bodyFiles.first)
            var bytes = try scene.contents(name)
            bytes[50_000] ^= 1
            try scene.write(bytes, to: name)
            #expect(try await CacheFaultScene.get(1, 100_000, session, origin) == .network)
            #expect(origin.requests.map { $0.headers["If-None-Match"] } == [nil, "\"1\"", nil])
            #expect(try await CacheFaultScene.get(1, 100_000, session, origin) == .validatedCache)
        }
    }

    @Test("A 304 with an unknown entity tag is followed by one request without conditions")
    func unknownTag() async throws {
        let scene = try CacheFaultScene()
        try await TestOrigin.withOrigin { request in
            if request.headers["If-None-Match"] != nil {
                return OriginResponse(304, headers: ["ETag": "\"other\""])
            }
            return CacheFaultScene.answer(request).with {
                $0.headers = ["ETag": "\"1\"", "Cache-Control": "max-age=0"]
            }
        } run: { origin async throws in
            let session = scene.session(try await scene.openedCache())
            try await CacheFaultScene.get(1, 1000, session, origin)
            #expect(try await CacheFaultScene.get(1, 1000, session, origin) == .network)
            #expect(origin.requests.map { $0.headers["If-None-Match"] } == [nil, "\"1\"", nil])
        }
    }

    @Test("Sessions that validate and evict in one small directory always get complete pages")
    func race() async throws {
        let scene = try CacheFaultScene()
        try await TestOrigin.withOrigin { request in
            let fields: OriginFields = ["ETag": "\"\(request.path)\"", "Cache-Control": "max-age=0"]
            if request.headers["If-None-Match"] == "\"\(request.path)\"" {
                return OriginResponse(304, headers: fields)
            }
            return CacheFaultScene.answer(request).with { $0.headers = fields }
        } run: { origin async throws in
            let caches = [
                try await scene.openedCache(disk: .kibibytes(600)),
                try await scene.openedCache(disk: .kibibytes(600)),
            ]
            let sessions = caches.map { scene.session($0) }
            let tally = Shared<[HTTPExchange.Source: Int]>([:])
            try await withThrowingTaskGroup(of: Void.self) { group in
                for worker in 0..<6 {
                    group.addTask {
                        for turn in 0..<60 {
                            let number = (turn * 5 + worker * 3) % 30
                            // Some bodies are stored in their entry, some in their own files.
                            let count = number % 3 == 0 ? 900 : 30_000 + number * 1000
                            let source = try await CacheFaultScene.get(
                                number, count, sessions[worker % 2], origin)
                            tally.withLock { $0[source, default: 0] += 1 }
                        }
                    }
                }
                try await group.waitForAll()
            }
            #expect(caches.reduce(0) { $0 + $1.statistics.evictions } > 0)
            #expect(tally.withLock { $0[.network, default: 0] } > 30)
            #expect(tally.withLock { $0[.cache, default: 0] + $0[.staleCache, default: 0] } == 0)
            #expect(await scene.isTidy())
        }
    }
}
