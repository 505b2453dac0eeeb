import FoundationEssentials
import MartletCore
import MartletTesting
import MartletTransport
import Testing

@Suite("Recorded requests and test responses")
struct RecordingTests {
    private struct Note: Codable, Equatable { var title: String }

    private static let post =
        "POST /notes?a=1&b=x%20y HTTP/1.1\r\nHost: t.example\r\nContent-Type: application/json\r\n"
        + "Content-Length: 15\r\n\r\n{\"title\":\"sea\"}"

    /// The part of the body that the handler reads.
    enum Reading: CaseIterable { case nothing, all, failing }

    @Test("A recorded request is complete, whatever the handler reads", arguments: Reading.allCases)
    func parts(_ reading: Reading) async throws {
        let mock = MockTransport { request in
            if reading != .nothing { _ = try await request.collectBody() }
            if reading == .failing { throw OriginError.bodyNotReadable }
            return .status(201)
        }
        let client = try await RawClient(mock)
        try await client.send(Self.post)
        #expect(try await client.response().status == (reading == .failing ? 500 : 201))
        let request = try #require(mock.requests.first)
        #expect(request.method == .post && request.path == "/notes" && request.query["b"] == "x y")
        #expect(request.query == "a=1&b=x%20y" && request.query["c"] == nil)
        #expect(request.url == "http://t.example/notes?a=1&b=x%20y")
        #expect(request.headers["content-type"] == "application/json" && request.contentType == "application/json")
        #expect(request.headers[.contentLength] == "15" && request.bodyByteCount == 15)
        #expect(request.text == #"{"title":"sea"}"#)
        #expect(try request.decode(Note.self) == Note(title: "sea"))
        #expect(throws: OriginError.self) { try request.decode([Int].self) }
        #expect("\(request)" == "POST /notes?a=1&b=x%20y (15 bytes)")
        await mock.stop()
    }

    private struct Visit: Codable, Equatable {
        var startTime: Date
        var homePage: String
    }

    @Test("Values are encoded and decoded by the given coders, and by plain JSON without them")
    func coders() async throws {
        let mock = MockTransport { request in
            let visit: Visit = try await request.decode(decoder: .json(keys: .snakeCase, dates: .iso8601))
            if request.path == "/plain" { return try .json(visit) }
            return try .json(visit, status: 201, encoder: .json(keys: .snakeCase, dates: .iso8601))
        }
        let client = try await RawClient(mock)
        let text = #"{"start_time":"2001-09-09T01:46:40Z","home_page":"a/b"}"#
        let end = " HTTP/1.1\r\nHost: t\r\nContent-Length: \(text.utf8.count)\r\n\r\n\(text)"
        try await client.send("POST /\(end)")
        let coded = try await client.response()
        #expect(coded.status == 201 && coded.field("Content-Type") == "application/json")
        #expect(coded.text == #"{"home_page":"a\/b","start_time":"2001-09-09T01:46:40Z"}"#)
        try await client.send("POST /plain\(end)")
        #expect(try await client.response().text.hasPrefix(#"{"homePage":"a/b","startTime":2"#))
        let request = try #require(mock.requests.first)
        let visit = Visit(startTime: Date(timeIntervalSince1970: 1_000_000_000), homePage: "a/b")
        #expect(try request.decode(Visit.self, decoder: .json(keys: .snakeCase, dates: .iso8601)) == visit)
        #expect(throws: OriginError.self) { try request.decode(Visit.self) }
        await mock.stop()
    }

    @Test(
        "A body that the handler does not read is recorded before a fault as far as it has arrived",
        arguments: [OriginFault.Kind.close, .cut, .reset, .stall])
    func bodiesBeforeFaults(_ kind: OriginFault.Kind) async throws {
        let mock = MockTransport { _ in throw OriginFault(kind) }
        for rest in [
            "Content-Length: 3\r\n\r\nabc", "Content-Length: 2000000\r\n\r\nabc",
            "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        ] {
            let client = try await RawClient(mock)
            try await client.send("PUT / HTTP/1.1\r\nHost: t\r\n\(rest)")
            if kind == .stall { client.close() }
            try await mock.recorder.waitForOpenConnections(atMost: 0)
        }
        #expect(mock.requests.map(\.text) == ["abc", "abc", "abc"])
        await mock.stop()
    }

