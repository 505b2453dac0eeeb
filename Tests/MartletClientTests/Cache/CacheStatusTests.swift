import Martlet
import MartletTesting
import MartletTestSupport
import Testing

/// A response counts as stored in `Cache-Status` once it is stored, and not because of its head.
@Suite("Cache-Status and the end of the body", .timeLimit(.minutes(20)))
struct CacheStatusTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let response: OriginResponse
        let isStored: Bool

        init(_ description: String, _ response: OriginResponse, isStored: Bool) {
            (testDescription, self.response, self.isStored) = (description, response, isStored)
        }
    }

    private static let fields: OriginFields = ["Cache-Control": "max-age=600"]

    /// The limit of a body is 20 KiB, an eighth of the memory.
    static let rows = [
        Row("a body with a length", .pattern(5000, headers: fields), isStored: true),
        Row(
            "a chunked body", OriginResponse.pattern(5000, headers: fields).with { $0.framing = .chunked(size: 500) },
            isStored: true),
        Row("a body that is too large", .pattern(50_000, headers: fields), isStored: false),
        Row(
            "a chunked body that turns out to be too large",
            OriginResponse.pattern(50_000, headers: fields).with { $0.framing = .chunked(size: 500) }, isStored: false),
        Row(
            "a body that is cut off",
            OriginResponse.pattern(5000, headers: fields).with { $0.fault = OriginFault(.cut, afterBodyBytes: 900) },
            isStored: false),
        Row("a response with no-store", .pattern(5000, headers: ["Cache-Control": "no-store"]), isStored: false),
    ]

    @Test("A response counts as stored after its body, and only if a later request finds it", arguments: rows)
    func end(_ row: Row) async throws {
        try await TestOrigin.withOrigin(handler: .fixed(row.response)) { origin in
            let (session, _) = try CacheScene.session(memory: .kibibytes(160))
            let (before, after) = try await session.stream(origin.url()) { response, body in
                let before = response.cacheStatus ?? ""
                do { for try await _ in body {} } catch is HTTPError {
                    // The body that is cut off.
                }
                return (before, response.cacheStatus ?? "")
            }
            // A small body may arrive and be stored with the head.
            #expect(before.hasPrefix("martlet; fwd=uri-miss; fwd-status=200"))
            #expect(row.isStored || !before.contains("stored"))
            #expect(after.hasPrefix(before) && after.hasSuffix("; stored") == row.isStored, "\(after)")
            let again = try? await session.get(origin.url())
            #expect((again?.source == .cache) == row.isStored)
        }
    }

    @Test("A response does not count as stored while its body arrives")
    func arriving() async throws {
        let signals = OriginSignals()
        let response = OriginResponse(
            headers: Self.fields,
            body: .stream(length: nil) { writer in
                try await writer.write("a")
                try await signals.wait(for: "head was read")
                try await writer.write("b")
            })
        try await TestOrigin.withOrigin(handler: .fixed(response)) { origin in
            let (session, _) = try CacheScene.session()
            try await session.stream(origin.url()) { response, body in
                #expect(response.cacheStatus?.contains("stored") == false)
                signals.raise("head was read")
                for try await _ in body {}
                #expect(response.cacheStatus?.hasSuffix("; stored") == true)
            }
        }
    }

    @Test("A collected response and a confirmed one have their final status, and a middleware sees the one so far")
    func collected() async throws {
        try await TestOrigin.withOrigin { request in
            guard request.headers["If-None-Match"] == nil else { return OriginResponse(304) }
            return CacheScene.answer("x", "max-age=0", ["ETag": "\"1\""])
        } run: { origin async throws in
            let seen = Shared<[String]>([])
            let (session, _) = try CacheScene.session {
                $0.middleware = [
                    ClosureMiddleware { request, _, next in
                        let response = try await next(request)
                        seen.withLock { $0.append(response.cacheStatus ?? "") }
                        return response
                    }
                ]
            }
            let first = try await session.get(origin.url())
            // The lifetime of zero seconds is reduced by the time that the response took.
            #expect(first.cacheStatus?.hasPrefix("martlet; fwd=uri-miss; fwd-status=200; ttl=") == true)
            #expect(first.cacheStatus?.hasSuffix("; stored") == true)
            // A 304 changes the stored head before the response is delivered.
            let second = try await session.get(origin.url())
            #expect(second.cacheStatus?.contains("fwd=stale; fwd-status=304; ") == true)
            #expect(second.cacheStatus?.hasSuffix("; stored") == true)
            #expect(seen.withLock { $0.count == 2 && $0.last?.hasSuffix("; stored") == true })
        }
    }
}
