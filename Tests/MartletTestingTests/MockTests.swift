import MartletCore
import MartletTesting
import MartletTransport
import Testing

@Suite("Mock transport")
struct MockTests {
    @Test("A mock responds without a socket")
    func answers() async throws {
        let mock = MockTransport { request in .text("\(request.method) \(request.target)") }
        let client = try await RawClient(mock)
        #expect(try await client.get("/a").text == "GET /a")
        #expect(try await client.get("/b").text == "GET /b")
        #expect(mock.requests.count == 2)
        await mock.stop()
        #expect(try await client.receive() == nil)
    }

    @Test("A mock plays scripts")
    func playsScripts() async throws {
        let mock = MockTransport(scripts: ServerScript(.expectRequestHead, .send("garbage"), .close))
        let client = try await RawClient(mock)
        try await client.send("GET / HTTP/1.1\r\n\r\n")
        #expect(String(decoding: try await client.receiveAll(), as: UTF8.self) == "garbage")
    }

    @Test("A body larger than the stream's buffer passes in both directions")
    func echoesMuch() async throws {
        let mock = MockTransport { request in
            .bytes(try await request.collectBody())
        }
        let client = try await RawClient(mock)
        let body = TestPattern.bytes(from: 0, count: 1 << 20)
        try await client.send("PUT / HTTP/1.1\r\nHost: t\r\nContent-Length: \(body.count)\r\n\r\n")
        try await client.send(body)
        let answer = try await client.response()
        #expect(answer.body == body)
    }

    @Test("The same helper sends requests to a mock and to an origin")
    func servers() async throws {
        func exchange(with server: some TestServer, _ configuration: SessionConfiguration) async throws {
            let session = HTTPSession(configuration: configuration)
            #expect(try await session.get(server.url("a?b=c")).text == "\(server.base)/a?b=c")
            #expect(try await server.waitForRequests(count: 1).map(\.url) == [server.url("/a?b=c")])
            #expect(server.requests.count == 1 && server.connectionCount == 1)
            server.closeAllConnections()
            try await server.recorder.waitForOpenConnections(atMost: 0)
            #expect(server.openConnectionCount == 0)
        }
        try await MockTransport.withMock { request in
            .text(request.url)
        } run: { mock in
            #expect(mock.url() == "http://mock.test/")
            try await exchange(with: mock, .mock(mock))
        }
        try await TestOrigin.withOrigin { request in
            .text(request.url)
        } run: { origin in
            try await exchange(with: origin, .ephemeral)
        }
    }

    @Test("A scoped mock is stopped after its closure")
    func scoped() async throws {
        let client = try await MockTransport.withMock(handler: .text("ok")) { mock in
            let inner = try await RawClient(mock)
            #expect(try await inner.get("/").text == "ok")
            return inner
        }
        #expect(try await client.receive() == nil)
        try await MockTransport.withMock(scripts: .respond("HTTP/1.1 204 No Content\r\n\r\n")) { mock in
            let response = try await RawClient(mock).get("/")
            #expect(response.status == 204)
        }
    }

    @Test("Bytes that were sent before a reset are received before its error", arguments: [0, 1, 100_000])
    func bytesBeforeReset(_ count: Int) async throws {
        let mock = MockTransport { _ in throw OriginFault(.reset, afterBodyBytes: UInt64(count)) }
        let client = try await RawClient(mock)
        try await client.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n")
        #expect(try await client.receive(through: "\r\n\r\n").hasPrefix("HTTP/1.1 200 OK\r\n"))
        #expect(try await client.receive(exactly: count) == TestPattern.bytes(from: 0, count: count))
        await #expect(throws: TransportError.self) { try await client.receive() }
        await mock.stop()
    }

    @Test("A client that disconnects ends its connection")
    func noticesDeparture() async throws {
        let mock = MockTransport { _ in throw OriginFault(.stall) }
        let client = try await RawClient(mock)
        try await client.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n")
        try await mock.recorder.waitForRequests(count: 1)
        client.close()
        try await mock.recorder.waitForOpenConnections(atMost: 0)
    }
}