    @Test("A body that arrives during a stall is recorded")
    func bodyDuringStall() async throws {
        let mock = MockTransport { _ in throw OriginFault(.stall) }
        let client = try await RawClient(mock)
        try await client.send("PUT / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n")
        try await mock.waitForRequests(count: 1)
        try await client.send("3\r\nabc\r\n")
        client.close()
        try await mock.recorder.waitForOpenConnections(atMost: 0)
        #expect(mock.requests.map(\.text) == ["abc"])
        await mock.stop()
    }

    @Test("Recording does not wait for a late body, and does not request one with 100 Continue")
    func lateBodies() async throws {
        let mock = MockTransport { _ in .status(413) }
        let client = try await RawClient(mock)
        try await client.send("PUT / HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\n\r\nab")
        #expect(try await client.response().status == 413)
        let second = try await RawClient(mock)
        try await second.send("PUT / HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
        #expect(try await second.response().status == 413)
        #expect(mock.requests.map(\.text) == ["ab", ""])
        await mock.stop()
    }

    @Test("The bodies of the latest requests are recorded within the limit")
    func limits() async throws {
        var limits = OriginLimits()
        limits.recordedBodyLimit = 20
        let mock = MockTransport(handler: .status(200), limits: limits)
        let client = try await RawClient(mock)
        for _ in 0..<2 {
            try await client.send(Self.post)
            #expect(try await client.response().status == 200)
        }
        #expect(mock.requests.map(\.body.count) == [0, 15])
        #expect(throws: OriginError.bodyNotRecorded(byteCount: 15)) {
            try #require(mock.requests.first).decode(Note.self)
        }
        try await client.send(
            "PUT / HTTP/1.1\r\nHost: t\r\nContent-Length: 30\r\n\r\n" + String(repeating: "x", count: 30))
        #expect(try await client.response().status == 200)
        #expect(mock.requests.map(\.body.count) == [0, 0, 20])
        await mock.stop()
    }

