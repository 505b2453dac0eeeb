import Martlet
import MartletTesting
import Testing

@Suite("Metrics of failed calls", .timeLimit(.minutes(20)))
struct ErrorMetricsTests {
    @Test("A call that could not connect has its attempts, its requests and its duration, and no connection")
    func refused() async throws {
        let closed = try ClosedPort.shared.get()
        let session = HTTPSession.own { $0.retry = .transient(maximumAttempts: 3, backoff: .constant(.zero)) }
        let error = try #require(
            await #expect(throws: HTTPError.self) { try await session.get(closed.url + "?token=hunter2") })
        let metrics = try #require(error.metrics)
        #expect(metrics.attempts == 3 && metrics.connection == nil && metrics.firstByte == nil)
        #expect(metrics.hops == error.hops && metrics.hops.map(\.reason) == [.retry, .retry])
        #expect(metrics.total > .zero && metrics.startedAt != nil)
        #expect(!metrics.hops.map(\.url.absoluteString).joined().contains("hunter2"))
    }

    @Test("A call whose body was cut has the metrics of its connection, collected, streamed and opened")
    func cut() async throws {
        let script = ServerScript.respond("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        try await TestOrigin.withOrigin(scripts: script, script, script) { origin async throws in
            let session = HTTPSession.own()
            let collected = await #expect(throws: HTTPError.self) { try await session.get(origin.url()) }
            let streamed = await #expect(throws: HTTPError.self) {
                try await session.stream(origin.url()) { _, body in for try await _ in body {} }
            }
            let opened = await #expect(throws: HTTPError.self) {
                try await session.open(origin.url()).body.collect()
            }
            for error in [collected, streamed, opened] {
                #expect(error?.code == .truncated)
                let metrics = try #require(error?.metrics)
                #expect(metrics.attempts == 1 && metrics.receivedBodyByteCount == 4 && metrics.sentByteCount > 0)
                #expect(metrics.connection != nil && metrics.connect != nil && !metrics.isConnectionReused)
                let firstByte = try #require(metrics.firstByte)
                #expect(firstByte <= metrics.total)
            }
        }
    }

    @Test("A call that ends before the response's head has the bytes that were sent")
    func empty() async throws {
        let script = ServerScript(.expectRequestHead, .close)
        try await TestOrigin.withOrigin(scripts: script) { origin async throws in
            let error = await #expect(throws: HTTPError.self) { try await HTTPSession.own().get(origin.url()) }
            let metrics = try #require(error?.metrics)
            #expect(metrics.connection != nil && metrics.sentByteCount > 0 && metrics.firstByte == nil)
        }
    }

    @Test("A rejected response has its exchange's metrics, and after redirects the masked requests")
    func rejected() async throws {
        try await TestOrigin.withOrigin { request in
            request.path == "/a" ? .redirect(to: "/b?token=hunter2") : .text("no", status: 404)
        } run: { origin async throws in
            let session = HTTPSession.own()
            let url = origin.url("/a?token=hunter2")
            let inside = await #expect(throws: HTTPError.self) { try await session.get(url, validate: .success) }
            let after = await #expect(throws: HTTPError.self) { try await session.get(url).validated() }
            for error in [inside, after] {
                let metrics = try #require(error?.metrics)
                #expect(metrics.attempts == 2 && metrics.hops.map(\.reason) == [.redirect])
                #expect(metrics.connection != nil && metrics.firstByte != nil)
                #expect(!metrics.hops.map(\.url.absoluteString).joined().contains("hunter2"))
            }
        }
    }

    @Test("Without a call there are no metrics")
    func outside() async throws {
        let error = await #expect(throws: HTTPError.self) { try await HTTPSession.own().get("nonsense") }
        #expect(error?.code == .invalidURL && error?.metrics == nil)
        #expect(HTTPError(.invalidRequest, phase: .preparing, message: "no").metrics == nil)
    }
}
