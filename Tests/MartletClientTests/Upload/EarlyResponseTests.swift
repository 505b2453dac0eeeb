import Martlet
import MartletTesting
import MartletTestSupport
import Testing

extension OneAtATime {
    @Suite("Early responses to uploads")
    struct EarlyResponseTests {
        private static let size: UInt64 = 64 << 20
        private static let rejection =
            "HTTP/1.1 413 Content Too Large\r\nContent-Length: 7\r\nConnection: close\r\n\r\ntoo big"

        @Test(
            "A 413 during an upload is delivered although the server closes with unread bytes",
            arguments: [false, true])
        func refusedAndClosed(isSecure: Bool) async throws {
            let script = ServerScript(
                .expectRequestHead, .readBody(200_000), .send(EarlyResponseTests.rejection), .close)
            let options: OriginOptions = isSecure ? .tls() : .plain
            try await TestOrigin.withOrigin(options, scripts: script) { origin in
                let session = HTTPSession.trusting(origin)
                let exchange = try await session.send(
                    HTTPRequest(.put, origin), body: .pattern(EarlyResponseTests.size))
                #expect(exchange.response.status.code == 413)
                #expect(exchange.text == "too big")
                #expect(exchange.metrics.sentByteCount < EarlyResponseTests.size)
                #expect(session.poolStatus.idle == 0)
                #expect(session.poolStatus.leased == 0)
            }
        }

        @Test("After a 413 the upload stops, even if the server would continue to read")
        func refusedAndReading() async throws {
            let script = ServerScript(
                .expectRequestHead, .readBody(200_000), .send(EarlyResponseTests.rejection), .readAll)
            try await TestOrigin.withOrigin(scripts: script) { origin in
                let session = HTTPSession.own()
                let exchange = try await session.send(
                    HTTPRequest(.put, origin), body: .pattern(EarlyResponseTests.size))
                #expect(exchange.response.status.code == 413)
                #expect(exchange.text == "too big")
                _ = try await origin.recorder.waitForTranscript(ofConnection: 1)
                #expect(origin.recorder.counts.bytesReceived < EarlyResponseTests.size)
            }
        }

        @Test("A rejection that closes the connection stops the upload before its own body is complete")
        func refusedAndUnfinished() async throws {
            let head =
                "HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
            let script = ServerScript(.expectRequestHead, .send(head), .await("head"), .readAll)
            try await TestOrigin.withOrigin(scripts: script) { origin in
                try await HTTPSession.own().stream(
                    HTTPRequest(.put, origin), body: .pattern(EarlyResponseTests.size)
                ) { response, _ in
                    origin.signals.raise("head")
                    let received = await settled { origin.recorder.counts.bytesReceived }
                    #expect(received < EarlyResponseTests.size)
                }
            }
        }

        @Test(
            "The upload continues if the server sends the body of its early response only after the end of the request",
            arguments: [
                "200 OK", "200 OK\r\nConnection: close", "302 Found", "422 Unprocessable Content",
                "503 Service Unavailable",
            ])
        func bodyAfterUpload(head: String) async throws {
            // More than fits into the buffers, so that the head arrives before the end of the upload.
            let size = UInt64(try KernelBuffers.most()) + 4 << 20
            let script = ServerScript(
                .expectRequestHead, .send("HTTP/1.1 \(head)\r\nTransfer-Encoding: chunked\r\n\r\n"), .await("head"),
                .readBody(Int(size)), .send("4\r\nlate\r\n0\r\n\r\n"), .awaitClose)
            try await TestOrigin.withOrigin(scripts: script) { origin in
                let session = HTTPSession.own()
                let text = try await session.stream(
                    HTTPRequest(.put, origin), body: .pattern(size)
                ) { response, body in
                    origin.signals.raise("head")
                    return try await body.collect()
                }
                #expect(text == Array("late".utf8))
                #expect(origin.recorder.problems.isEmpty)
                #expect(session.poolStatus.idle == (head.contains("close") ? 0 : 1))
            }
        }