    @Test("The bodies of two uploads at the same time are recorded within the limit")
    func interleaved() async throws {
        var limits = OriginLimits()
        limits.recordedBodyLimit = 20
        let (pieces, received) = AsyncStream<Int>.makeStream()
        let mock = MockTransport(
            handler: OriginHandler { request in
                for try await piece in request.body { received.yield(piece.count) }
                return .status(200)
            }, limits: limits)
        var counts = pieces.makeAsyncIterator()
        let clients = try await [RawClient(mock), RawClient(mock)]
        for (index, text) in [(0, "aaaaaaaaaa"), (1, "bbbbbbb"), (1, "bbbbbbb"), (0, "aaaaaaaaaa"), (1, "bbbbbb")] {
            if mock.requests.count == index {
                try await clients[index].send("PUT / HTTP/1.1\r\nHost: t\r\nContent-Length: 20\r\n\r\n")
            }
            try await clients[index].send(text)
            var missing = text.utf8.count
            while missing > 0 { missing -= try #require(await counts.next()) }
            #expect(mock.requests.reduce(0) { $0 + $1.body.count } <= 20)
        }
        for client in clients { #expect(try await client.response().status == 200) }
        #expect(mock.requests.map(\.text) == ["", String(repeating: "b", count: 20)])
        #expect(mock.requests.map(\.bodyByteCount) == [20, 20])
        await mock.stop()
    }

    @Test("The URL of an absolute request target has its own scheme")
    func absoluteTarget() async throws {
        let mock = MockTransport { _ in .status(200) }
        let client = try await RawClient(mock)
        try await client.send("GET https://t.example/a?b HTTP/1.1\r\nHost: t.example\r\n\r\n")
        #expect(try await client.response().status == 200)
        let request = try #require(mock.requests.first)
        #expect(request.url == "https://t.example/a?b" && request.path == "/a")
        await mock.stop()
    }

    @Test("Scripts record the requests that they read")
    func scripts() async throws {
        let script = ServerScript(
            .expectRequestHead, .readBody(15), .send("one"), .expectRequestHead, .send("two"), .expect("noise\r\n\r\n"))
        try await TestOrigin.withOrigin(scripts: [script]) { origin in
            let client = try await RawClient(origin)
            try await client.send(Self.post + "GET /b HTTP/1.1\r\nHost: t\r\n\r\nnoise\r\n\r\n")
            #expect(String(decoding: try await client.receiveAll(), as: UTF8.self) == "onetwo")
            let requests = try await origin.waitForRequests(count: 2)
            #expect(requests.map(\.method) == [.post, .get] && requests.map(\.number) == [1, 2])
            #expect(try requests[0].decode(Note.self) == Note(title: "sea"))
            #expect(origin.recorder.problems.isEmpty)
        }
    }

    @Test("Handlers are used in turn, and the last one repeats")
    func inTurn() async throws {
        let handler = OriginHandler.inTurn([.status(503, headers: ["Retry-After": "1"]), .text("ok", status: 202)])
        let mock = MockTransport(
            handler: .router {
                $0.any("/a", handler)
                $0.any("/none", .inTurn([]))
            })
        let client = try await RawClient(mock)
        let first = try await client.get("/a")
        #expect(first.status == 503 && first.field("Retry-After") == "1" && first.text == "503 Service Unavailable\n")
        for _ in 0..<2 { #expect(try await client.get("/a").status == 202) }
        #expect(try await client.get("/none").status == 404)
        await mock.stop()
    }

    @Test(
        "A fault that a handler throws occurs after its number of body bytes",
        arguments: [0, 1, 1000, 70_000] as [UInt64], [false, true])
    func thrownFaults(_ count: UInt64, _ isStream: Bool) async throws {
        let mock = MockTransport { _ in
            let fault = OriginFault(.close, afterBodyBytes: count)
            guard isStream else { throw fault }
            return OriginResponse(body: .stream(length: 100_000) { _ in throw fault })
        }
        let client = try await RawClient(mock)
        try await client.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n")
        #expect(try await client.receive(through: "\r\n\r\n").hasPrefix("HTTP/1.1 200 OK\r\n"))
        #expect(try await client.receiveAll() == TestPattern.bytes(from: 0, count: Int(count)))
        await mock.stop()
    }

    @Test("Each verb of the router matches its method, and a colon begins a parameter")
    func router() async throws {
        let mock = MockTransport(
            handler: .router {
                $0.get("/n/:id") { .text("get \($0.parameters["id"] ?? "")", contentType: "text/csv") }
                $0.put("/n/:id", .text("put"))
                $0.patch("/n/:id", .text("patch"))
                $0.delete("/n/:id") { _ in .status(404) }
                $0.post("/n/:id/:part") { .text("\($0.parameters["id"] ?? "") \($0.parameters["part"] ?? "")") }
                $0.head("/h", .status(200))
                $0.on(.options, "/h", .status(204))
            })
        let client = try await RawClient(mock)
        let got = try await client.get("/n/a%20b")
        #expect(got.text == "get a b" && got.field("Content-Type") == "text/csv")
        #expect(try await client.get("/n/7", method: "PUT").text == "put")
        #expect(try await client.get("/n/7", method: "PATCH").text == "patch")
        #expect(try await client.get("/n/7", method: "DELETE").text == "404 Not Found\n")
        #expect(try await client.get("/n/7/x", method: "POST").text == "7 x")
        #expect(try await client.get("/h", method: "OPTIONS").status == 204)
        #expect(try await client.get("/h").status == 405)
        await mock.stop()
    }

    @Test("A handler can return the whole content for a range request")
    func ranges() async throws {
        for (accepts, status, count) in [(true, 206, 4), (false, 200, 10)] {
            let mock = MockTransport(handler: .bytes(10, acceptsRanges: accepts))
            let client = try await RawClient(mock)
            let response = try await client.get("/", fields: "Range: bytes=0-3\r\n")
            #expect(response.status == status && response.body.count == count)
            await mock.stop()
        }
    }

    @Test("Header fields print as their literal, and a given Content-Type takes precedence")
    func fields() {
        let headers: OriginFields = ["A": "1", "a": "2"]
        #expect("\(headers)" == #"["A": "1", "a": "2"]"# && "\(OriginFields())" == "[:]")
        #expect(
            OriginResponse.text("x", headers: ["content-type": "a/b"]).headers.values(of: "Content-Type") == ["a/b"])
    }
}
