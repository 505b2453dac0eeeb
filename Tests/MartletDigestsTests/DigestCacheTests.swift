import Martlet
import MartletTesting
import MartletTestSupport
import Synchronization
import Testing

@Suite("Digest fields: verification with a cache")
struct DigestCacheTests {
    /// Returns a storable response; the first of an origin is damaged, unless that is `nil`.
    private static func response(_ number: Int, damaged: Int? = 1, digest: Bool = true) throws -> OriginResponse {
        let value = try DigestScene.field(DigestScene.bytes, .sha256)
        return .text(number == damaged ? "hello, w0rld" : DigestScene.text, headers: ["Cache-Control": "max-age=600"])
            .with {
                if digest { $0.headers.append("Content-Digest", value) }
            }
    }

    private static func session(_ policy: DigestVerificationPolicy, _ cache: ResponseCache) -> HTTPSession {
        DigestScene.session(policy) { $0.cache = cache }
    }

    /// Runs a test with a cache in memory, and one on disk.
    private static func withCaches(_ body: (ResponseCache) async throws -> Void) async throws {
        try await body(.memoryOnly(.mebibytes(1), options: .withoutPressure))
        try await DigestScene.withFile { path in try await body(.at(path, memory: 0, options: .withoutPressure)) }
    }

    @Test("A mismatch is not stored, and the next call fetches the response", arguments: Reading.allCases)
    func notStored(_ reading: Reading) async throws {
        try await Self.withCaches { cache in
            let count = Counter()
            try await TestOrigin.withOrigin { _ in
                try Self.response(count.next())
            } run: { origin in
                let session = Self.session(.whenPresent, cache)
                await DigestScene.expectMismatch { try await reading.body(of: origin.url(), with: session) }
                #expect(try await reading.body(of: origin.url(), with: session) == DigestScene.bytes)
                let stored = try await session.get(origin.url())
                #expect(stored.text == DigestScene.text && stored.source == .cache)
                #expect(origin.requests.count == 2)
            }
        }
    }

    @Test("A damaged response that was stored without verification is fetched again")
    func storedWithoutVerification() async throws {
        try await Self.withCaches { cache in
            let count = Counter()
            try await TestOrigin.withOrigin { _ in
                try Self.response(count.next())
            } run: { origin in
                #expect(try await Self.session(.off, cache).get(origin.url()).text == "hello, w0rld")
                let session = Self.session(.whenPresent, cache)
                let fetched = try await session.get(origin.url())
                #expect(fetched.text == DigestScene.text && fetched.source == .network)
                #expect(try await session.get(origin.url()).source == .cache)
                #expect(origin.requests.count == 2)
            }
        }
    }

    @Test("A stream of a damaged stored response fails, and removes it", arguments: [Reading.streamed, .opened])
    func streamedFromStore(_ reading: Reading) async throws {
        try await Self.withCaches { cache in
            let count = Counter()
            try await TestOrigin.withOrigin { _ in
                try Self.response(count.next())
            } run: { origin in
                _ = try await Self.session(.off, cache).get(origin.url())
                let session = Self.session(.whenPresent, cache)
                let error = await #expect(throws: HTTPError.self) {
                    try await reading.body(of: origin.url(), with: session)
                }
                #expect(error?.code == .cachedBodyCorrupted)
                #expect(try await reading.body(of: origin.url(), with: session) == DigestScene.bytes)
            }
        }
    }

    @Test("A stored response without a digest is not used if one is required")
    func requiredFromStore() async throws {
        try await Self.withCaches { cache in
            let count = Counter()
            try await TestOrigin.withOrigin { _ in
                let number = count.next()
                return try Self.response(number, damaged: nil, digest: number > 1)
            } run: { origin in
                _ = try await Self.session(.whenPresent, cache).get(origin.url())
                let session = Self.session(.required, cache)
                #expect(try await session.get(origin.url()).source == .network)
                #expect(try await session.get(origin.url()).source == .cache)
                #expect(origin.requests.count == 2)
            }
        }
    }

    @Test("Parts, heads and confirmed responses from the store are accepted")
    func otherUses() async throws {
        let cache = ResponseCache.memoryOnly(.mebibytes(1), options: .withoutPressure)
        let value = try DigestScene.field(DigestScene.bytes, .sha256)
        try await TestOrigin.withOrigin { request in
            if request.headers["If-None-Match"] != nil {
                // The digest of a 304 is that of no content.
                let empty = try DigestScene.field([], .sha256)
                return OriginResponse(
                    304, headers: ["ETag": "\"a\"", "Content-Digest": empty, "Repr-Digest": empty])
            }
            return .text(
                DigestScene.text,
                headers: [
                    "Cache-Control": "max-age=600", "ETag": "\"a\"", "Content-Digest": value, "Repr-Digest": value,
                ])
        } run: { origin in
            let session = Self.session(.whenPresent, cache)
            _ = try await session.get(origin.url())
            let part = try await session.get(origin.url(), headers: ["Range": "bytes=1-3"])
            #expect(part.statusCode == 206 && part.text == "ell" && part.source == .cache)
            #expect(part.headers[.contentDigest] == nil)
            #expect(try await session.get(origin.url(), headers: ["Range": "bytes=99-"]).statusCode == 416)
            #expect(try await session.head(origin.url()).source == .cache)
            let confirmed = try await session.get(origin.url(), options: .init { $0.cacheMode = .revalidate })
            #expect(confirmed.text == DigestScene.text && confirmed.source == .validatedCache)
            #expect(origin.requests.count == 2)
        }
    }

    @Test("Concurrent calls share one transfer, and all of them fail with a mismatch")
    func shared() async throws {
        try await TestOrigin.withOrigin { _ in
            try Self.response(1).with { $0.framing = .chunked(size: 4) }
        } run: { origin in
            let session = DigestScene.session { $0.sharesTransfers = true }
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<8 {
                    group.addTask { _ = await DigestScene.expectMismatch { try await session.get(origin.url()).text } }
                }
            }
        }
    }

    @Test("The digest of an encoded response is verified in the store, too")
    func encoded() async throws {
        try await Self.withCaches { cache in
            let encoded = StoredCoding.gzip(DigestScene.bytes)
            let value = try DigestScene.field(encoded, .sha512)
            try await TestOrigin.withOrigin { _ in
                .encoded(encoded, coding: "gzip", headers: ["Cache-Control": "max-age=600", "Repr-Digest": value])
            } run: { origin in
                let session = Self.session(.required, cache)
                for source in [HTTPExchange.Source.network, .cache] {
                    let exchange = try await session.get(origin.url())
                    #expect(exchange.text == DigestScene.text && exchange.source == source)
                }
            }
        }
    }
}

/// A counter of requests.
final class Counter: Sendable {
    private let count = Atomic(0)

    /// Returns the next number; the first is 1.
    func next() -> Int { count.add(1, ordering: .relaxed).newValue }
}
