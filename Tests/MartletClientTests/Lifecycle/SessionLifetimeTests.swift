import Martlet
import MartletTesting
import MartletTestSupport
import Synchronization
import Testing

@testable import MartletCore

@Suite("Lifetime of a session")
struct SessionLifetimeTests {
    @Test("A view shares the session's connections, limits and invalidation")
    func view() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("ok"))) { origin in
            let session = HTTPSession.own()
            let view = session.with { $0.timeouts.total = TestTimeouts.long }
            #expect(view.configuration.timeouts.total == TestTimeouts.long)
            #expect(session.configuration.timeouts.total == nil)
            _ = try await session.get(origin.url())
            #expect(try await view.get(origin.url()).metrics.isConnectionReused)
            #expect(view.poolStatus == session.poolStatus)
            await view.finishAndInvalidate()
            let error = try #require(
                await #expect(throws: HTTPError.self) { try await session.get(origin.url()) })
            #expect(error.code == .sessionInvalidated)
            #expect(!error.wasSent)
        }
    }

    @Test("A view outlives its session and keeps the connections open")
    func viewAlone() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("ok"))) { origin in
            var session: HTTPSession? = HTTPSession.own()
            _ = try await session?.get(origin.url())
            let view = try #require(session?.with { $0.userAgent = nil })
            session = nil
            #expect(try await view.get(origin.url()).metrics.isConnectionReused)
        }
    }

    @Test("Releasing the last reference closes the connections", arguments: [false, true])
    func dropped(isSecure: Bool) async throws {
        try await TestOrigin.withOrigin(isSecure ? .tls() : .plain, handler: .fixed(.text("ok"))) { origin in
            var session: HTTPSession? = HTTPSession.trusting(origin)
            _ = try await session?.get(origin.url())
            #expect(origin.openConnectionCount == 1)
            session = nil
            try await origin.recorder.waitForOpenConnections(atMost: 0)
            #expect(await eventually { OpenSockets.count(toPort: origin.port) == 0 })
        }
    }

    @Test("A running call finishes after the last reference is released")
    func droppedAmidCall() async throws {
        let signals = SignalBox()
        try await TestOrigin.withOrigin { _ in
            try await signals.wait(for: "go")
            return .text("ok")
        } run: { origin in
            signals.use(origin)
            let task = await HTTPSession.own().task(for: try HTTPRequest(.get, origin))
            try await origin.waitForRequests(count: 1)
            origin.signals.raise("go")
            #expect(try await task.value.text == "ok")
            try await origin.recorder.waitForOpenConnections(atMost: 0)
        }
    }

    @Test(
        "Finishing with a deadline then cancels event streams, long polls and opened bodies",
        arguments: ["events", "poll", "open", "own code"])
    func finishWithin(_ kind: String) async throws {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n"
        let script = ServerScript(.expectRequestHead, kind == "poll" ? .awaitClose : .send(head), .awaitClose)
        try await TestOrigin.withOrigin(scripts: script) { origin async throws in
            let session = HTTPSession.own()
            let call = Task {
                switch kind {
                case "events": for try await _ in session.events(origin.url()) {}
                case "poll": _ = try await session.get(origin.url())
                case "open": for try await _ in try await session.open(origin.url()).body {}
                default:
                    try await session.stream(origin.url()) { _, body in
                        await session.finishAndInvalidate(within: .milliseconds(10))
                        for try await _ in body {}
                    }
                }
            }
            if kind != "own code" {
                #expect(await eventually { session.runningCallCount == 1 })
                await session.finishAndInvalidate(within: .milliseconds(10))
            }
            await #expect(throws: CancellationError.self) { try await call.value }
            #expect(await eventually { session.diagnostics.isIdle })
            let error = await #expect(throws: HTTPError.self) { try await session.get(origin.url()) }
            #expect(error?.code == .sessionInvalidated)
        }
    }

    @Test(
        "A call that runs when its session finishes still follows redirects and is retried", arguments: [true, false])
    func finishRetries(hasDeadline: Bool) async throws {
        let signals = SignalBox()
        try await TestOrigin.withOrigin { request in
            switch request.number {
            case 1:
                try await signals.wait(for: "go")
                return OriginResponse(503)
            case 2: return .redirect(to: "/end")
            default: return .text("end")
            }
        } run: { origin in
            signals.use(origin)
            let session = HTTPSession.own { $0.retry = .transient(backoff: .constant(.zero)) }
            let call = Task { try await session.get(origin.url()) }
            try await origin.waitForRequests(count: 1)
            let finishing = Task {
                if hasDeadline {
                    await session.finishAndInvalidate(within: TestTimeouts.long)
                } else {
                    await session.finishAndInvalidate()
                }
            }
            #expect(await eventually { session.core.calls.isInvalidated })
            origin.signals.raise("go")
            let exchange = try await call.value
            #expect(exchange.text == "end" && exchange.metrics.hops.map(\.reason) == [.retry, .redirect])
            await finishing.value
        }
    }

    @Test("A call that waits for a retry is cancelled when the time to finish is over")
    func finishAmidRetryDelay() async throws {
        try await TestOrigin.withOrigin { _ in
            OriginResponse(503)
        } run: { origin in
            let session = HTTPSession.own { $0.retry = .transient(backoff: .constant(.seconds(3600))) }
            let call = Task { try await session.get(origin.url()) }
            try await origin.recorder.waitForCounts { $0.responses == 1 }
            await session.finishAndInvalidate(within: .milliseconds(10))
            await #expect(throws: CancellationError.self) { try await call.value }
            #expect(origin.requests.count == 1)
        }
    }

    @Test("Finishing with a deadline returns as soon as all calls have ended")
    func finishEarly() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("ok"))) { origin in
            let session = HTTPSession.own()
            async let response = session.get(origin.url())
            try await origin.waitForRequests(count: 1)
            let start = ContinuousClock.now
            await session.finishAndInvalidate(within: TestTimeouts.long)
            #expect(ContinuousClock.now - start < TestTimeouts.ending)
            #expect(try await response.text == "ok")
        }
    }

    @Test("Finishing lets calls end, then closes all connections, and rejects new calls immediately")
    func finish() async throws {
        let signals = SignalBox()
        try await TestOrigin.withOrigin { request in
            if request.path == "/slow" { try await signals.wait(for: "go") }
            return .text("ok")
        } run: { origin in
            signals.use(origin)
            let session = HTTPSession.own()
            _ = try await session.get(origin.url())
            async let running = session.get(origin.url("/slow"))
            try await origin.waitForRequests(count: 2)
            let finishing = Task { await session.finishAndInvalidate() }
            var rejection: HTTPError?
            while rejection == nil {
                do {
                    _ = try await session.get(origin.url("/new"))
                } catch let error as HTTPError {
                    rejection = error
                }
            }
            #expect(rejection?.code == .sessionInvalidated)
            #expect(rejection?.phase == .preparing)
            origin.signals.raise("go")
            #expect(try await running.text == "ok")
            await finishing.value
            #expect(session.poolStatus.idle + session.poolStatus.leased == 0)
            try await origin.recorder.waitForOpenConnections(atMost: 0)
        }
    }

    @Test("Cancelling a session ends calls in every phase")
    func cancel() async throws {
        try await TestOrigin.withOrigin { request in
            if request.path == "/body" {
                return OriginResponse.pattern(1000).with {
                    $0.fault = OriginFault(.stall, afterBodyBytes: 500)
                }
            }
            throw OriginFault(.stall)
        } run: { origin in
            let session = HTTPSession.own { $0.pool.connectionsPerHost = 2 }
            let calls = ["/head", "/body", "/waiting"].map { path in
                Task { try await session.get(origin.url(path)) }
            }
            #expect(
                await eventually {
                    session.poolStatus.leased == 2 && session.poolStatus.waiting == 1
                })
            try await origin.waitForRequests(count: 2)
            await session.invalidateAndCancel()
            for call in calls {
                await #expect(throws: CancellationError.self) { try await call.value }
            }
            #expect(session.runningCallCount == 0)
            #expect(await eventually { OpenSockets.count(toPort: origin.port) == 0 })
            try await origin.recorder.waitForOpenConnections(atMost: 0)
        }
    }

    @Test("Ending a session twice, or without any use, is allowed")
    func twice() async throws {
        let session = HTTPSession.own()
        await session.finishAndInvalidate()
        await session.invalidateAndCancel()
        await session.finishAndInvalidate()
        #expect(session.runningCallCount == 0)
    }

    @Test("Calls can be started and cancelled from the progress of another")
    func reentrancy() async throws {
        let started = Mutex<[Task<String, any Error>]>([])
        try await TestOrigin.withOrigin(handler: .fixed(.text("ok"))) { origin in
            let session = HTTPSession.own { $0.pool.connectionsPerHost = 1 }
            let exchange = try await session.upload(
                .text("hello"), to: HTTPRequest(.post, origin)
            ) { _ in
                let call = Task { try await session.get(origin.url()).text }
                let given = Task { try await session.get(origin.url()).text }
                given.cancel()
                started.withLock { $0.append(call) }
            }
            #expect(exchange.text == "ok")
            let calls = started.withLock { $0 }
            #expect(!calls.isEmpty)
            for call in calls { #expect(try await call.value == "ok") }
        }
    }
}
