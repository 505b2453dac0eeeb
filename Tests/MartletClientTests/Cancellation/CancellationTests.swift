import Martlet
import MartletTesting
import MartletTestSupport
import MartletTransport
import Testing

extension OneAtATime {
    /// Cancels a call at each point where it can wait. It must throw `CancellationError` without waiting for the peer,
    /// and leave no leased connection and no open descriptor.
    @Suite("Cancellation at every suspension point", .serialized)
    struct CancellationTests {
        /// The point at which the server's script holds the call, and the bytes that it sends first.
        enum Point: String, CaseIterable, Sendable {
            case handshake, continueWait, write, silentSource, head, halfHead, interim, body, chunk,
                untilClose
            case stream, leisurelyStream, download

            var isSecure: Bool { self == .handshake }

            var script: ServerScript {
                let reached = ScriptStep.signal("reached")
                return switch self {
                case .handshake: ServerScript(reached, .awaitClose)
                case .continueWait, .silentSource, .head:
                    ServerScript(.expectRequestHead, reached, .awaitClose)
                case .write: ServerScript(.expectRequestHead, reached, .stall)
                case .halfHead:
                    ServerScript(.expectRequestHead, .send("HTTP/1.1 200 OK\r\nX: "), reached, .awaitClose)
                case .interim:
                    ServerScript(
                        .expectRequestHead, .send("HTTP/1.1 102 Processing\r\n\r\n"), reached, .awaitClose)
                case .body, .stream, .leisurelyStream, .download:
                    ServerScript(
                        .expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234"),
                        reached,
                        .awaitClose)
                case .chunk:
                    ServerScript(
                        .expectRequestHead,
                        .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\n01234"), reached,
                        .awaitClose)
                case .untilClose:
                    ServerScript(
                        .expectRequestHead, .send("HTTP/1.1 200 OK\r\n\r\n01234"), reached, .awaitClose)
                }
            }
        }

        /// Makes the call that is cancelled.
        /// - Parameter end: The event that ends a source that ignores cancellation.
        private static func call(
            _ point: Point, _ session: HTTPSession, _ origin: TestOrigin, deafUntil end: OneShot<Void>
        ) async throws {
            switch point {
            case .handshake:
                _ = try await session.get("https://127.0.0.1:\(origin.port)/")
            case .continueWait:
                _ = try await session.post(origin.url(), body: .text("x"), headers: [.expect: "100-continue"])
            case .write:
                _ = try await session.put(origin.url(), body: .pattern(1 << 40))
            case .silentSource:
                let body = HTTPBody.stream {
                    // Ignores cancellation, as a user's body source may.
                    Pieces("x") { _ in
                        _ = await end.wait(
                            until: MonotonicTime.now().advanced(by: TestTimeouts.long),
                            on: EventLoop.sharedOrStalled)
                    }
                }
                _ = try await session.post(origin.url(), body: body)
            case .head, .halfHead, .interim, .body, .chunk, .untilClose:
                _ = try await session.get(origin.url())
            case .stream:
                try await session.stream(HTTPRequest(.get, origin)) { _, body in for try await _ in body {} }
            case .leisurelyStream:
                // Reads nothing before it is cancelled. The read after that must throw.
                try await session.stream(HTTPRequest(.get, origin)) { _, body in
                    let event = OneShot<Void>()
                    await withTaskCancellationHandler {
                        _ = await event.wait(until: .distantFuture, on: EventLoop.sharedOrStalled)
                    } onCancel: {
                        event.interrupt()
                    }
                    for try await _ in body {}
                }
            case .download:
                try await session.save(
                    HTTPRequest(method: .get, url: origin.url()),
                    to: FilePath("/dev/shm/martlet-\(origin.port)"), overwrites: false)
            }
        }

