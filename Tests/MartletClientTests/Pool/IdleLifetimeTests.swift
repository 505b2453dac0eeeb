import Martlet
import MartletTesting
import Testing

@Suite("Lifetime of connections")
struct IdleLifetimeTests {
    @Test("An idle connection is closed after its lifetime")
    func idleLifetime() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("x"))) { origin in
            let session = HTTPSession.own { $0.pool.idleLifetime = .milliseconds(100) }
            _ = try await session.get(origin.url())
            try await origin.recorder.waitForOpenConnections(atMost: 0)
            #expect(session.poolStatus.idle == 0)
        }
    }

    @Test("Keep-Alive: timeout=1 closes a connection before one second has passed")
    func keepAliveTimeout() async throws {
        let script = ServerScript(
            .expectRequestHead,
            .send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nKeep-Alive: timeout=1\r\n\r\n"), .awaitClose)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let session = HTTPSession.own { $0.pool.idleLifetime = TestTimeouts.long * 2 }
            let start = ContinuousClock.now
            _ = try await session.get(origin.url())
            try await origin.recorder.waitForOpenConnections(atMost: 0)
            // The margin reduces the one second by half. The session's own limit is ten minutes.
            #expect(ContinuousClock.now - start >= .milliseconds(450))
            #expect(ContinuousClock.now - start < TestTimeouts.ending)
            #expect(session.poolStatus.idle == 0)
        }
    }

    @Test("Keep-Alive: timeout=0 prevents reuse")
    func keepAliveZero() async throws {
        let script = ServerScript(
            .expectRequestHead,
            .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nKeep-Alive: timeout=0\r\n\r\nok"), .awaitClose)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let session = HTTPSession.own()
            _ = try await session.get(origin.url())
            try await origin.recorder.waitForOpenConnections(atMost: 0)
            #expect(try await session.get(origin.url()).text == "ok")
            #expect(origin.connectionCount == 2)
        }
    }

    @Test("A connection is reused at most as often as allowed")
    func maximumUses() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("x"))) { origin in
            let session = HTTPSession.own { $0.pool.maximumUses = 2 }
            for _ in 1...5 { _ = try await session.get(origin.url()) }
            #expect(origin.connectionCount == 3)
        }
    }

    @Test("A connection is closed at its maximum age")
    func maximumAge() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("x"))) { origin in
            let session = HTTPSession.own { $0.pool.maximumAge = .milliseconds(100) }
            _ = try await session.get(origin.url())
            try await origin.recorder.waitForOpenConnections(atMost: 0)
            #expect(session.poolStatus.idle == 0)
        }
    }

    @Test("Connection: close is honoured from both sides", arguments: ["close", "Close", "x, CLOSE"])
    func close(value: String) async throws {
        let script = ServerScript(
            .expectRequestHead,
            .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: \(value)\r\n\r\nok"), .awaitClose)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let session = HTTPSession.own()
            _ = try await session.get(origin.url())
            #expect(session.poolStatus.idle == 0)
            try await origin.recorder.waitForOpenConnections(atMost: 0)
        }
    }

    @Test("With a limit of zero idle connections none is stored")
    func noIdle() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("x"))) { origin in
            let session = HTTPSession.own { $0.pool.idleConnectionsPerHost = 0 }
            _ = try await session.get(origin.url())
            _ = try await session.get(origin.url())
            #expect(origin.connectionCount == 2)
            try await origin.recorder.waitForOpenConnections(atMost: 0)
        }
    }
}
