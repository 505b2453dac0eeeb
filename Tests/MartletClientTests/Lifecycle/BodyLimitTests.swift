import Martlet
import MartletTesting
import Testing

@Suite("Limits of collected bodies")
struct BodyLimitTests {
    private func origin<Value>(
        _ byteCount: UInt64, isChunked: Bool, run body: (TestOrigin) async throws -> Value
    ) async throws -> Value {
        let response = OriginResponse.pattern(byteCount).with { response in
            if isChunked { response.framing = .chunked() }
        }
        return try await TestOrigin.withOrigin(handler: .fixed(response), run: body)
    }

    @Test(
        "A body one byte above the session's limit is rejected, and one at the limit is accepted",
        arguments: [false, true])
    func sessionLimit(isChunked: Bool) async throws {
        try await origin(1000, isChunked: isChunked) { origin in
            let exact = HTTPSession.own { $0.bufferedBodyLimit = .bytes(1000) }
            #expect(try await exact.get(origin.url()).body.count == 1000)
            let below = HTTPSession.own { $0.bufferedBodyLimit = .bytes(999) }
            let error = try #require(
                await #expect(throws: HTTPError.self) { try await below.get(origin.url()) })
            #expect(error.code == .bodyTooLarge)
            #expect(error.phase == .receivingBody)
            #expect(error.message.contains("999"))
            #expect(below.poolStatus.leased == 0)
        }
    }

    @Test(
        "The default limit is 16 MiB, and a larger announced length is rejected before reading",
        arguments: [false, true])
    func defaultLimit(isChunked: Bool) async throws {
        try await origin(1 << 40, isChunked: isChunked) { origin in
            let session = HTTPSession.own()
            let error = try #require(
                await #expect(throws: HTTPError.self) { try await session.get(origin.url()) })
            #expect(error.code == .bodyTooLarge)
            try await origin.recorder.waitForOpenConnections(atMost: 0)
            let taken = try KernelBuffers.most() + 2 << 20
            if !isChunked { #expect(origin.recorder.counts.bytesSent < taken) }
        }
    }

    @Test("A call's limit overrides the session's, in both directions")
    func callLimit() async throws {
        try await origin(1000, isChunked: true) { origin in
            let session = HTTPSession.own { $0.bufferedBodyLimit = .bytes(10) }
            let more = RequestOptions(bodyLimit: .bytes(1000))
            #expect(try await session.get(origin.url(), options: more).body.count == 1000)
            let less = RequestOptions(bodyLimit: .bytes(999))
            let error = try #require(
                await #expect(throws: HTTPError.self) {
                    try await HTTPSession.own().get(origin.url(), options: less)
                })
            #expect(error.code == .bodyTooLarge)
        }
    }

    @Test("Streams have no limit unless the call sets one")
    func streams() async throws {
        try await origin(1 << 20, isChunked: false) { origin in
            let session = HTTPSession.own { $0.bufferedBodyLimit = .bytes(10) }
            let count = try await session.stream(HTTPRequest(.get, origin)) { _, body in
                var count = 0
                for try await piece in body { count += piece.count }
                return count
            }
            #expect(count == 1 << 20)
            let error = try #require(
                await #expect(throws: HTTPError.self) {
                    try await session.stream(
                        HTTPRequest(.get, origin), options: RequestOptions(bodyLimit: .kibibytes(100))
                    ) { _, body in for try await _ in body {} }
                })
            #expect(error.code == .bodyTooLarge)
        }
    }

    @Test("Collecting from a stream has its own limit")
    func collecting() async throws {
        try await origin(1000, isChunked: true) { origin in
            let session = HTTPSession.own()
            let exact = try await session.stream(HTTPRequest(.get, origin)) { _, body in
                try await body.collect(upTo: .bytes(1000))
            }
            #expect(exact == TestPattern.bytes(from: 0, count: 1000))
            let error = try #require(
                await #expect(throws: HTTPError.self) {
                    try await session.stream(HTTPRequest(.get, origin)) { _, body in
                        try await body.collect(upTo: .bytes(999))
                    }
                })
            #expect(error.code == .bodyTooLarge)
        }
    }

    @Test("A rejected body closes only its own connection")
    func nextCall() async throws {
        try await origin(1000, isChunked: true) { origin in
            let session = HTTPSession.own()
            await #expect(throws: HTTPError.self) {
                try await session.get(origin.url(), options: RequestOptions(bodyLimit: .bytes(10)))
            }
            let exchange = try await session.get(origin.url())
            #expect(exchange.body.count == 1000)
        }
    }
}