        @Test("A call that waits for its peer ends immediately when it is cancelled", arguments: Point.allCases)
        func waitingForPeer(_ point: Point) async throws {
            try await TestOrigin.withOrigin(scripts: point.script) { origin in
                let session = HTTPSession.own { $0.continueTimeout = TestTimeouts.long }
                let end = OneShot<Void>()
                let task = Task { try await CancellationTests.call(point, session, origin, deafUntil: end) }
                try await origin.signals.wait(for: "reached")
                let elapsed = await CancellationTests.cancel(task)
                end.fulfill(())
                #expect(elapsed < TestTimeouts.ending)
                #expect(await CancellationTests.isAtRest(session))
                #expect(await eventually { OpenSockets.count(toPort: origin.port) == 0 })
                // A server that does not read the bytes that were sent does not see the close after them either.
                if point != .write { try await origin.recorder.waitForOpenConnections(atMost: 0) }
            }
        }

        @Test(
            "A call over TLS that waits for its peer ends immediately when it is cancelled",
            arguments: [Point.head, .body, .write, .chunk])
        func waitingForSecurePeer(_ point: Point) async throws {
            try await TestOrigin.withOrigin(.tls(), scripts: point.script) { origin in
                let session = HTTPSession.trusting(origin)
                let end = OneShot<Void>()
                let task = Task { try await CancellationTests.call(point, session, origin, deafUntil: end) }
                try await origin.signals.wait(for: "reached")
                let elapsed = await CancellationTests.cancel(task)
                end.fulfill(())
                #expect(elapsed < TestTimeouts.ending)
                #expect(await CancellationTests.isAtRest(session))
                #expect(await eventually { OpenSockets.count(toPort: origin.port) == 0 })
            }
        }

        @Test("An upload into full socket buffers ends immediately when it is cancelled")
        func fullBuffers() async throws {
            let asked = Counter()
            try await TestOrigin.withOrigin(scripts: Point.write.script) { origin in
                let session = HTTPSession.own()
                let task = Task {
                    _ = try await session.put(
                        origin.url(),
                        body: .stream(length: 1 << 40) {
                            PatternPieces(byteCount: 1 << 40) { _ in asked.add() }
                        })
                }
                try await origin.signals.wait(for: "reached")
                let buffered = try KernelBuffers.most() + 1 << 20
                let pieces = await settled { UInt64(asked.count) }
                #expect(Int(pieces) < buffered / (64 << 10) + 16)
                let elapsed = await CancellationTests.cancel(task)
                #expect(elapsed < TestTimeouts.ending)
                #expect(await CancellationTests.isAtRest(session))
                #expect(await eventually { OpenSockets.count(toPort: origin.port) == 0 })
            }
        }

        @Test("A call that waits for name resolution ends immediately when it is cancelled")
        func lookUp() async throws {
            let resolver = GatedResolver()
            let session = HTTPSession.own { $0.resolver = resolver }
            let task = Task { _ = try await session.get("http://name.example/") }
            #expect(await eventually { resolver.askedCount == 1 })
            #expect(await CancellationTests.cancel(task) < TestTimeouts.ending)
            #expect(await CancellationTests.isAtRest(session))
        }

        @Test("A cancelled call does not wait for a resolver that ignores cancellation")
        func deafResolver() async throws {
            struct Deaf: Resolver {
                let asked = OneShot<Void>()
                let end = OneShot<Void>()
                func addresses(of host: String, port: Int) async throws(ResolutionError) -> [SocketAddress] {
                    asked.fulfill(())
                    _ = await end.wait(
                        until: MonotonicTime.now().advanced(by: TestTimeouts.long), on: EventLoop.sharedOrStalled)
                    return []
                }
            }
            let resolver = Deaf()
            let session = HTTPSession.own { $0.resolver = resolver }
            let task = Task { _ = try await session.get("http://name.example/") }
            _ = await resolver.asked.wait(until: .distantFuture, on: EventLoop.sharedOrStalled)
            #expect(await CancellationTests.cancel(task) < TestTimeouts.ending)
            resolver.end.fulfill(())
            #expect(await CancellationTests.isAtRest(session))
        }

        @Test("A call that is cancelled while it connects ends immediately and leaves no socket")
        func connect() async throws {
            let hole = try await BlackHole()
            let before = hole.fillerCount
            let session = HTTPSession.own()
            let task = Task { _ = try await session.get("http://127.0.0.1:\(hole.port)/") }
            #expect(await eventually { OpenSockets.count(toPort: hole.port) == before + 1 })
            #expect(await CancellationTests.cancel(task) < TestTimeouts.ending)
            #expect(await CancellationTests.isAtRest(session))
            #expect(await eventually { OpenSockets.count(toPort: hole.port) == before })
            hole.close()
        }

