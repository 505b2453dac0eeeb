import Foundation
import Martlet
import MartletTesting
import Testing

@Suite("Digest fields: digests of requests")
struct ContentDigestTests {
    private static func session(
        _ algorithms: DigestAlgorithm..., change: (inout SessionConfiguration) -> Void = { _ in }
    )
        -> HTTPSession
    {
        DigestScene.session(.off) {
            $0.middleware = [ContentDigestMiddleware(algorithms)]
            change(&$0)
        }
    }

    /// A sequence that returns pieces.
    private static func pieces(_ texts: [String]) -> AsyncStream<[UInt8]> {
        AsyncStream { continuation in
            for text in texts { continuation.yield(Array(text.utf8)) }
            continuation.finish()
        }
    }

    @Test("A body that can be sent again has the digest in the head")
    func head() async throws {
        try await DigestScene.withFile { path in
            let large = TestPattern.bytes(from: 0, count: 3 << 20)
            try Data(large).write(to: URL(fileURLWithPath: path.string))
            let bodies: [(HTTPBody, [UInt8])] = [
                (.bytes(large), large), (.text("text"), Array("text".utf8)), (.json(["a": 1]), Array("{\"a\":1}".utf8)),
                (.file(path), large), (.stream { Self.pieces(["ab", "", "c"]) }, Array("abc".utf8)), (.bytes([]), []),
                (.stream(length: 3) { Self.pieces(["abc"]) }, Array("abc".utf8)),
            ]
            try await TestOrigin.withOrigin { request in
                let body = try await request.collectBody(upTo: 8 << 20)
                let isRight = request.headers["Content-Digest"] == (try DigestScene.field(body, .sha512, .sha256))
                return .text("\(body.count) \(isRight)")
            } run: { origin in
                let session = Self.session(.sha256, .sha512, .sha256)
                for (body, bytes) in bodies {
                    let exchange = try await session.post(origin.url(), body: body)
                    #expect(exchange.text == "\(bytes.count) true")
                }
            }
        }
    }

    @Test("The middleware has a short name, and computes SHA-256 by default")
    func names() async throws {
        try await TestOrigin.withOrigin { request in
            .text(request.headers["Content-Digest"] ?? "none")
        } run: { origin in
            for middleware: any HTTPMiddleware in [.contentDigest(.sha256), .contentDigest()] {
                let session = DigestScene.session(.off) { $0.middleware = [middleware] }
                let expected = try DigestScene.field("abc".utf8, .sha256)
                #expect(try await session.post(origin.url(), body: .text("abc")).text == expected)
            }
        }
    }

    @Test("A request without a body has no digest, and one with a digest is sent unchanged")
    func unchanged() async throws {
        try await TestOrigin.withOrigin { request in
            .text(request.headers.values(of: "Content-Digest").joined(separator: "|"))
        } run: { origin in
            let session = Self.session()
            #expect(try await session.get(origin.url()).text == "")
            #expect(try await session.post(origin.url()).text == "")
            let own = try await session.post(
                origin.url(), body: .text("abc"), headers: ["Content-Digest": "sha-256=:AAAA:"])
            #expect(own.text == "sha-256=:AAAA:")
        }
    }

