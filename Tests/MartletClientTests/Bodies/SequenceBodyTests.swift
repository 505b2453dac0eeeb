import Martlet
import MartletTesting
import MartletTestSupport
import Testing

@Suite("Bodies from sequences, and forms from pairs", .timeLimit(.minutes(20)))
struct SequenceBodyTests {
    private struct Broken: Error {}

    /// A sequence of single bytes, repeated endlessly with `isEndless`.
    private struct Bytes: AsyncSequence, Sendable {
        let bytes: [UInt8]
        var isEndless = false
        var error: Broken?

        struct Iterator: AsyncIteratorProtocol {
            let bytes: Bytes
            var index = 0
            mutating func next() async throws -> UInt8? {
                if index >= bytes.bytes.count {
                    if let error = bytes.error { throw error }
                    guard bytes.isEndless else { return nil }
                    index = 0
                }
                index += 1
                return bytes.bytes[index - 1]
            }
        }
        func makeAsyncIterator() -> Iterator { Iterator(bytes: self) }
    }

    private static let pattern = (0..<50_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }

    /// Bodies with the same bytes, from synchronous and asynchronous sequences.
    static let makers: [(name: String, make: @Sendable (UInt64?) -> HTTPBody)] = [
        ("generator", { .once(AnySequence { SequenceBodyTests.pattern.makeIterator() }, length: $0) }),
        ("lazy", { .once((0..<50_000).lazy.map { UInt8(truncatingIfNeeded: $0 &* 31) }, length: $0) }),
        ("array", { .once(SequenceBodyTests.pattern, length: $0) }),
        ("asynchronous bytes", { .once(Bytes(bytes: SequenceBodyTests.pattern), length: $0) }),
        (
            "asynchronous pieces",
            {
                let (pieces, giver) = AsyncStream<[UInt8]>.makeStream()
                for piece in [SequenceBodyTests.pattern, []] { giver.yield(piece) }
                giver.finish()
                return .once(pieces, length: $0)
            }
        ),
    ]

    @Test("A sequence is sent once and completely, with a length or in chunks", arguments: makers.indices)
    func sent(_ index: Int) async throws {
        try await TestOrigin.withOrigin { request in
            .bytes(try await request.collectBody())
        } run: { origin in
            let session = HTTPSession.own()
            for length in [nil, 50_000] as [UInt64?] {
                let body = SequenceBodyTests.makers[index].make(length)
                #expect(body.replay == .once && body.length == length)
                let exchange = try await session.post(origin.url(), body: body)
                #expect(exchange.body == SequenceBodyTests.pattern)
                #expect(origin.requests.last?.headers["Content-Length"] == length.map { "\($0)" })
            }
        }
    }

