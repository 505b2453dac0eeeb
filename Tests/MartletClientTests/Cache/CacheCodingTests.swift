@testable import MartletContent
import Martlet
import MartletTesting
import Testing

@testable import MartletCaching
@testable import MartletCore

@Suite("Content codings of stored responses")
struct CacheCodingTests {
    private static let text = String(repeating: "martlet ", count: 500)

    /// Compresses if the client accepts gzip, and compares entity tags weakly, as nginx does.
    private static func respond(_ request: OriginRequest, varies: Bool) -> OriginResponse {
        let isCoded = request.headers["Accept-Encoding"]?.contains("gzip") == true
        let tag = "\"1\""
        if request.headers["If-None-Match"]?.contains(tag) == true {
            return OriginResponse(304, headers: ["ETag": tag, "Cache-Control": "max-age=600"])
        }
        var answer = CacheScene.answer(text, "max-age=600", ["ETag": isCoded ? "W/" + tag : tag])
        if isCoded {
            answer.headers.append("Content-Encoding", "gzip")
            answer.body = .bytes(StoredCoding.gzip(Array(text.utf8)))
        }
        if varies { answer.headers.append("Vary", "Accept-Encoding") }
        return answer
    }

    @Test(
        "A response stored with gzip is only served to requests that accept gzip, even without Vary",
        arguments: [true, false], [true, false])
    func unaccepted(varies: Bool, hasDisk: Bool) async throws {
        let directory = try TemporaryDirectory()
        try await TestOrigin.withOrigin {
            CacheCodingTests.respond($0, varies: varies)
        } run: { origin async throws in
            let (session, _) = try CacheScene.session(hasDisk ? directory : nil)
            let url = origin.url()
            for _ in 0..<2 {
                let exchange = try await session.get(url)
                #expect(exchange.text == CacheCodingTests.text)
            }
            #expect(origin.requests.count == 1)
            let plain = try await session.get(url, options: RequestOptions(decompresses: false))
            #expect(plain.source == .network && plain.text == CacheCodingTests.text)
            let identity = try await session.get(
                url, headers: CacheScene.fields(("Accept-Encoding", "identity")))
            #expect(identity.text == CacheCodingTests.text)
        }
    }

    @Test("A request with its own Accept-Encoding gets the stored bytes without decoding")
    func asked() async throws {
        try await TestOrigin.withOrigin {
            CacheCodingTests.respond($0, varies: false)
        } run: { origin async throws in
            let (session, _) = try CacheScene.session()
            _ = try await session.get(origin.url())
            let wire = try await session.get(
                origin.url(), headers: CacheScene.fields(("Accept-Encoding", "gzip")))
            #expect(wire.source == .cache)
            #expect(wire.body == StoredCoding.gzip(Array(CacheCodingTests.text.utf8)))
        }
    }
}
