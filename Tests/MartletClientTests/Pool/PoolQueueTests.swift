import Martlet
import MartletTesting
import MartletTestSupport
import Testing

@Suite("Queue for connections")
struct PoolQueueTests {
    /// Runs an origin whose first request waits for a signal. The session may open one connection, and its calls are
    /// queued in a known order.
    private func order(
        of priorities: [RequestPriority]
    ) async throws -> [String] {
        let signals = SignalBox()
        return try await TestOrigin.withOrigin { request in
            if request.path == "/first" { try await signals.wait(for: "go") }
            return .text("x")
        } run: { origin in
            signals.use(origin)
            let session = HTTPSession.own { configuration in
                configuration.pool.connectionsPerHost = 1
                configuration.pool.agingInterval = nil
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { _ = try await session.get(origin.url("/first")) }
                try await origin.waitForRequests(count: 1)
                for (index, priority) in priorities.enumerated() {
                    group.addTask {
                        _ = try await session.get(
                            origin.url("/\(index)"), options: RequestOptions(priority: priority))
                    }
                    #expect(await eventually { session.poolStatus.waiting == index + 1 })
                }
                origin.signals.raise("go")
                try await group.waitForAll()
            }
            #expect(origin.connectionCount == 1)
            return origin.requests.dropFirst().map(\.target)
        }
    }

    @Test("Requests of the same priority are served in FIFO order")
    func firstComeFirstServed() async throws {
        let order = try await order(of: [.normal, .normal, .normal, .normal, .normal])
        #expect(order == ["/0", "/1", "/2", "/3", "/4"])
    }

    @Test("Requests of higher priority are served first")
    func priority() async throws {
        let order = try await order(of: [.low, .normal, .highest, .lowest, .high, .highest])
        #expect(order == ["/2", "/5", "/4", "/1", "/0", "/3"])
    }

    /// Returns a session with one connection, to a server that sends a second response directly after its first.
    private func session(speakingOutOfTurn mock: MockTransport) -> HTTPSession {
        HTTPSession.own { configuration in
            configuration.connector = NarrowConnector(connector: mock)
            configuration.pool.connectionsPerHost = 1
        }
    }

    private let outOfTurn = MockTransport(
        scripts: ServerScript(
            .expectRequestHead, .sendOK, .send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"),
            .signal("sent"), .awaitClose),
        ServerScript(.expectRequestHead, .sendOK, .awaitClose))

    @Test("A connection with bytes after its response is not given to a queued call")
    func unsolicitedBytesInLine() async throws {
        let session = session(speakingOutOfTurn: outOfTurn)
        let url = try HTTPURL("http://mock.test/")
        let second = try await session.stream(HTTPRequest(method: .get, url: url)) { _, body in
            try await outOfTurn.signals.wait(for: "sent")
            // Detached, because a call within the closure would not be queued.
            let second = Task.detached { try await session.get("http://mock.test/") }
            #expect(await eventually { session.poolStatus.waiting == 1 })
            #expect(try await body.collect() == Array("ok".utf8))
            return second
        }
        #expect(try await second.value.text == "ok")
        #expect(session.poolStatus.opened == 2)
    }

    @Test(
        "A connection with bytes after its response is not reused, even by an immediate request")
    func unsolicitedBytesAtOnce() async throws {
        let session = session(speakingOutOfTurn: outOfTurn)
        let url = try HTTPURL("http://mock.test/")
        try await session.stream(HTTPRequest(method: .get, url: url)) { _, body in
            try await outOfTurn.signals.wait(for: "sent")
            #expect(try await body.collect() == Array("ok".utf8))
        }
        #expect(try await session.get("http://mock.test/").text == "ok")
        #expect(session.poolStatus.opened == 2)
    }

    @Test("A connection that becomes free while another is dialled serves the waiting call")
    func freedWhileDialing() async throws {
        let resolver = GatedResolver(freeCount: 1)
        let signals = SignalBox()
        try await TestOrigin.withOrigin { request in
            if request.path == "/first" { try await signals.wait(for: "go") }
            return .text(request.path)
        } run: { origin in
            signals.use(origin)
            let session = HTTPSession.own { $0.resolver = resolver }
            let base = "http://name.example:\(origin.port)"
            async let first = session.get("\(base)/first")
            try await origin.waitForRequests(count: 1)
            async let second = session.get("\(base)/second")
            #expect(await eventually { resolver.askedCount == 2 })
            origin.signals.raise("go")
            #expect(try await first.text == "/first")
            let exchange = try await second
            #expect(exchange.text == "/second")
            #expect(exchange.metrics.isConnectionReused)
            #expect(origin.connectionCount == 1)
            resolver.open()
            #expect(await eventually { session.poolStatus.dialing == 0 })
        }
    }

    @Test("A call that takes over the dial of a cancelled call keeps its own connect timeout")
    func clockOfAdoptedDial() async throws {
        let resolver = GatedResolver()
        let session = HTTPSession.own { configuration in
            configuration.resolver = resolver
            configuration.pool.connectionsPerHost = 1
        }
        let first = Task {
            try await session.get(
                "http://a.test/", options: RequestOptions(timeouts: .patient(connect: nil)))
        }
        #expect(await eventually { resolver.askedCount == 1 })
        let second = Task {
            try await session.get(
                "http://a.test/",
                options: RequestOptions(timeouts: .patient(connect: .milliseconds(50), total: TestTimeouts.long)))
        }
        #expect(await eventually { session.poolStatus.waiting == 2 })
        // The expired timeout of a later call to another host shows that the second call's timer has fired.
        await #expect(throws: HTTPError.self) {
            try await session.get(
                "http://b.test/", options: RequestOptions(timeouts: .patient(connect: .milliseconds(1500))))
        }
        first.cancel()
        let error = await #expect(throws: HTTPError.self) { try await second.value }
        #expect(error?.timeout == .connect)
        await #expect(throws: CancellationError.self) { try await first.value }
    }

    @Test("Raising the limit opens connections for queued calls")
    func raisedLimit() async throws {
        let signals = SignalBox()
        try await TestOrigin.withOrigin { request in
            if request.path == "/first" { try await signals.wait(for: "go") }
            return .text("x")
        } run: { origin in
            signals.use(origin)
            var limits = PoolLimits(connectionsPerHost: 1)
            let session = HTTPSession.own { $0.pool = limits }
            async let first = session.get(origin.url("/first"))
            try await origin.waitForRequests(count: 1)
            async let second = session.get(origin.url("/second"))
            #expect(await eventually { session.poolStatus.waiting == 1 })
            limits.connectionsPerHost = 2
            session.setPoolLimits(limits)
            #expect(try await second.text == "x")
            origin.signals.raise("go")
            _ = try await first
        }
    }
}
