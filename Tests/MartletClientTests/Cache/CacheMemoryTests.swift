@testable import MartletCredentials
@testable import MartletContent
@testable import MartletURL
import Martlet
import MartletTesting
import Testing

@testable import MartletCaching
@testable import MartletCore
@testable import MartletStreams

/// Compares the fast path for responses in memory with the full path, which is used if a retry is possible.
@Suite("Fast path for responses in memory")
struct CacheMemoryTests {
    /// A request and the response that is stored for its URL.
    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var method = HTTPRequest.Method.get
        var fields = HTTPFields()
        var stored = CacheScene.answer("Hello, world!", "max-age=600", ["ETag": "\"1\""])
    }

    private static let rows = [
        Row(testDescription: "whole"),
        Row(testDescription: "nothing in it", stored: CacheScene.answer("")),
        Row(testDescription: "HEAD", method: .head),
        Row(testDescription: "a part", fields: [.range: "bytes=7-11"]),
        Row(testDescription: "no such part", fields: [.range: "bytes=70-"]),
        Row(testDescription: "not modified", fields: [.ifNoneMatch: "\"1\""]),
        Row(
            testDescription: "coded",
            stored: .encoded(StoredCoding.gzip(Array("Hello".utf8)), coding: "gzip").cached),
        Row(
            testDescription: "said to be coded, and is not",
            stored: CacheScene.answer("x", "max-age=600", ["Content-Encoding": "gzip"])),
        Row(testDescription: "a redirect", stored: OriginResponse.redirect(to: "/other", status: 301).cached),
        Row(testDescription: "not found", stored: OriginResponse.text("none", status: 404).cached),
        Row(
            testDescription: "stale, allowed by max-stale", fields: [.cacheControl: "max-stale"],
            stored: CacheScene.stale("old", "max-age=60")),
        Row(testDescription: "stale", stored: CacheScene.stale("old", "max-age=60")),
        Row(
            testDescription: "stale, validated in the background",
            stored: CacheScene.stale("old", CacheScene.staleWhileRevalidate)),
        Row(testDescription: "only-if-cached", fields: [.cacheControl: "only-if-cached"]),
        Row(testDescription: "not stored", stored: CacheScene.answer("x", "no-store")),
        Row(testDescription: "no-cache", fields: [.cacheControl: "no-cache"]),
    ]

    /// Returns the Cache-Status value without `ttl`, which changes during the test.
    private func timeless(_ status: String?) -> String {
        (status ?? "").split(separator: ";").filter { !$0.contains("ttl=") }.joined(separator: ";")
    }

    /// Describes the result of a row as text.
    private func outcome(_ row: Row, hasMore: Bool) async throws -> [String] {
        try await TestOrigin.withOrigin { request in
            request.path == "/" ? row.stored : .text("other")
        } run: { origin in
            let (session, cache) = try CacheScene.session {
                // Retries are possible but never happen, so this only disables the fast path.
                if hasMore { $0.retry.maximumAttempts = 2 }
            }
            var words: [String] = []
            for (method, fields) in [(HTTPRequest.Method.get, HTTPFields()), (row.method, row.fields)] {
                do {
                    let exchange = try await session.send(
                        HTTPRequest(method: method, url: try HTTPURL(origin.url("/")), headers: fields))
                    words += [
                        "\(exchange.response.status.code) \(exchange.source) \(timeless(exchange.cacheStatus))",
                        exchange.text, "\(exchange.metrics.attempts) \(exchange.metrics.hops.count)",
                        exchange.url.path,
                        exchange.response.headerFields.filter { $0.name != .age && $0.name != .date }
                            .description,
                    ]
                } catch let error as HTTPError {
                    words.append("\(error.code)")
                }
            }
            let statistics = cache.statistics
            words.append(
                "\(statistics.hits) \(statistics.staleHits) \(statistics.misses) \(statistics.bytesServed)")
            return words
        }
    }

    @Test("The fast path gives the same result as the full path", arguments: rows)
    func same(_ row: Row) async throws {
        #expect(try await outcome(row, hasMore: false) == outcome(row, hasMore: true))
    }

    @Test("A call with an event subscriber emits the same events from memory")
    func watched() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(CacheScene.answer("x"))) { origin in
            let (session, _) = try CacheScene.session()
            _ = try await session.get(origin.url("/"))
            let events = session.events
            let exchange = try await session.get(origin.url("/"))
            #expect(exchange.source == .cache)
            await session.finishAndInvalidate()
            let seen = await SessionEventTests.all(events).map(SessionEventTests.word)
            #expect(seen == ["started GET", "response 200 1", "finished", "invalidated"])
            #expect(origin.requests.count == 1)
        }
    }

    @Test("A task that is cancelled before its call throws CancellationError even if the response is in memory")
    func cancelled() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(CacheScene.answer("x"))) { origin in
            let (session, _) = try CacheScene.session()
            _ = try await session.get(origin.url("/"))
            let call = Task {
                unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
                return try await session.get(origin.url("/"))
            }
            await #expect(throws: CancellationError.self) { try await call.value }
        }
    }
}

extension OriginResponse {
    fileprivate var cached: OriginResponse { with { $0.headers.append("Cache-Control", "max-age=600") } }
}
