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
        #expect(mock.recorder.requests.count == 2)
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
