import MartletTesting
import MartletTransport
import Testing

@Suite("Requests and responses")
struct ExchangeTests {
    @Test("A handler's response reaches the client with its length")
    func answersWithLength() async throws {
        let origin = try await TestOrigin.start { request in .text("asked for \(request.path)") }
        let client = try await RawClient(origin)
        let answer = try await client.get("/hello?x=1")
        #expect(answer.status == 200)
        #expect(answer.text == "asked for /hello")
        #expect(answer.field("Content-Length") == "16")
        #expect(answer.field("Date")?.hasSuffix("GMT") == true)
        await origin.stop()
    }

    @Test("A connection serves consecutive requests")
    func keepsAlive() async throws {
        try await TestOrigin.withOrigin { request in
            .text("\(request.number)")
        } run: { origin in
            let client = try await RawClient(origin)
            for number in 1...3 { #expect(try await client.get("/").text == "\(number)") }
            #expect(origin.connectionCount == 1)
            #expect(origin.requests.map(\.number) == [1, 2, 3])
        }
    }

    @Test("Pipelined requests are responded to in order")
    func pipelines() async throws {
        try await TestOrigin.withOrigin { request in
            .text(request.path)
        } run: { origin in
            let client = try await RawClient(origin)
            try await client.send(
                "GET /a HTTP/1.1\r\nHost: t\r\n\r\nPOST /b HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\n\r\n"
                    + "xyzGET /c HTTP/1.1\r\nHost: t\r\n\r\n")
            #expect(try await client.response().text == "/a")
            #expect(try await client.response().text == "/b")
            #expect(try await client.response().text == "/c")
        }
    }

    @Test("Connection: close from a client ends the connection after the response")
    func honoursClose() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("bye")
        } run: { origin in
            let client = try await RawClient(origin)
            try await client.send("GET / HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n")
            let all = String(decoding: try await client.receiveAll(), as: UTF8.self)
            #expect(all.contains("Connection: close\r\n"))
            #expect(all.hasSuffix("\r\n\r\nbye"))
        }
    }

    @Test("An HTTP/1.0 response without a known length ends with the connection")
    func speaksHTTP10() async throws {
        try await TestOrigin.withOrigin { _ in
            OriginResponse(body: .stream { try await $0.write("streamed") })
        } run: { origin in
            let client = try await RawClient(origin)
            try await client.send("GET / HTTP/1.0\r\n\r\n")
            let all = String(decoding: try await client.receiveAll(), as: UTF8.self)
            #expect(!all.contains("Transfer-Encoding"))
            #expect(all.hasSuffix("\r\n\r\nstreamed"))
        }
    }

    @Test("A response to HEAD has the fields of GET and no body")
    func headHasNoBody() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("twelve bytes")
        } run: { origin in
            let client = try await RawClient(origin)
            let answer = try await client.get("/", method: "HEAD")
            #expect(answer.field("Content-Length") == "12")
            // The next response begins immediately after the head, so there was no body.
            #expect(try await client.get("/").text == "twelve bytes")
        }
    }

    @Test("A 204 and a 304 have neither a body nor a length")
    func bodylessStatuses() async throws {
        try await TestOrigin.withOrigin { request in
            OriginResponse(request.path == "/a" ? 204 : 304, body: .text("never sent"))
        } run: { origin in
            let client = try await RawClient(origin)
            for path in ["/a", "/b", "/a"] {
                let answer = try await client.get(path)
                #expect(answer.field("Content-Length") == nil)
                #expect(answer.body.isEmpty)
            }
        }
    }

    @Test("A chunked body has the chosen sizes and its trailers")
    func writesChunks() async throws {
        try await TestOrigin.withOrigin { _ in
            OriginResponse.text("abcdefg").with {
                $0.framing = .chunked(size: 3)
                $0.trailers = ["X-Sum": "7"]
            }
        } run: { origin in
            let client = try await RawClient(origin)
            try await client.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n")
            let head = try await client.receive(through: "\r\n\r\n")
            #expect(head.contains("Transfer-Encoding: chunked\r\n"))
            let body = try await client.receive(through: "\r\n\r\n")
            #expect(body == "3\r\nabc\r\n3\r\ndef\r\n1\r\ng\r\n0\r\nX-Sum: 7\r\n\r\n")
        }
    }

    @Test("A chunked request body arrives without its framing, with its trailers")
    func readsChunks() async throws {
        try await TestOrigin.withOrigin { request in
            let text = try await request.collectText()
            return .text("\(text) \(request.body.trailers["X-Sum"] ?? "none")")
        } run: { origin in
            let client = try await RawClient(origin)
            try await client.send(
                "POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n"
                    + "2\r\nab\r\n3\r\ncde\r\n0\r\nX-Sum: 5\r\n\r\n")
            #expect(try await client.response().text == "abcde 5")
            #expect(try await client.get("/").text == " none")
        }
    }

    @Test("100 Continue is sent when the handler reads the body")
    func sendsContinue() async throws {
        try await TestOrigin.withOrigin { request in
            .text(try await request.collectText())
        } run: { origin in
            let client = try await RawClient(origin)
            try await client.send(
                "PUT / HTTP/1.1\r\nHost: t\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
            #expect(try await client.receive(through: "\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n")
            try await client.send("ok")
            #expect(try await client.response().text == "ok")
        }
    }

    @Test("A final response to an expectation closes the connection because the body is optional")
    func refusesExpectation() async throws {
        try await TestOrigin.withOrigin { _ in
            OriginResponse(417)
        } run: { origin in
            let client = try await RawClient(origin)
            try await client.send(
                "PUT / HTTP/1.1\r\nHost: t\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
            let all = String(decoding: try await client.receiveAll(), as: UTF8.self)
            #expect(all.hasPrefix("HTTP/1.1 417 Expectation Failed\r\n"))
            #expect(all.contains("Connection: close\r\n"))
        }
    }

    @Test("Interim responses precede the final one")
    func sendsInterim() async throws {
        try await TestOrigin.withOrigin { request in
            try await request.send(.earlyHints("</a.css>; rel=preload"))
            return OriginResponse.text("done").with { $0.interim = [InterimResponse(102)] }
        } run: { origin in
            let client = try await RawClient(origin)
            try await client.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n")
            #expect(
                try await client.receive(through: "\r\n\r\n")
                    == "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n")
            #expect(try await client.receive(through: "\r\n\r\n") == "HTTP/1.1 102 Processing\r\n\r\n")
            #expect(try await client.response().text == "done")
        }
    }

    @Test("A small body that the handler does not read does not end the connection")
    func drainsUnreadBodies() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("ignored")
        } run: { origin in
            let client = try await RawClient(origin)
            try await client.send("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\n")
            #expect(try await client.response().text == "ignored")
            try await client.send("12345GET / HTTP/1.1\r\nHost: t\r\n\r\n")
            #expect(try await client.response().text == "ignored")
            #expect(origin.connectionCount == 1)
        }
    }

    @Test("A large body that the handler does not read ends the connection, and the response still arrives")
    func closesOnLargeUnreadBodies() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("too much", status: 413)
        } run: { origin in
            let client = try await RawClient(origin)
            try await client.send("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 5000000\r\n\r\n")
            try await client.send([UInt8](repeating: 1, count: 20_000))
            let answer = try await client.response()
            #expect(answer.status == 413)
            #expect(answer.field("Connection") == "close")
            #expect(answer.text == "too much")
        }
    }

    @Test("Field lines of one name stay separate and in order")
    func keepsDuplicateFields() async throws {
        try await TestOrigin.withOrigin { _ in
            OriginResponse(headers: ["Set-Cookie": "a=1", "X-Between": "x", "Set-Cookie": "b=2"])
        } run: { origin in
            let client = try await RawClient(origin)
            let answer = try await client.get("/")
            #expect(answer.head.contains("Set-Cookie: a=1\r\nX-Between: x\r\nSet-Cookie: b=2\r\n"))
        }
    }

    @Test("A request that is not HTTP is rejected with 400 and recorded")
    func refusesGarbage() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("never")
        } run: { origin in
            let client = try await RawClient(origin)
            try await client.send("this is no request\r\n\r\n")
            let all = String(decoding: try await client.receiveAll(), as: UTF8.self)
            #expect(all.hasPrefix("HTTP/1.1 400 Bad Request\r\n"))
            #expect(origin.requests.isEmpty)
            #expect(origin.recorder.problems.count == 1)
        }
    }

    @Test("An error of the handler is a 500 with its text")
    func reportsHandlerErrors() async throws {
        try await TestOrigin.withOrigin { request in
            .text(try await request.collectText(upTo: 2))
        } run: { origin in
            let client = try await RawClient(origin)
            try await client.send("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\n12345")
            let answer = try await client.response()
            #expect(answer.status == 500)
            #expect(answer.text == "the request's body is longer than 2 bytes\n")
        }
    }

    @Test("A field that cannot be sent leads to a 500 and never to a split response")
    func refusesInjectedFields() async throws {
        try await TestOrigin.withOrigin { _ in
            OriginResponse(headers: ["X-A": "b\r\nX-C: d"], body: .text("x"))
        } run: { origin in
            let client = try await RawClient(origin)
            let answer = try await client.get("/")
            #expect(answer.status == 500)
            #expect(answer.field("X-C") == nil)
        }
    }
}