        @Test("A server that responds and stops reading does not block the client")
        func refusedAndStalled() async throws {
            let script = ServerScript(
                .expectRequestHead,
                .send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 7\r\n\r\ntoo big"), .stall)
            try await TestOrigin.withOrigin(scripts: script) { origin in
                let session = HTTPSession.own()
                let exchange = try await session.send(
                    HTTPRequest(.put, origin), body: .pattern(EarlyResponseTests.size))
                #expect(exchange.response.status.code == 413)
                #expect(session.poolStatus.idle == 0)
                #expect(await eventually { OpenSockets.count(toPort: origin.port) == 0 })
            }
        }

        @Test("A 200 before the upload ends is delivered, and its connection is not reused")
        func accepted() async throws {
            let script = ServerScript(.expectRequestHead, .sendOK, .readAll)
            try await TestOrigin.withOrigin(scripts: script) { origin in
                let session = HTTPSession.own()
                let exchange = try await session.send(
                    HTTPRequest(.put, origin), body: .pattern(EarlyResponseTests.size))
                #expect(exchange.text == "ok")
                #expect(session.poolStatus.idle == 0)
                #expect(await eventually { OpenSockets.count(toPort: origin.port) == 0 })
            }
        }

        @Test(
            "Leaving a response during the upload closes its connection immediately, even with little of it unread"
        )
        func leftAmidUpload() async throws {
            let script = ServerScript(
                .expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"), .stall)
            try await TestOrigin.withOrigin(scripts: script) { origin in
                let session = HTTPSession.own()
                let status = try await session.stream(
                    HTTPRequest(.put, origin), body: .pattern(EarlyResponseTests.size)
                ) { response, _ in response.status.code }
                #expect(status == 200)
                #expect(session.poolStatus.leased == 0 && session.poolStatus.idle == 0)
            }
        }

        @Test("A huge response from a server that does not read the upload does not deadlock")
        func hugeResponse() async throws {
            let size: UInt64 = 32 << 20
            let script = ServerScript(
                .expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: \(size)\r\n\r\n"),
                .sendPattern(size),
                .readAll)
            try await TestOrigin.withOrigin(scripts: script) { origin in
                let session = HTTPSession.own()
                let count = try await session.stream(
                    HTTPRequest(.post, origin), body: .pattern(EarlyResponseTests.size)
                ) { response, body in
                    var count: UInt64 = 0
                    for try await piece in body {
                        #expect(TestPattern.firstMismatch(in: piece, at: count) == nil)
                        count += UInt64(piece.count)
                    }
                    return count
                }
                #expect(count == size)
            }
        }

        @Test("Upload and response are transferred at the same time", arguments: [false, true])
        func echo(isSecure: Bool) async throws {
            let size: UInt64 = 16 << 20
            try await TestOrigin.withOrigin(isSecure ? .tls() : .plain) { request in
                OriginResponse(
                    body: .stream { writer in
                        for try await chunk in request.body { try await writer.write(chunk) }
                    })
            } run: { origin in
                let session = HTTPSession.trusting(origin)
                let count = try await session.stream(
                    HTTPRequest(.post, origin), body: .pattern(size)
                ) { response, body in
                    var count: UInt64 = 0
                    for try await piece in body {
                        #expect(TestPattern.firstMismatch(in: piece, at: count) == nil)
                        count += UInt64(piece.count)
                    }
                    return count
                }
                #expect(count == size)
            }
        }

        @Test("A reset after an early response leaves the response complete", arguments: [false, true])
        func resetAfterAnswer(isSecure: Bool) async throws {
            let script = ServerScript(
                .expectRequestHead, .readBody(200_000), .send(EarlyResponseTests.rejection), .await("read"),
                .reset)
            try await TestOrigin.withOrigin(isSecure ? .tls() : .plain, scripts: script) { origin in
                let session = HTTPSession.trusting(origin)
                try await session.stream(
                    HTTPRequest(.put, origin), body: .pattern(EarlyResponseTests.size)
                ) { response, body in
                    #expect(response.status.code == 413)
                    origin.signals.raise("read")
                    try await origin.recorder.waitForOpenConnections(atMost: 0)
                    #expect(try await body.collect() == Array("too big".utf8))
                }
            }
        }

        @Test(
            "A redirect that is not followed is delivered during the upload of a body that can be read once",
            arguments: [false, true])
        func redirectDuringUpload(hasDelegate: Bool) async throws {
            let answer = "HTTP/1.1 307 Elsewhere\r\nLocation: /x\r\nContent-Length: 5\r\n\r\nhello"
            let script = ServerScript(.expectRequestHead, .readBody(200_000), .send(answer), .readAll)
            try await TestOrigin.withOrigin(scripts: script) { origin in
                let session = HTTPSession.own {
                    $0.redirects = .doNotFollow
                    if hasDelegate { $0.delegate = Delegate() }
                }
                let exchange = try await session.put(
                    origin.url(), body: .once(repeatElement(UInt8(7), count: .max)))
                #expect(exchange.statusCode == 307 && exchange.text == "hello")
            }
        }

        private final class Delegate: SessionDelegate {}

        @Test("A reset without a response during an upload is an error that reports sent bytes")
        func resetWithoutAnswer() async throws {
            let script = ServerScript(.expectRequestHead, .readBody(200_000), .reset)
            try await TestOrigin.withOrigin(scripts: script) { origin in
                let session = HTTPSession.own()
                let error = try #require(
                    await #expect(throws: HTTPError.self) {
                        try await session.send(
                            HTTPRequest(.put, origin), body: .pattern(EarlyResponseTests.size))
                    })
                #expect(error.code == .connectionLost)
                #expect(error.wasSent)
                #expect(error.attempts == 1)
            }
        }
    }
}
