import Martlet
import MartletTesting
import MartletTransport
import Synchronization
import Testing

extension OneAtATime {
    @Suite("The five clocks")
    struct ClockTests {
        /// Sends a GET with clocks of its own, and returns how it failed.
        private func failure(
            _ session: HTTPSession, _ url: String, _ timeouts: Timeouts, body: HTTPBody = .none,
            method: HTTPRequest.Method = .get
        ) async throws -> HTTPError {
            let request = try HTTPRequest(method: method, url: url)
            return try #require(
                await #expect(throws: HTTPError.self) {
                    try await session.send(request, body: body, options: RequestOptions(timeouts: timeouts))
                })
        }

        private static func check(
            _ error: HTTPError, _ clock: HTTPError.Clock, _ phase: HTTPError.Phase, atLeast span: Duration
        ) {
            #expect(error.code == .timedOut)
            #expect(error.clock == clock)
            #expect(error.phase == phase)
            #expect(error.isTimeout)
            #expect((error.elapsed ?? .zero) >= span)
            #expect((error.elapsed ?? .seconds(99)) < span + .seconds(60))
            #expect(error.message.contains(clock.rawValue))
        }

        @Test("Pool wait: no connection becomes free")
        func poolWait() async throws {
            let signals = SignalBox()
            try await TestOrigin.withOrigin { request in
                if request.path == "/first" { try await signals.wait(for: "go") }
                return .text("x")
            } run: { origin in
                signals.use(origin)
                let session = HTTPSession.own { $0.pool.connectionsPerHost = 1 }
                async let first = session.get(origin.url("/first"))
                try await origin.waitForRequests(count: 1)
                let error = try await failure(
                    session, origin.url(), Timeouts(poolWait: .milliseconds(100), connect: .milliseconds(10)))
                ClockTests.check(error, .poolWait, .waitingForConnection, atLeast: .milliseconds(100))
                #expect(!error.wasSent)
                origin.signals.raise("go")
                _ = try await first
                #expect(session.poolStatus.waiting == 0)
            }
        }

        @Test("Connect: the name is not found in time")
        func connectResolving() async throws {
            let session = HTTPSession.own { $0.resolver = GatedResolver() }
            let error = try await failure(
                session, "http://name.example/", Timeouts(connect: .milliseconds(100)))
            ClockTests.check(error, .connect, .resolving, atLeast: .milliseconds(100))
            #expect(!error.wasSent)
            #expect(error.isConnectFailure)
        }

        @Test("Connect: nobody answers")
        func connectConnecting() async throws {
            let hole = try await BlackHole()
            let session = HTTPSession.own()
            let error = try await failure(
                session, "http://127.0.0.1:\(hole.port)/", Timeouts(connect: .milliseconds(100)))
            ClockTests.check(error, .connect, .connecting, atLeast: .milliseconds(100))
            #expect(!error.wasSent)
            hole.close()
        }

        @Test("Connect: the peer is silent in the handshake")
        func connectSecuring() async throws {
            try await TestOrigin.withOrigin(scripts: ServerScript(.awaitClose)) { origin in
                // Loading the system's roots would take a part of the clock's span.
                let session = HTTPSession.own { $0.tls.trust = .dangerouslyAcceptingAnyCertificate }
                let error = try await failure(
                    session, "https://127.0.0.1:\(origin.port)/", Timeouts(connect: .seconds(1)))
                ClockTests.check(error, .connect, .securing, atLeast: .seconds(1))
                #expect(!error.wasSent)
                try await origin.ledger.waitForOpenConnections(atMost: 0)
            }
        }

        @Test("Head: the server is silent")
        func head() async throws {
            try await TestOrigin.withOrigin(scripts: ServerScript(.expectRequestHead, .awaitClose)) {
                origin in
                let session = HTTPSession.own()
                let error = try await failure(session, origin.url(), Timeouts(head: .milliseconds(100)))
                ClockTests.check(error, .head, .awaitingHead, atLeast: .milliseconds(100))
                #expect(error.wasSent)
                try await origin.ledger.waitForOpenConnections(atMost: 0)
            }
        }

        @Test(
            "Head: a server that drips its head byte by byte, or interim responses, meets the clock",
            arguments: ["HTTP/1.1 200 OK\r\nX-Long: ", "HTTP/1.1 102 Processing\r\n\r\n"])
        func drippedHead(text: String) async throws {
            let script = ServerScript(
                .expectRequestHead, .send(text),
                .drip(String(repeating: "HTTP/1.1 102 P\r\n\r\n", count: 9), every: .milliseconds(20)),
                .awaitClose)
            try await TestOrigin.withOrigin(scripts: script) { origin in
                let session = HTTPSession.own()
                let error = try await failure(session, origin.url(), Timeouts(head: .milliseconds(300)))
                ClockTests.check(error, .head, .awaitingHead, atLeast: .milliseconds(300))
            }
        }

        @Test("Idle: a body that stalls", arguments: [false, true])
        func idleBody(isSecure: Bool) async throws {
            let script = ServerScript(
                .expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234"), .awaitClose)
            try await TestOrigin.withOrigin(isSecure ? .tls() : .plain, scripts: script) { origin in
                let session = HTTPSession.trusting(origin)
                let error = try await failure(session, origin.url(), Timeouts(idle: .milliseconds(100)))
                ClockTests.check(error, .idle, .receivingBody, atLeast: .milliseconds(100))
                try await origin.ledger.waitForOpenConnections(atMost: 0)
            }
        }

        @Test("Idle: an upload that nobody takes")
        func idleUpload() async throws {
            try await TestOrigin.withOrigin(scripts: ServerScript(.expectRequestHead, .stall)) { origin in
                let session = HTTPSession.own()
                let error = try await failure(
                    session, origin.url(), Timeouts(idle: .milliseconds(200)), body: .pattern(256 << 20),
                    method: .put)
                ClockTests.check(error, .idle, .sending, atLeast: .milliseconds(200))
                #expect(error.wasSent)
            }
        }

        @Test("Idle: bytes that go up count while the response is awaited further")
        func idleUploadMoves() async throws {
            // The head comes at once; then the server takes the upload slowly, and says no more until it has all.
            let size = 40_000
            let script = ServerScript(
                [.expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")]
                    + (0..<8).flatMap { _ in [ScriptStep.pause(.milliseconds(500)), .readBody(size / 8)] }
                    + [.send("ok"), .awaitClose])
            let sent = Mutex(0)
            try await TestOrigin.withOrigin(scripts: script) { origin in
                let session = HTTPSession.own()
                // A piece goes out each time the server has taken one.
                let body = HTTPBody.stream(length: UInt64(size)) {
                    PatternPieces(byteCount: UInt64(size), pieceSize: size / 8) { offset in
                        sent.withLock { $0 = Int(offset) }
                        _ = await OneShot<Void>().wait(
                            until: MonotonicTime.now().advanced(by: .milliseconds(200)),
                            on: EventLoop.sharedOrStalled)
                    }
                }
                let exchange = try await session.send(
                    HTTPRequest(.put, origin), body: body,
                    options: RequestOptions(timeouts: Timeouts(idle: .seconds(3))))
                #expect(exchange.text == "ok")
            }
        }

        @Test("Total: a server that drips its body keeps the idle clock from running out, and meets this one")
        func drippedBody() async throws {
            let script = ServerScript(
                .expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n"),
                .drip(String(repeating: "x", count: 10_000), every: .milliseconds(50)))
            try await TestOrigin.withOrigin(scripts: script) { origin in
                let session = HTTPSession.own()
                let error = try await failure(
                    session, origin.url(), Timeouts(idle: .seconds(20), total: .seconds(2)))
                ClockTests.check(error, .total, .receivingBody, atLeast: .seconds(2))
                try await origin.ledger.waitForOpenConnections(atMost: 0)
            }
        }

        @Test("Total: a body that never ends meets the clock, though a byte is always there")
        func endlessBody() async throws {
            try await TestOrigin.withOrigin(handler: .fixed(.pattern(1 << 40))) { origin in
                let session = HTTPSession.own()
                let error = try #require(
                    await #expect(throws: HTTPError.self) {
                        try await session.stream(
                            HTTPRequest(.get, origin),
                            options: RequestOptions(timeouts: Timeouts(total: .seconds(2)))
                        ) { _, body in for try await _ in body {} }
                    })
                ClockTests.check(error, .total, .receivingBody, atLeast: .seconds(2))
            }
        }

        @Test("Total: in the pool's line, while connecting, and before the head")
        func totalElsewhere() async throws {
            let total = Timeouts(connect: .seconds(60), total: .seconds(2))
            let hole = try await BlackHole()
            let connecting = try await failure(
                HTTPSession.own(), "http://127.0.0.1:\(hole.port)/", total)
            ClockTests.check(connecting, .total, .connecting, atLeast: .seconds(2))
            hole.close()
            try await TestOrigin.withOrigin(scripts: ServerScript(.expectRequestHead, .awaitClose)) {
                origin in
                let session = HTTPSession.own { $0.pool.connectionsPerHost = 1 }
                let held = Task { try await session.get(origin.url()) }
                _ = await eventually { session.poolStatus.leased == 1 }
                let waiting = try await failure(session, origin.url(), total)
                ClockTests.check(waiting, .total, .waitingForConnection, atLeast: .seconds(2))
                held.cancel()
                await #expect(throws: CancellationError.self) { try await held.value }
                let head = try await failure(session, origin.url(), total)
                ClockTests.check(head, .total, .awaitingHead, atLeast: .seconds(2))
            }
        }

        @Test("Total: an upload that goes on and on")
        func totalUpload() async throws {
            try await TestOrigin.withOrigin { request in
                for try await _ in request.body {}
                return .text("x")
            } run: { origin in
                let session = HTTPSession.own()
                let error = try await failure(
                    session, origin.url(), Timeouts(total: .seconds(2)), body: .pattern(1 << 50),
                    method: .put)
                ClockTests.check(error, .total, .sending, atLeast: .seconds(2))
            }
        }

        @Test("A connection opened late in the line has the whole of its time")
        func connectAfterWait() async throws {
            let resolver = GatedResolver(freeCount: 1)
            let signals = SignalBox()
            try await TestOrigin.withOrigin { request in
                if request.path == "/first" { try await signals.wait(for: "go") }
                return OriginResponse.text("x").with { $0.closesConnection = true }
            } run: { origin in
                signals.use(origin)
                let session = HTTPSession.own { configuration in
                    configuration.pool.connectionsPerHost = 1
                    configuration.resolver = resolver
                }
                let url = "http://name.example:\(origin.port)"
                async let first = session.get("\(url)/first")
                try await origin.waitForRequests(count: 1)
                let timeouts = Timeouts(poolWait: .seconds(4), connect: .seconds(3))
                let start = ContinuousClock.now
                async let second = failure(session, "\(url)/second", timeouts)
                #expect(await eventually { session.poolStatus.waiting == 1 })
                // Past its connect time, had that begun with the wait.
                #expect(await eventually { ContinuousClock.now - start > .milliseconds(3300) })
                origin.signals.raise("go")
                _ = try await first
                #expect(await eventually { resolver.askedCount == 2 })
                let error = try await second
                #expect(error.clock == .connect)
                #expect(error.isConnectFailure)
                #expect(ContinuousClock.now - start >= .milliseconds(6200))
            }
        }

        @Test("A clock without a span never runs out")
        func stopped() async throws {
            try await TestOrigin.withOrigin { _ in
                OriginResponse.text("late").with { $0.delay = .milliseconds(200) }
            } run: { origin in
                let session = HTTPSession.own { configuration in
                    configuration.timeouts = Timeouts(
                        connect: .milliseconds(1), head: .milliseconds(1), idle: .milliseconds(1))
                }
                let none = Timeouts(connect: nil, head: nil, idle: nil)
                let exchange = try await session.get(origin.url(), options: RequestOptions(timeouts: none))
                #expect(exchange.text == "late")
            }
        }
    }
}