        @Test("Cancelling a queued call ends it immediately, and the calls after it move up")
        func poolWait() async throws {
            let signals = SignalBox()
            try await TestOrigin.withOrigin { request in
                if request.path == "/first" { try await signals.wait(for: "go") }
                return .text("ok")
            } run: { origin in
                signals.use(origin)
                let session = HTTPSession.own { $0.pool.connectionsPerHost = 1 }
                async let first = session.get(origin.url("/first"))
                try await origin.waitForRequests(count: 1)
                let task = Task { _ = try await session.get(origin.url("/second")) }
                #expect(await eventually { session.poolStatus.waiting == 1 })
                async let third = session.get(origin.url("/third"))
                #expect(await eventually { session.poolStatus.waiting == 2 })
                #expect(await CancellationTests.cancel(task) < TestTimeouts.ending)
                #expect(session.poolStatus.waiting == 1)
                origin.signals.raise("go")
                _ = try await (first, third)
                #expect(origin.requests.map(\.target) == ["/first", "/third"])
                #expect(await CancellationTests.isAtRest(session))
            }
        }

        @Test("A call in a task that is already cancelled sends nothing")
        func beforeStart() async throws {
            try await TestOrigin.withOrigin(handler: .fixed(.text("x"))) { origin in
                let session = HTTPSession.own()
                let start = OneShot<Void>()
                let task = Task {
                    _ = await start.wait(until: .distantFuture, on: EventLoop.sharedOrStalled)
                    _ = try await session.get(origin.url())
                }
                task.cancel()
                start.fulfill(())
                #expect(await CancellationTests.cancel(task) < TestTimeouts.ending)
                #expect(await CancellationTests.isAtRest(session))
                #expect(origin.connectionCount == 0)
            }
        }

        @Test("Cancelling calls does not affect other calls of the session")
        func neighbours() async throws {
            let signals = SignalBox()
            try await TestOrigin.withOrigin { request in
                try await signals.wait(for: "go")
                return .text(request.path)
            } run: { origin in
                signals.use(origin)
                let session = HTTPSession.own()
                let tasks = (0..<8).map { number in
                    Task { try await session.get(origin.url("/\(number)")).text }
                }
                try await origin.waitForRequests(count: 8)
                for number in stride(from: 0, to: 8, by: 2) { tasks[number].cancel() }
                for number in stride(from: 0, to: 8, by: 2) {
                    await #expect(throws: CancellationError.self) { try await tasks[number].value }
                }
                origin.signals.raise("go")
                for number in stride(from: 1, to: 8, by: 2) {
                    #expect(try await tasks[number].value == "/\(number)")
                }
                #expect(await CancellationTests.isAtRest(session))
            }
        }

        @Test("A call that is cancelled while it completes returns its response or CancellationError")
        func racing() async throws {
            try await TestOrigin.withOrigin(handler: .fixed(.text("ok"))) { origin in
                let session = HTTPSession.own()
                var random = SplitMix64(state: 7)
                for _ in 0..<1000 {
                    let task = Task { try await session.get(origin.url()).text }
                    let yields = random.next() % 24
                    for _ in 0..<yields { await Task.yield() }
                    task.cancel()
                    do {
                        #expect(try await task.value == "ok")
                    } catch {
                        #expect(error is CancellationError)
                    }
                }
                #expect(await CancellationTests.isAtRest(session))
                #expect(
                    await eventually { OpenSockets.count(toPort: origin.port) == session.poolStatus.idle })
            }
        }

        /// Cancels a task and returns the time until it ends.
        private static func cancel(_ task: Task<Void, any Error>) async -> Duration {
            let start = ContinuousClock.now
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            return ContinuousClock.now - start
        }

        /// Whether the session has no waiter, no dial and no leased connection.
        private static func isAtRest(_ session: HTTPSession) async -> Bool {
            await eventually {
                let status = session.poolStatus
                return status.leased + status.dialing + status.waiting == 0 && session.runningCallCount == 0
            }
        }
    }
}
