import MartletContent
import MartletCookies
import MartletCore
import MartletTesting
import Testing

/// Servers that send valid data endlessly or byte by byte. The client needs little memory and linear time.
@Suite("Floods", .timeLimit(.minutes(20)))
struct FloodTests {
    /// The number of bytes that may be in transit beyond a limit: stream buffer, receive buffer and one piece.
    private static let slack: UInt64 = 512 * 1024

    @Test(
        "An endless stream is slowed down to the reader's pace and ends when the reader leaves")
    func streamedBody() async throws {
        let script = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 200 OK\r\n\r\n"),
            .sendEndlessly("x"))
        try await HostileScene.with(.memory, script) { scene in
            let request = try HTTPRequest(method: .get, url: scene.base)
            let taken = try await scene.session.stream(request) { _, body -> Int in
                var taken = 0
                for try await piece in body {
                    taken += piece.count
                    if taken > 100_000 { break }
                }
                return taken
            }
            #expect(scene.recorder.counts.bytesSent < UInt64(taken) + FloodTests.slack)
            try await scene.recorder.waitForOpenConnections(atMost: 0)
            #expect(await scene.next() == "good")
        }
    }

    @Test("Endless bodies without content do not block other calls")
    func fruitlessBodies() async throws {
        let head = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"
        let member = Deflated.bytes([], as: .gzip)
        let script = ServerScript(.expectRequestHead, .send(head), .sendEndlessly(member))
        let mock = MockTransport(scripts: script)
        let session = HTTPSession.own { $0.connect(to: mock) }
        // There are more calls than threads.
        let calls = (0..<8).map { _ in Task { try await session.get("http://mock.example/") } }
        try await mock.recorder.waitForCounts { $0.connections == 8 && $0.bytesSent > 1 << 18 }
        for _ in 0..<3 {
            try await HostileScene.with(.plain, ServerScript.respond(HostileScene.good)) { scene in
                #expect(await scene.request().text == "good")
            }
        }
        for call in calls { call.cancel() }
        for call in calls { await #expect(throws: CancellationError.self) { try await call.value } }
        #expect(session.poolStatus.leased == 0)
        await mock.stop()
    }

    @Test("A head of 200 KiB that arrives byte by byte takes linear time")
    func drippedHead() async throws {
        let field = "A: " + String(repeating: "b", count: 1018) + "\r\n"
        let head =
            "HTTP/1.1 200 OK\r\n" + String(repeating: field, count: 200) + "Content-Length: 2\r\n\r\nok"
        for route in [HostileRoute.memory, .plain] {
            let script = ServerScript(.expectRequestHead, .sendPieces(head, size: 1), .awaitClose)
            try await HostileScene.with(route, script) { scene in
                let receipt = await scene.request()
                #expect(receipt.text == "ok")
                #expect(receipt.fields.count == 201)
            }
        }
    }

    @Test("A line of 60 KiB that arrives byte by byte takes linear time")
    func drippedLine() async throws {
        let text =
            "HTTP/1.1 200 OK\r\nA: " + String(repeating: ",", count: 60_000)
            + "\r\nContent-Length: 2\r\n\r\nok"
        let script = ServerScript(.expectRequestHead, .sendPieces(text, size: 1), .awaitClose)
        try await HostileScene.with(.plain, script) { scene in
            #expect(await scene.request().text == "ok")
        }
    }

    @Test("Trailers of 15 KiB that arrive byte by byte take linear time")
    func drippedTrailers() async throws {
        let text =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: "
            + String(repeating: "b", count: 15_000)
            + "\r\n\r\n"
        let script = ServerScript(.expectRequestHead, .sendPieces(text, size: 1), .awaitClose)
        try await HostileScene.with(.plain, script) { scene in
            let receipt = await scene.request()
            #expect(receipt.error == nil)
            #expect(receipt.trailers?.count == 1)
        }
    }

    @Test("A body of one-byte chunks that arrive separately is read completely")
    func drippedChunks() async throws {
        let body = String(repeating: "1\r\nx\r\n", count: 5000) + "0\r\n\r\n"
        let script = ServerScript(
            .expectRequestHead,
            .sendPieces("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body, size: 1),
            .awaitClose)
        try await HostileScene.with(.plain, script) { scene in
            #expect(await scene.request().body.count == 5000)
        }
    }

    @Test(
        "A megabyte of commas in a list field is parsed in linear time",
        arguments: [
            "Connection", "Keep-Alive", "Transfer-Encoding", "Content-Encoding", "Content-Type",
            "WWW-Authenticate",
            "Cache-Control", "Link", "Set-Cookie",
        ])
    func commas(_ name: String) async throws {
        let text =
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\(name): " + String(repeating: ",", count: 1 << 20)
            + "\r\n\r\nok"
        let script = ServerScript(.expectRequestHead, .send(text), .awaitClose)
        try await HostileScene.with(
            .memory, script,
            configure: {
                $0.wireLimits.lineByteLimit = 2 << 20
                $0.wireLimits.headByteLimit = 2 << 20
            },
            run: { scene in
                let receipt = await scene.request()
                if name == "Transfer-Encoding" {
                    #expect(receipt.error?.code == .protocolViolation)
                } else {
                    #expect(receipt.text == "ok")
                }
            })
    }
}