    @Test("A body that can be read only once has the digest in a trailer", arguments: [UInt64?.none, 3])
    func trailer(_ length: UInt64?) async throws {
        let value = try DigestScene.field("abc".utf8, .sha256)
        let script = ServerScript(
            .expectRequestHead, .expect("2\r\nab\r\n1\r\nc\r\n0\r\nContent-Digest: \(value)\r\n\r\n"),
            .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), .awaitClose)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let body = HTTPBody.once(Self.pieces(["ab", "c"]), length: length)
            let exchange = try await Self.session().post(origin.url(), body: body)
            #expect(exchange.text == "ok")
            let head = String(decoding: origin.recorder.transcript(ofConnection: 1), as: UTF8.self)
            #expect(head.contains("\r\nTrailer: Content-Digest\r\n"))
            #expect(head.contains("\r\nTransfer-Encoding: chunked\r\n") && !head.contains("Content-Length"))
            #expect(origin.recorder.problems.isEmpty)
        }
    }

    @Test("The trailer follows those of the caller, whose own digest takes precedence")
    func callersTrailers() async throws {
        let value = try DigestScene.field("abc".utf8, .sha256)
        for (own, sent) in [
            ("X-Sum: 6", "X-Sum: 6\r\nContent-Digest: \(value)"), ("Content-Digest: x", "Content-Digest: x"),
        ] {
            let script = ServerScript(
                .expectRequestHead, .expect("3\r\nabc\r\n0\r\n\(sent)\r\n\r\n"),
                .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), .awaitClose)
            try await TestOrigin.withOrigin(scripts: script) { origin in
                let field = own.split(separator: ": ").map(String.init)
                let name = try #require(HTTPField.Name(field[0]))
                let options = RequestOptions { $0.trailers[name] = field[1] }
                let body = HTTPBody.once(Self.pieces(["abc"]))
                #expect(try await Self.session().post(origin.url(), body: body, options: options).text == "ok")
                #expect(origin.recorder.problems.isEmpty)
            }
        }
    }

    @Test("A body that cannot have trailers, or has another length than declared, is an error")
    func errors() async throws {
        try await TestOrigin.withOrigin { request in
            .text(try await request.collectText())
        } run: { origin in
            let session = Self.session()
            let framed = await #expect(throws: HTTPError.self) {
                try await session.post(
                    origin.url(), body: .once(Self.pieces(["abc"])), headers: ["Content-Length": "3"])
            }
            #expect(framed?.code == .bodyNotReplayable && framed?.wasSent == false)
            let short = await #expect(throws: HTTPError.self) {
                try await session.post(origin.url(), body: .once(Self.pieces(["abc"]), length: 4))
            }
            #expect(short?.code == .bodyLengthMismatch)
            let long = await #expect(throws: HTTPError.self) {
                try await session.post(origin.url(), body: .once(Self.pieces(["abc", "d"]), length: 3))
            }
            #expect(long?.code == .bodyLengthMismatch)
            let missing = await #expect(throws: HTTPError.self) {
                try await session.post(origin.url(), body: .file("/nonexistent/file"))
            }
            #expect(missing?.code == .fileFailed)
        }
    }

    @Test("Each request of a redirect has the digest of its own body")
    func redirects() async throws {
        let value = try DigestScene.field("abc".utf8, .sha256)
        try await TestOrigin.withOrigin { request in
            switch request.path {
            case "/307": .redirect(to: "/end", status: 307)
            case "/303": .redirect(to: "/end", status: 303)
            default: .text("\(request.method) \(request.headers["Content-Digest"] ?? "none")")
            }
        } run: { origin in
            let session = Self.session()
            let kept = try await session.post(origin.url("/307"), body: .text("abc"))
            #expect(kept.text == "POST \(value)")
            let changed = try await session.post(origin.url("/303"), body: .text("abc"))
            #expect(changed.text == "GET none")
            #expect(origin.requests.filter { $0.path != "/end" }.allSatisfy { $0.headers["Content-Digest"] == value })
        }
    }

    @Test("A call that is cancelled while its body is hashed ends")
    func cancellation() async throws {
        let (started, signal) = AsyncStream<Void>.makeStream()
        let body = HTTPBody.stream {
            AsyncThrowingStream<[UInt8], any Error>(unfolding: {
                signal.yield()
                try await Task.sleep(for: .seconds(3600))
                return nil
            })
        }
        try await TestOrigin.withOrigin { _ in
            .text("late")
        } run: { origin in
            let session = Self.session()
            let url = origin.url()
            let call = Task { try await session.post(url, body: body).text }
            for await _ in started { break }
            call.cancel()
            await #expect(throws: CancellationError.self) { try await call.value }
            #expect(origin.requests.isEmpty)
        }
    }

    @Test("A compressed body that can be read only once is sent uncompressed, and no field names its coding")
    func compressed() async throws {
        try await TestOrigin.withOrigin { request in
            .text("\(request.headers["Content-Encoding"] ?? "none") \(try await request.collectText())")
        } run: { origin in
            let body = HTTPBody.once(Self.pieces(["abc"])).compressed(.gzip)
            let exchange = try await Self.session().post(
                origin.url(), body: body, headers: [.contentEncoding: "gzip"])
            #expect(exchange.text == "none abc")
        }
    }
}
