import Martlet
import MartletTesting
import MartletTestSupport
import MartletTransport
import Synchronization
import Testing

extension OneAtATime {
    @Suite("Timeouts of calls")
    struct ClockTests {
        /// Sends a GET with its own timeouts, and returns its error.
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

        /// Makes a call fail by a timeout in a phase, and checks both in the error.
        ///
        /// - Parameter call: Makes the call with a timeout of the given duration, and throws its error.
        private static func check(
            _ timeout: HTTPError.Timeout, _ phase: HTTPError.Phase, after first: Duration,
            _ call: (Duration) async throws -> HTTPError
        ) async throws {
            try await withEnoughTime(from: first) { span in
                let error = try await call(span)
                if error.timeout == timeout, error.phase.precedes(phase) { return false }
                check(error, timeout, phase, atLeast: span)
                return true
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
            #expect((error.elapsed ?? TestTimeouts.long) < span + TestTimeouts.ending)
            #expect(error.message.contains(timeout.rawValue))
            #expect(error.isConnectFailure == (timeout == .connect))
            if timeout == .connect { #expect(!error.wasSent) }
        }

        @Test("The pool timeout ends a wait for a connection")
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

        @Test("The connect timeout ends a slow name lookup")
        func connectResolving() async throws {
            let session = HTTPSession.own { $0.resolver = GatedResolver() }
            try await ClockTests.check(.connect, .resolving, after: .milliseconds(100)) {
                try await failure(session, "http://name.example/", .patient(connect: $0))
            }
        }

        @Test("The connect timeout ends a connection attempt without a reply")
        func connectConnecting() async throws {
            let hole = try await BlackHole()
            let session = HTTPSession.own()
            try await ClockTests.check(.connect, .connecting, after: .milliseconds(100)) {
                try await failure(session, "http://127.0.0.1:\(hole.port)/", .patient(connect: $0))
            }
            hole.close()
        }

        @Test("The connect timeout ends a TLS handshake with a silent peer")
        func connectSecuring() async throws {
            try await TestOrigin.withOrigin(scripts: ServerScript(.awaitClose)) { origin in
                // Loading the system's roots would use a part of the timeout.
                let session = HTTPSession.own { $0.tls.trust = .dangerouslyAcceptingAnyCertificate }
                try await ClockTests.check(.connect, .tlsHandshake, after: .seconds(1)) {
                    try await failure(session, "https://127.0.0.1:\(origin.port)/", .patient(connect: $0))
                }
                try await origin.recorder.waitForOpenConnections(atMost: 0)
            }
        }

        @Test("The head timeout ends a wait for a silent server")
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
            "The head timeout ends a head that drips byte by byte and a series of interim responses",
            arguments: [
                ("HTTP/1.1 200 OK\r\nX-Long: ", "x"),
                ("HTTP/1.1 102 Processing\r\n\r\n", "HTTP/1.1 102 P\r\n\r\n"),
            ])
        func drippedHead(text: String, drops: String) async throws {
            // The head is incomplete whenever the timeout expires.
            let script = ServerScript(
                .expectRequestHead, .send(text),
                .drip(String(repeating: drops, count: 9), every: .milliseconds(20)), .awaitClose)
            try await TestOrigin.withOrigin(scripts: script) { origin in
                let session = HTTPSession.own()
                let error = try await failure(session, origin.url(), .patient(head: .milliseconds(300)))
                ClockTests.check(error, .head, .awaitingHead, atLeast: .milliseconds(300))
            }
        }

        @Test("The idle timeout ends a body that stalls", arguments: [false, true])
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

        @Test("The idle timeout ends an upload that the server does not read")
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

        @Test("Uploaded bytes reset the idle timeout while the response is awaited")
        func idleUploadMoves() async throws {
            try await withEnoughTime(from: .milliseconds(500), upTo: TestTimeouts.ending / 6, run: movesUp)
        }

        /// Sends a body in eight steps that take longer than the idle timeout together, but each much less.
        ///
        /// - Returns: Whether the machine kept this schedule.
        private func movesUp(inStepsOf unit: Duration) async throws -> Bool {
            // The head is sent immediately. The server then reads the upload slowly, and sends nothing before it has
            // read all.
            let size = 40_000
            let idle = unit * 6
            let script = ServerScript(
                [.expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")]
                    + (0..<8).flatMap { _ in [ScriptStep.pause(unit), .readBody(size / 8)] }
                    + [.send("ok"), .awaitClose])
            let moved = Mutex(ContinuousClock.now)
            return try await TestOrigin.withOrigin(scripts: script) { origin in
                let session = HTTPSession.own()
                // A piece is sent each time the server has read one.
                let body = HTTPBody.stream(length: UInt64(size)) {
                    PatternPieces(byteCount: UInt64(size), pieceSize: size / 8) { _ in
                        // The previous piece has been sent.
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
                    // The timeout may be correct: on a slow machine the last step may take as long as the timeout.
                    #expect(ContinuousClock.now - moved.withLock { $0 } >= idle)
                    return false
                }
            }
        }

        @Test("The total timeout ends a dripping body that never triggers the idle timeout")
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

        @Test("The total timeout ends an endless body that always has bytes available")
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

        @Test("The total timeout covers the queue, connecting and the wait for the head")
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

        @Test("The total timeout ends an endless upload")
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

        @Test("A connection opened after a wait in the queue has its full connect timeout")
        func connectAfterWait() async throws {
            try await withEnoughTime(from: .seconds(3), run: opensLate)
        }

        /// Makes a call wait in the queue for longer than its connect timeout and then connect in vain.
        ///
        /// - Returns: Whether the queue advanced before the pool timeout, which is slightly longer, expired.
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
                // Later than its connect timeout, if that had started with the wait.
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

        @Test("A disabled timeout never expires")
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
