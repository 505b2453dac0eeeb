import Martlet
import MartletTesting
import Testing

@Suite("Framing of uploads")
struct UploadFramingTests {
    private struct SourceFailure: Error {}

    @Test("A body of unknown length is sent in chunks, one for each piece")
    func chunked() async throws {
        let script = ServerScript(
            .expectRequestHead, .expect("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"), .sendOK, .awaitClose)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let session = HTTPSession.own()
            let exchange = try await session.send(
                HTTPRequest(.post, origin), body: .stream { Pieces("abc", "", "de") })
            #expect(exchange.text == "ok")
            let head = String(decoding: origin.recorder.transcript(ofConnection: 1), as: UTF8.self)
            #expect(head.contains("\r\nTransfer-Encoding: chunked\r\n"))
            #expect(!head.contains("Content-Length"))
            #expect(origin.recorder.problems.isEmpty)
        }
    }

    @Test("Trailers follow a chunked body and are announced")
    func trailersUp() async throws {
        let script = ServerScript(
            .expectRequestHead, .expect("3\r\nabc\r\n0\r\nX-Sum: 6\r\n\r\n"), .sendOK, .awaitClose)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let session = HTTPSession.own()
            var options = RequestOptions()
            options.trailers = ["X-Sum": "6"]
            let exchange = try await session.send(
                HTTPRequest(.post, origin), body: .stream { Pieces("abc") }, options: options)
            #expect(exchange.text == "ok")
            let head = String(decoding: origin.recorder.transcript(ofConnection: 1), as: UTF8.self)
            #expect(head.contains("\r\nTrailer: X-Sum\r\n"))
        }
    }

    @Test("Trailers of a response come after its body and are not merged into its head")
    func trailersDown() async throws {
        let script = ServerScript.keepAlive(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 6\r\n\r\n", times: 2
        )
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let session = HTTPSession.own()
            let name = try #require(HTTPField.Name("X-Sum"))
            let exchange = try await session.get(origin.url())
            #expect(exchange.text == "abc")
            #expect(exchange.trailers?[name] == "6")
            #expect(exchange.response.headerFields[name] == nil)
            try await session.stream(HTTPRequest(.get, origin)) { response, body in
                #expect(body.trailers == nil)
                _ = try await body.collect()
                #expect(body.trailers?[name] == "6")
            }
        }
    }

    @Test("Trailers belong to their response even after its connection has carried another one")
    func trailersOfTheirOwn() async throws {
        func response(_ sum: String?) -> String {
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n"
                + (sum.map { "X-Sum: \($0)\r\n" } ?? "") + "\r\n"
        }
        let script = ServerScript([
            .expectRequestHead, .send(response("1")), .expectRequestHead, .send(response("2")),
            .expectRequestHead, .send(response(nil)), .awaitClose,
        ])
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let session = HTTPSession.own()
            let name = try #require(HTTPField.Name("X-Sum"))
            try await session.stream(HTTPRequest(.get, origin)) { _, first in
                _ = try await first.collect()
                try await session.stream(HTTPRequest(.get, origin)) { _, second in
                    _ = try await second.collect()
                    _ = try await session.get(origin.url())
                    #expect(second.trailers?[name] == "2")
                }
                #expect(first.trailers?[name] == "1")
            }
            #expect(origin.recorder.counts.connections == 1)
        }
    }

    @Test("A body of known length is sent without chunks, and the connection is reused")
    func exactLength() async throws {
        try await TestOrigin.withOrigin { request in
            .text("\(request.headers["Content-Length"] ?? "none") \(try await request.collectText())")
        } run: { origin in
            let session = HTTPSession.own()
            let body = HTTPBody.stream(length: 5) { Pieces("ab", "cde") }
            let exchange = try await session.send(HTTPRequest(.post, origin), body: body)
            #expect(exchange.text == "5 abcde")
            #expect(try await session.get(origin.url()).text == "none ")
        }
    }

    @Test("A source that is too short is an error, and the connection is closed")
    func shortSource() async throws {
        let script = ServerScript(.expectRequestHead, .readAll)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let session = HTTPSession.own()
            let error = try #require(
                await #expect(throws: HTTPError.self) {
                    try await session.send(
                        HTTPRequest(.put, origin), body: .stream(length: 10) { Pieces("abc") })
                })
            #expect(error.code == .bodyLengthMismatch)
            #expect(error.wasSent)
            #expect(error.message.contains("10") && error.message.contains("3"))
            let sent = try await origin.recorder.waitForTranscript(ofConnection: 1)
            #expect(String(decoding: sent, as: UTF8.self).hasSuffix("\r\n\r\nabc"))
            #expect(session.poolStatus.idle + session.poolStatus.leased == 0)
        }
    }

    @Test("A source that is too long is an error, and no byte beyond the length is sent")
    func longSource() async throws {
        let script = ServerScript(.expectRequestHead, .readAll)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let session = HTTPSession.own()
            let error = try #require(
                await #expect(throws: HTTPError.self) {
                    try await session.send(
                        HTTPRequest(.put, origin), body: .stream(length: 5) { Pieces("abc", "defg") })
                })
            #expect(error.code == .bodyLengthMismatch)
            let sent = try await origin.recorder.waitForTranscript(ofConnection: 1)
            #expect(String(decoding: sent, as: UTF8.self).hasSuffix("\r\n\r\nabc"))
            #expect(session.poolStatus.idle + session.poolStatus.leased == 0)
        }
    }

    @Test("An error of the source is the underlying error, and the connection is closed")
    func failingSource() async throws {
        let script = ServerScript(.expectRequestHead, .readAll)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let session = HTTPSession.own()
            let error = try #require(
                await #expect(throws: HTTPError.self) {
                    let pieces = Pieces("abc", "def") { number in
                        if number == 1 { throw SourceFailure() }
                    }
                    return try await session.send(
                        HTTPRequest(.put, origin), body: .stream { pieces })
                })
            #expect(error.code == .bodySourceFailed)
            #expect(error.underlying is SourceFailure)
            let sent = try await origin.recorder.waitForTranscript(ofConnection: 1)
            #expect(String(decoding: sent, as: UTF8.self).hasSuffix("\r\n\r\n3\r\nabc\r\n"))
        }
    }

    @Test("The progress of a body in memory reaches its whole length", arguments: [5, 8 << 20])
    func progressInMemory(byteCount: Int) async throws {
        try await TestOrigin.withOrigin { request in
            var count = 0
            for try await chunk in request.body { count += chunk.count }
            return .text("\(count)")
        } run: { origin in
            let session = HTTPSession.own()
            let task = await session.task(
                for: try HTTPRequest(.put, origin),
                body: .bytes(TestPattern.bytes(from: 0, count: byteCount)))
            #expect(try await task.value.text == "\(byteCount)")
            var last: TransferProgress?
            for await progress in task.uploadProgress { last = progress }
            #expect(last?.completedByteCount == UInt64(byteCount))
            #expect(last?.totalByteCount == UInt64(byteCount))
            #expect(last?.isFinished == true)
        }
    }

    @Test("The progress of a streamed body reaches its whole length", arguments: [nil, 3 << 20] as [UInt64?])
    func progressOfStream(length: UInt64?) async throws {
        try await TestOrigin.withOrigin { request in
            for try await _ in request.body {}
            return .text("done")
        } run: { origin in
            let session = HTTPSession.own()
            let task = await session.task(
                for: try HTTPRequest(.put, origin),
                body: .stream(length: length) { PatternPieces(byteCount: 3 << 20) })
            _ = try await task.value
            var last: TransferProgress?
            for await progress in task.uploadProgress { last = progress }
            #expect(last?.completedByteCount == 3 << 20)
        }
    }

    @Test(
        "A body declared empty that is not empty is never sent",
        arguments: ["stream", "once", "file", "field"])
    func falselyEmpty(_ kind: String) async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("ok"))) { origin in
            let session = HTTPSession.own()
            for _ in 1...20 {
                let body: HTTPBody =
                    switch kind {
                    case "stream": .stream(length: 0) { Pieces("hello") }
                    case "once": .once(Pieces("hello"), length: 0)
                    case "field": .stream { Pieces("hello") }
                    default: .file("/proc/self/status")
                    }
                let fields: HTTPHeaders = kind == "field" ? [.contentLength: "0"] : [:]
                let error = await #expect(throws: HTTPError.self) {
                    try await session.post(origin.url(), body: body, headers: fields)
                }
                #expect(error?.code == .bodyLengthMismatch && error?.wasSent == false)
            }
            #expect(origin.requests.isEmpty)
            let empty = try await session.post(origin.url(), body: .stream(length: 0) { Pieces("") })
            #expect(empty.text == "ok")
            #expect(origin.requests.first?.headers["Content-Length"] == "0")
        }
    }
}
