import Martlet
import MartletTesting
import MartletTestSupport
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

        /// Makes a call fail by a clock in a phase, and checks what the error says of both.
        ///
        /// On a slow machine the clock may run out before the call has come to that phase: then it was no test of the clock
        /// there, and a clock of three times the span is tried.
        /// - Parameter call: Makes the call with a clock of the span given, and throws what that throws.
        @discardableResult
        private static func check(
            _ timeout: HTTPError.Timeout, _ phase: HTTPError.Phase, after first: Duration,
            _ call: (Duration) async throws -> HTTPError
        ) async throws -> HTTPError {
            var span = first
            while true {
                let error = try await call(span)
                if error.timeout == timeout, error.phase.precedes(phase), span * 3 < Patience.ending {
                    span *= 3
                    continue
                }
                check(error, timeout, phase, atLeast: span)
                return error
            }
        }

        private static func check(
            _ error: HTTPError, _ timeout: HTTPError.Timeout, _ phase: HTTPError.Phase, atLeast span: Duration
        ) {
            #expect(error.code == .timedOut)
            #expect(error.timeout == timeout)
            #expect(error.phase == phase)
            #expect(error.isTimeout)
            #expect((error.elapsed ?? .zero) >= span)
            #expect((error.elapsed ?? Patience.long) < span + Patience.ending)
            #expect(error.message.contains(timeout.rawValue))
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
                let clocks = Timeouts.patient(poolWait: .milliseconds(100), connect: .milliseconds(10))
                let error = try await failure(session, origin.url(), clocks)
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
            let error = try await ClockTests.check(.connect, .resolving, after: .milliseconds(100)) {
                try await failure(session, "http://name.example/", .patient(connect: $0))
            }
            #expect(!error.wasSent)
            #expect(error.isConnectFailure)
        }

        @Test("Connect: nobody answers")
        func connectConnecting() async throws {
            let hole = try await BlackHole()
            let session = HTTPSession.own()
            let error = try await ClockTests.check(.connect, .connecting, after: .milliseconds(100)) {
                try await failure(session, "http://127.0.0.1:\(hole.port)/", .patient(connect: $0))
            }
            #expect(!error.wasSent)
            hole.close()
        }

        @Test("Connect: the peer is silent in the handshake")
        func connectSecuring() async throws {
            try await TestOrigin.withOrigin(scripts: ServerScript(.awaitClose)) { origin in
                // Loading the system's roots would take a part of the clock's span.
                let session = HTTPSession.own { $0.tls.trust = .dangerouslyAcceptingAnyCertificate }
                let error = try await ClockTests.check(.connect, .tlsHandshake, after: .seconds(1)) {
                    try await failure(session, "https://127.0.0.1:\(origin.port)/", .patient(connect: $0))
                }
                #expect(!error.wasSent)
                try await origin.recorder.waitForOpenConnections(atMost: 0)
            }
        }

        @Test("Head: the server is silent")
        func head() async throws {
            try await TestOrigin.withOrigin(scripts: ServerScript(.expectRequestHead, .awaitClose)) {
                origin in
                let session = HTTPSession.own()
                let error = try await failure(session, origin.url(), .patient(head: .milliseconds(100)))
                ClockTests.check(error, .head, .awaitingHead, atLeast: .milliseconds(100))
                #expect(error.wasSent)
                try await origin.recorder.waitForOpenConnections(atMost: 0)
            }
        }

        @Test(
            "Head: a server that drips its head byte by byte, or interim responses, meets the clock",
            arguments: [
                ("HTTP/1.1 200 OK\r\nX-Long: ", "x"),
                ("HTTP/1.1 102 Processing\r\n\r\n", "HTTP/1.1 102 P\r\n\r\n"),
            ])
        func drippedHead(text: String, drops: String) async throws {
            // However much of it has come when the clock is looked at, there is no end of the head in it.
            let script = ServerScript(
                .expectRequestHead, .send(text),
                .drip(String(repeating: drops, count: 9), every: .milliseconds(20)), .awaitClose)
            try await TestOrigin.withOrigin(scripts: script) { origin in
                let session = HTTPSession.own()
                let error = try await failure(session, origin.url(), .patient(head: .milliseconds(300)))
                ClockTests.check(error, .head, .awaitingHead, atLeast: .milliseconds(300))
            }
        }

        @Test("Idle: a body that stalls", arguments: [false, true])
        func idleBody(isSecure: Bool) async throws {
            let script = ServerScript(
                .expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234"), .awaitClose)
            try await TestOrigin.withOrigin(isSecure ? .tls() : .plain, scripts: script) { origin in
                let session = HTTPSession.trusting(origin)
                let error = try await failure(session, origin.url(), .patient(idle: .milliseconds(100)))
                ClockTests.check(error, .idle, .receivingBody, atLeast: .milliseconds(100))
                try await origin.recorder.waitForOpenConnections(atMost: 0)
            }
        }

        @Test("Idle: an upload that nobody takes")
        func idleUpload() async throws {
            try await TestOrigin.withOrigin(scripts: ServerScript(.expectRequestHead, .stall)) { origin in
                let session = HTTPSession.own()
                let error = try await failure(
                    session, origin.url(), .patient(idle: .milliseconds(200)), body: .pattern(1 << 40),
                    method: .put)
                ClockTests.check(error, .idle, .sending, atLeast: .milliseconds(200))
                #expect(error.wasSent)
            }
        }

        @Test("Idle: bytes that go up count while the response is awaited further")
        func idleUploadMoves() async throws {
            var unit = Duration.milliseconds(500)
            while try await !movesUp(inStepsOf: unit) {
                unit *= 3
                try #require(unit * 6 < Patience.ending, "no byte went up in time")
            }
        }

        /// Sends a body in eight steps, all of which together take longer than the idle clock, and each much less.
        ///
        /// - Returns: Whether the machine kept to that.
        private func movesUp(inStepsOf unit: Duration) async throws -> Bool {
            // The head comes at once; then the server takes the upload slowly, and says no more until it has all.
            let size = 40_000
            let idle = unit * 6
            let script = ServerScript(
                [.expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")]
                    + (0..<8).flatMap { _ in [ScriptStep.pause(unit), .readBody(size / 8)] }
                    + [.send("ok"), .awaitClose])
            let moved = Mutex(ContinuousClock.now)
            return try await TestOrigin.withOrigin(scripts: script) { origin in
                let session = HTTPSession.own()
                // A piece goes out each time the server has taken one.
                let body = HTTPBody.stream(length: UInt64(size)) {
                    PatternPieces(byteCount: UInt64(size), pieceSize: size / 8) { _ in
                        // The piece before is out by now.
                        moved.withLock { $0 = .now }
                        _ = await OneShot<Void>().wait(
                            until: MonotonicTime.now().advanced(by: unit * 2 / 5),
                            on: EventLoop.sharedOrStalled)
                    }
                }
                do {
                    let exchange = try await session.send(
                        HTTPRequest(.put, origin), body: body,
                        options: RequestOptions(timeouts: .patient(idle: idle)))
                    #expect(exchange.text == "ok")
                    return true
                } catch let error as HTTPError {
                    #expect(error.timeout == .idle)
                    // The clock may be right: on a slow machine the last step may have taken as long as it allows.
                    #expect(ContinuousClock.now - moved.withLock { $0 } >= idle)
                    return false
                }
            }
        }

        @Test("Total: a server that drips its body keeps the idle clock from running out, and meets this one")
        func drippedBody() async throws {
            let script = ServerScript(
                .expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n"),
                .drip(String(repeating: "x", count: 9_999), every: .milliseconds(50)), .awaitClose)
            try await TestOrigin.withOrigin(scripts: script) { origin in
                let session = HTTPSession.own()
                try await ClockTests.check(.total, .receivingBody, after: .seconds(2)) {
                    try await failure(session, origin.url(), .patient(total: $0))
                }
                try await origin.recorder.waitForOpenConnections(atMost: 0)
            }
        }

        @Test("Total: a body that never ends meets the clock, though a byte is always there")
        func endlessBody() async throws {
            try await TestOrigin.withOrigin(handler: .fixed(.pattern(1 << 40))) { origin in
                let session = HTTPSession.own()
                try await ClockTests.check(.total, .receivingBody, after: .seconds(2)) { span in
                    try #require(
                        await #expect(throws: HTTPError.self) {
                            try await session.stream(
                                HTTPRequest(.get, origin),
                                options: RequestOptions(timeouts: .patient(total: span))
                            ) { _, body in for try await _ in body {} }
                        })
                }
            }
        }

        @Test("Total: in the pool's line, while connecting, and before the head")
        func totalElsewhere() async throws {
            let hole = try await BlackHole()
            try await ClockTests.check(.total, .connecting, after: .seconds(2)) {
                try await failure(HTTPSession.own(), "http://127.0.0.1:\(hole.port)/", .patient(total: $0))
            }
            hole.close()
            try await TestOrigin.withOrigin(scripts: ServerScript(.expectRequestHead, .awaitClose)) {
                origin in
                let session = HTTPSession.own { $0.pool.connectionsPerHost = 1 }
                let held = Task { try await session.get(origin.url()) }
                _ = await eventually { session.poolStatus.leased == 1 }
                try await ClockTests.check(.total, .waitingForConnection, after: .seconds(2)) {
                    try await failure(session, origin.url(), .patient(total: $0))
                }
                held.cancel()
                await #expect(throws: CancellationError.self) { try await held.value }
                try await ClockTests.check(.total, .awaitingHead, after: .seconds(2)) {
                    try await failure(session, origin.url(), .patient(total: $0))
                }
            }
        }

        @Test("Total: an upload that goes on and on")
        func totalUpload() async throws {
            try await TestOrigin.withOrigin { request in
                for try await _ in request.body {}
                return .text("x")
            } run: { origin in
                let session = HTTPSession.own()
                try await ClockTests.check(.total, .sending, after: .seconds(2)) {
                    try await failure(
                        session, origin.url(), .patient(total: $0), body: .pattern(1 << 50), method: .put)
                }
            }
        }

        @Test("A connection opened late in the line has the whole of its time")
        func connectAfterWait() async throws {
            var connect = Duration.seconds(3)
            while try await !opensLate(connect: connect) {
                connect *= 3
                try #require(connect < Patience.ending, "the line never moved in time")
            }
        }

        /// Lets a call wait in the line for longer than connecting may take, and connect in vain then.
        ///
        /// - Returns: Whether the line moved before the clock of the line ran out, which is a little more than that.
        private func opensLate(connect: Duration) async throws -> Bool {
            let resolver = GatedResolver(freeCount: 1)
            let signals = SignalBox()
            return try await TestOrigin.withOrigin { request in
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
                let poolWait = connect * 4 / 3
                let start = ContinuousClock.now
                async let second = failure(
                    session, "\(url)/second", .patient(poolWait: poolWait, connect: connect))
                // Past its connect time, had that begun with the wait.
                #expect(await eventually { ContinuousClock.now - start > connect * 11 / 10 })
                origin.signals.raise("go")
                _ = try await first
                #expect(
                    await eventually {
                        resolver.askedCount == 2 || ContinuousClock.now - start > poolWait + connect
                    })
                let error = try await second
                if error.timeout == .poolWait {
                    #expect(ContinuousClock.now - start >= poolWait)
                    return false
                }
                #expect(resolver.askedCount == 2)
                #expect(error.timeout == .connect)
                #expect(error.isConnectFailure)
                #expect(ContinuousClock.now - start >= connect * 2)
                return true
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
