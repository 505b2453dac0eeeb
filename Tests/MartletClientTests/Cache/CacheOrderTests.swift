import Martlet
import MartletTesting
import MartletTestSupport
import Testing

@testable import MartletCaching
@testable import MartletCore

@Suite("Responses whose requests overlap")
struct CacheOrderTests {
    /// Makes a response with a date, which is fresh for decades.
    private static func answer(_ text: String, second: Int) -> OriginResponse {
        CacheScene.answer(
            text, "max-age=2000000000", ["Date": "Thu, 01 Jan 2026 00:00:0\(second) GMT"])
    }

    @Test(
        "A slow response does not replace a more recent one that was stored meanwhile",
        arguments: [true, false], [true, false])
    func slow(hasDisk: Bool, isOlder: Bool) async throws {
        let directory = try TemporaryDirectory()
        let (signals, counter) = (SignalBox(), Counter())
        try await TestOrigin.withOrigin { _ in
            guard counter.next() == 1 else { return CacheOrderTests.answer("second", second: 5) }
            return CacheOrderTests.answer("", second: isOlder ? 0 : 9).with {
                $0.body = .stream(length: 5) { writer in
                    try await writer.write(Array("fi".utf8))
                    try await signals.wait(for: "go")
                    try await writer.write(Array("rst".utf8))
                }
            }
        } run: { origin async throws in
            signals.use(origin)
            let (session, cache) = try CacheScene.session(
                hasDisk ? directory : nil, memory: hasDisk ? .bytes(0) : .mebibytes(1))
            // Another session has no transfer in common with the first one.
            let other = HTTPSession.own { $0.cache = cache }
            let url = origin.url()
            let slow = Task { try await session.get(url).text }
            #expect(await eventually { session.core.flights.all.contains { $0.network != nil } })
            #expect(try await other.get(url).text == "second")
            #expect(cache.statistics.stores == 1)
            signals.raise("go")
            #expect(try await slow.value == "first")
            #expect(await eventually { session.diagnostics.isIdle })
            let stored = try await session.get(url)
            #expect(stored.source == .cache && stored.text == (isOlder ? "second" : "first"))
            #expect(origin.requests.count == 2)
        }
    }

    @Test(
        "A response that is not stored outdates those to earlier requests, whether or not they are stored already",
        arguments: [true, false], [true, false])
    func notStored(hasDisk: Bool, isStoredBefore: Bool) async throws {
        let directory = try TemporaryDirectory()
        let signals = SignalBox()
        try await TestOrigin.withOrigin { request in
            guard request.headers["X-Gone"] == nil else {
                if isStoredBefore { try await signals.wait(for: "go") }
                return OriginResponse(404, headers: ["Cache-Control": "no-store"])
            }
            return CacheScene.answer("").with {
                $0.body = .stream(length: 5) { writer in
                    try await writer.write(Array("fi".utf8))
                    if !isStoredBefore { try await signals.wait(for: "go") }
                    try await writer.write(Array("rst".utf8))
                }
            }
        } run: { origin async throws in
            signals.use(origin)
            let (session, cache) = try CacheScene.session(
                hasDisk ? directory : nil, memory: hasDisk ? .bytes(0) : .mebibytes(1))
            let url = origin.url()
            let gone = CacheScene.fields(("X-Gone", "1"))
            if isStoredBefore {
                let missing = Task { try await session.get(url, headers: gone).statusCode }
                try await origin.waitForRequests(count: 1)
                #expect(try await session.get(url).text == "first")
                #expect(await eventually { cache.statistics.stores == 1 })
                signals.raise("go")
                #expect(try await missing.value == 404)
            } else {
                let slow = Task { try await session.get(url).text }
                #expect(await eventually { session.core.flights.all.contains { $0.network != nil } })
                #expect(try await session.get(url, headers: gone).statusCode == 404)
                signals.raise("go")
                #expect(try await slow.value == "first")
                #expect(cache.statistics.stores == 0)
            }
            #expect(try await session.get(url).source == .network)
        }
    }
}
