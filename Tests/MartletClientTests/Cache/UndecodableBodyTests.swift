@testable import MartletContent
import Martlet
import MartletTesting
import MartletTestSupport
import Testing

@testable import MartletCaching
@testable import MartletCore

@Suite("Stored bodies that cannot be decoded")
struct UndecodableBodyTests {
    /// The position of a broken byte: nothing can be decoded, or the error is found after the last byte.
    enum Break: CaseIterable, Sendable {
        case header, checksum
    }

    private static let whole = TestPattern.bytes(from: 0, count: 200_000)

    /// Returns compressed responses; the first `count` are broken.
    private static func coded(
        broken count: Int = 1, at place: Break = .checksum, _ control: String = "max-age=600"
    ) -> @Sendable (OriginRequest) -> OriginResponse {
        let counter = Counter()
        return { request in
            counter.add()
            if request.headers["If-None-Match"] != nil {
                return OriginResponse(304, headers: ["ETag": "\"1\"", "Cache-Control": control])
            }
            var body = StoredCoding.gzip(whole)
            if counter.count <= count { body[place == .header ? 0 : body.count - 5] ^= 1 }
            return CacheScene.answer("", control, ["Content-Encoding": "gzip", "ETag": "\"1\""]).with {
                $0.body = .bytes(body)
            }
        }
    }

    /// Options that return the body as it was received, broken or not.
    private static let asItStands = RequestOptions(decompresses: false)

    private static func fails(_ body: () async throws -> Void) async -> Bool {
        do {
            try await body()
        } catch let error as HTTPError {
            return error.code == .contentDecodingFailed
        } catch {
            return false
        }
        return false
    }

    /// Runs a test with a session whose cache uses only memory or only a directory.
    private static func with(
        _ respond: @escaping @Sendable (OriginRequest) -> OriginResponse, hasDisk: Bool = false,
        _ body: (HTTPSession, ResponseCache, TestOrigin) async throws -> Void
    ) async throws {
        let directory = try TemporaryDirectory()
        try await TestOrigin.withOrigin {
            respond($0)
        } run: { origin async throws in
            let (session, cache) = try CacheScene.session(
                hasDisk ? directory : nil, memory: hasDisk ? .bytes(0) : .mebibytes(32))
            try await body(session, cache, origin)
        }
    }

    @Test(
        "An undecodable body from the network is an error and is not served again", arguments: Break.allCases,
        [true, false])
    func asItComes(place: Break, hasDisk: Bool) async throws {
        try await UndecodableBodyTests.with(UndecodableBodyTests.coded(at: place), hasDisk: hasDisk) {
            session, _, origin async throws in
            let url = origin.url()
            #expect(await UndecodableBodyTests.fails { _ = try await session.get(url) })
            let next = try await session.get(url)
            #expect(next.source == .network && next.body == UndecodableBodyTests.whole)
            #expect(try await session.get(url).source == .cache)
            #expect(origin.requests.count == 2)
        }
    }

    @Test(
        "A stored body that cannot be decoded is fetched again", arguments: Break.allCases,
        [true, false])
    func stored(place: Break, hasDisk: Bool) async throws {
        let files = try TemporaryDirectory()
        for isDownload in [false, true] {
            let respond = UndecodableBodyTests.coded(at: place)
            try await UndecodableBodyTests.with(respond, hasDisk: hasDisk) {
                session, cache, origin async throws in
                let url = origin.url()
                let raw = try await session.get(url, options: UndecodableBodyTests.asItStands)
                #expect(raw.body.count > UndecodableBodyTests.whole.count)
                if isDownload {
                    let answer = try await session.save(
                        HTTPRequest(method: .get, url: url), to: files.path("whole"), overwrites: false)
                    #expect(answer.source == .network)
                    #expect(try files.bytes(of: "whole") == UndecodableBodyTests.whole)
                } else {
                    let answer = try await session.get(url)
                    #expect(answer.source == .network && answer.body == UndecodableBodyTests.whole)
                }
                #expect(cache.statistics.removals == 1)
                #expect(try await session.get(url).source == .cache)
                #expect(origin.requests.count == 2)
            }
        }
    }

    @Test("A validated body that cannot be decoded is fetched again without conditions")
    func validated() async throws {
        let respond = UndecodableBodyTests.coded("max-age=0")
        try await UndecodableBodyTests.with(respond) { session, _, origin async throws in
            _ = try await session.get(origin.url(), options: UndecodableBodyTests.asItStands)
            let answer = try await session.get(origin.url())
            #expect(answer.source == .network && answer.body == UndecodableBodyTests.whole)
            #expect(
                origin.requests.map { $0.headers["If-None-Match"] != nil } == [false, true, false])
            #expect(try await session.get(origin.url()).source == .validatedCache)
        }
    }

    @Test("A stream of an undecodable stored body throws, and the next request uses the network")
    func streamed() async throws {
        try await UndecodableBodyTests.with(UndecodableBodyTests.coded(), hasDisk: true) {
            session, _, origin async throws in
            _ = try await session.get(origin.url(), options: UndecodableBodyTests.asItStands)
            let request = try HTTPRequest(.get, origin)
            let received = Shared(0)
            #expect(
                await UndecodableBodyTests.fails {
                    try await session.stream(request) { _, body in
                        for try await piece in body { received.withLock { $0 += piece.count } }
                    }
                })
            #expect(received.withLock { $0 } > 0 && origin.requests.count == 1)
            let next = try await session.get(origin.url())
            #expect(next.source == .network && next.body == UndecodableBodyTests.whole)
            #expect(origin.requests.count == 2)
        }
    }

    @Test("All readers of a shared undecodable body get the error, and the next request fetches it again")
    func shared() async throws {
        try await CacheScene.withHeldOrigin(UndecodableBodyTests.coded()) { origin, signals async throws in
            let (session, _) = try CacheScene.session()
            let url = origin.url()
            let tasks = (0..<5).map { _ in Task { try await session.get(url) } }
            #expect(await eventually { session.core.flights.memberCount == 5 })
            signals.raise("go")
            for task in tasks { #expect(await UndecodableBodyTests.fails { _ = try await task.value }) }
            #expect(origin.requests.count == 1)
            #expect(try await session.get(url).body == UndecodableBodyTests.whole)
            #expect(try await session.get(url).source == .cache)
            #expect(origin.requests.count == 2)
        }
    }

    @Test("With onlyIfCached, an undecodable stored body gives a 504 and is removed")
    func offline() async throws {
        try await UndecodableBodyTests.with(UndecodableBodyTests.coded()) {
            session, cache, origin async throws in
            _ = try await session.get(origin.url(), options: UndecodableBodyTests.asItStands)
            let answer = try await session.get(origin.url(), options: CacheScene.mode(.onlyIfCached))
            #expect(answer.statusCode == 504 && cache.statistics.memoryEntries == 0)
            #expect(origin.requests.count == 1)
        }
    }

    @Test("A stored body above the decompression limit of one session stays stored for others")
    func tooLarge() async throws {
        try await UndecodableBodyTests.with(UndecodableBodyTests.coded(broken: 0)) {
            session, _, origin async throws in
            let url = origin.url()
            #expect(try await session.get(url).body == UndecodableBodyTests.whole)
            let narrow = session.with { $0.decompressionLimits = DecompressionLimits(maximumByteCount: 1000) }
            for _ in 0..<2 {
                let error = await #expect(throws: HTTPError.self) { try await narrow.get(url) }
                #expect(error?.code == .bodyTooLarge)
            }
            #expect(try await session.get(url).source == .cache)
            #expect(origin.requests.count == 1)
        }
    }
}
