import MartletClient
import MartletTesting
import Testing

/// Servers that never stop sending: the error comes at the limit, and little more than the limit was ever taken.
@Suite("Floods", .timeLimit(.minutes(3)))
struct FloodTests {
    /// What may be on its way beyond a limit on a stream in memory: its buffer, the receive buffer, and a piece.
    private static let slack: UInt64 = 512 * 1024

    /// Meets an endless server on a stream in memory, whose sent bytes are those that the client took.
    private func flood(
        _ start: String, endlessly text: String, code: HTTPError.Code, within limit: UInt64,
        isStreamed: Bool = false,
        options: RequestOptions = RequestOptions(), sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        // Pieces of some size, so that the flood is one of bytes and not of calls.
        let piece = String(repeating: text, count: max(1, 8192 / text.utf8.count))
        let script = ServerScript(.expectRequestHead, .send(start), .sendEndlessly(piece))
        try await HostileScene.with(.memory, script) { scene in
            let receipt = await scene.request(isStreamed: isStreamed, options: options)
            #expect(receipt.error?.code == code, sourceLocation: sourceLocation)
            #expect(
                scene.ledger.counts.bytesSent < limit + FloodTests.slack, "took too much",
                sourceLocation: sourceLocation)
            #expect(await scene.next() == "good", sourceLocation: sourceLocation)
        }
    }

    @Test("An endless status line is refused at 64 KiB")
    func statusLine() async throws {
        try await flood("HTTP/1.1 200 ", endlessly: "a", code: .limitExceeded, within: 65_536)
    }

    @Test("An endless field value is refused at 64 KiB")
    func fieldValue() async throws {
        try await flood("HTTP/1.1 200 OK\r\nA: ", endlessly: "a", code: .limitExceeded, within: 65_536)
    }

    @Test("An endless field name is refused at 64 KiB")
    func fieldName() async throws {
        try await flood("HTTP/1.1 200 OK\r\n", endlessly: "a", code: .limitExceeded, within: 65_536)
    }

    @Test("Endless small fields are refused at a thousand lines")
    func smallFields() async throws {
        try await flood("HTTP/1.1 200 OK\r\n", endlessly: "A:\r\n", code: .limitExceeded, within: 4096)
    }

    @Test("Endless large fields are refused at 256 KiB")
    func largeFields() async throws {
        let field = "A: " + String(repeating: "b", count: 8000) + "\r\n"
        try await flood("HTTP/1.1 200 OK\r\n", endlessly: field, code: .limitExceeded, within: 262_144)
    }

    @Test("Endless empty lines before a status line are refused")
    func emptyLines() async throws {
        try await flood("", endlessly: "\r\n", code: .limitExceeded, within: 4096)
    }

    @Test("Endless folded lines are refused")
    func folds() async throws {
        try await flood(
            "HTTP/1.1 200 OK\r\nA: b\r\n", endlessly: " c\r\n", code: .limitExceeded, within: 8192)
    }

    @Test("Endless interim responses are refused at the eleventh")
    func interims() async throws {
        try await flood(
            "", endlessly: "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", code: .limitExceeded,
            within: 4096)
    }

    @Test(
        "Endless chunk extensions are refused at 16 KiB, each by itself and in sum", arguments: [16_000, 10])
    func chunkExtensions(_ count: Int) async throws {
        try await flood(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            endlessly: "1;" + String(repeating: "x", count: count) + "\r\na\r\n", code: .limitExceeded,
            within: 65_536,
            isStreamed: true)
    }

    @Test("One endless chunk extension is refused at 16 KiB")
    func chunkExtension() async throws {
        try await flood(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", endlessly: "x", code: .limitExceeded,
            within: 16_384)
    }

    @Test("Endless zeros of a chunk's size are refused at the seventeenth")
    func chunkSize() async throws {
        try await flood(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", endlessly: "0", code: .limitExceeded,
            within: 64)
    }

    @Test("Endless trailers are refused at 16 KiB")
    func trailers() async throws {
        try await flood(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
            endlessly: "A: bbbbbbbbbbbbbbbbbbbbbbbbbbbb\r\n",
            code: .limitExceeded, within: 16_384)
    }

    @Test("An endless body that is collected is refused at the limit")
    func body() async throws {
        var options = RequestOptions()
        options.bodyLimit = .mebibytes(1)
        try await flood(
            "HTTP/1.1 200 OK\r\n\r\n", endlessly: "EVIL", code: .bodyTooLarge, within: 1 << 20,
            options: options)
        try await flood(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", endlessly: "4\r\nEVIL\r\n",
            code: .bodyTooLarge,
            within: 3 << 20, options: options)
    }

    @Test(
        "A body announced larger than the limit is refused before a byte of it is read",
        arguments: [
            "100000000000", "9223372036854775807", "16777217",
        ])
    func announcedBody(_ length: String) async throws {
        try await flood(
            "HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\r\n", endlessly: "EVIL", code: .bodyTooLarge,
            within: 0)
    }

    @Test(
        "An endless body that is streamed is held by the reader's pace, and ends when the reader has enough")
    func streamedBody() async throws {
        let script = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 200 OK\r\n\r\n"),
            .sendEndlessly(String(repeating: "x", count: 8192)))
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
            #expect(scene.ledger.counts.bytesSent < UInt64(taken) + FloodTests.slack)
            try await scene.ledger.waitForOpenConnections(atMost: 0)
            #expect(await scene.next() == "good")
        }
    }

    @Test("A head of 200 KiB that comes byte by byte costs no more than linear time")
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

    @Test("A line of 60 KiB that comes byte by byte costs no more than linear time")
    func drippedLine() async throws {
        let text =
            "HTTP/1.1 200 OK\r\nA: " + String(repeating: ",", count: 60_000)
            + "\r\nContent-Length: 2\r\n\r\nok"
        let script = ServerScript(.expectRequestHead, .sendPieces(text, size: 1), .awaitClose)
        try await HostileScene.with(.plain, script) { scene in
            #expect(await scene.request().text == "ok")
        }
    }

    @Test("Trailers of 15 KiB that come byte by byte cost no more than linear time")
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

    @Test("A body of chunks of one byte, each sent by itself, is read whole")
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
        "A megabyte of commas in each list that is looked at is read in linear time",
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