    @Test("Reading a sequence a second time is a typed error", arguments: makers.indices)
    func secondRead(_ index: Int) async throws {
        try await TestOrigin.withOrigin { request in
            _ = try await request.collectBody()
            return request.path == "/moved" ? .redirect(to: "/there", status: 307) : .text("ok")
        } run: { origin in
            let session = HTTPSession.own()
            let body = SequenceBodyTests.makers[index].make(nil)
            _ = try await session.post(origin.url(), body: body)
            let error = await #expect(throws: HTTPError.self) {
                try await session.post(origin.url(), body: body)
            }
            #expect(error?.code == .bodyNotReplayable)
            // A redirect that keeps the body is not followed once the body was read.
            let moved = SequenceBodyTests.makers[index].make(nil)
            let exchange = try? await session.post(origin.url("/moved"), body: moved)
            #expect(exchange == nil || exchange?.statusCode == 307)
            #expect(!origin.requests.contains { $0.target == "/there" })
        }
    }

    @Test("A sequence that does not have its announced length fails the call", arguments: makers.indices)
    func wrongLength(_ index: Int) async throws {
        try await TestOrigin.withOrigin { request in
            _ = try await request.collectBody()
            return .text("ok")
        } run: { origin in
            for length in [49_999, 50_001] as [UInt64] {
                let error = await #expect(throws: HTTPError.self) {
                    try await HTTPSession.own().post(
                        origin.url(), body: SequenceBodyTests.makers[index].make(length))
                }
                #expect(error?.code == .bodyLengthMismatch)
            }
        }
    }

    @Test("An error of a sequence fails the call and is its underlying error")
    func failing() async throws {
        try await TestOrigin.withOrigin { request in
            _ = try await request.collectBody()
            return .text("ok")
        } run: { origin in
            let error = await #expect(throws: HTTPError.self) {
                try await HTTPSession.own().post(
                    origin.url(), body: .once(Bytes(bytes: [1, 2, 3], error: Broken())))
            }
            #expect(error?.code == .bodySourceFailed && error?.underlying is Broken)
        }
    }

    @Test(
        "An endless sequence is read at the server's speed and ends on cancellation",
        arguments: [true, false])
    func endless(isAsynchronous: Bool) async throws {
        try await TestOrigin.withOrigin { request in
            var iterator = request.body.makeAsyncIterator()
            _ = try await iterator.next()
            try await Task.sleep(for: .seconds(3600))
            return .text("never")
        } run: { origin in
            let session = HTTPSession.own()
            let task = Task {
                let body: HTTPBody =
                    isAsynchronous
                    ? .once(Bytes(bytes: [7], isEndless: true))
                    : .once(repeatElement(UInt8(7), count: .max))
                return try await session.post(origin.url(), body: body)
            }
            try await origin.waitForRequests(count: 1)
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            #expect(await eventually { session.diagnostics.isIdle })
        }
    }

    @Test("After an error of a sequence, reading its body again throws the error, and does not end")
    func failedSequence() async throws {
        let body = Bytes(bytes: Array("part".utf8), error: Broken())
        try await TestOrigin.withOrigin(handler: .fixed(.text("whole"))) { origin in
            let session = HTTPSession.own {
                $0.middleware = [
                    ClosureMiddleware { request, _, next in
                        var response = try await next(request)
                        response.setBody(Pieces(body))
                        return response
                    }
                ]
            }
            try await session.stream(origin.url()) { _, body in
                for _ in 0..<3 {
                    await #expect(throws: Broken.self) { for try await _ in body {} }
                    await #expect(throws: Broken.self) { try await body.collect() }
                }
            }
        }
    }

    /// The bytes of another sequence, one in each piece.
    private struct Pieces: AsyncSequence, Sendable {
        let bytes: Bytes

        init(_ bytes: Bytes) { self.bytes = bytes }

        struct Iterator: AsyncIteratorProtocol {
            var inner: Bytes.Iterator
            mutating func next() async throws -> [UInt8]? { try await inner.next().map { [$0] } }
        }
        func makeAsyncIterator() -> Iterator { Iterator(inner: bytes.makeAsyncIterator()) }
    }

    @Test("Pairs, literals and dictionaries are encoded as forms")
    func forms() async throws {
        let pairs = [("a", "1"), ("a", "2"), ("ö &=", "x y+")]
        let dictionary = ["b": "2", "a": "1 2"]
        let absent: String? = nil
        let rows: [(HTTPBody, String)] = [
            (.form(pairs), "a=1&a=2&%C3%B6+%26%3D=x+y%2B"),
            (.form([("a", "1"), ("a", "2")]), "a=1&a=2"),
            (.form(["a": "1"]), "a=1"),
            (.form(["z": "1", "a": "2", "z": "3"]), "z=1&a=2&z=3"),
            (.form(dictionary), "a=1+2&b=2"),
            (.form(["a": "1", "b": absent, "c": "3"]), "a=1&c=3"),
            (.form([QueryItem(name: "a", value: nil)]), "a"),
            (.form([]), ""),
            (.form([:]), ""),
        ]
        for (body, text) in rows {
            #expect(String(decoding: try await body.collect(), as: UTF8.self) == text)
            #expect(body.contentType == "application/x-www-form-urlencoded")
            #expect(body.replay == .replayable)
        }
    }
}
