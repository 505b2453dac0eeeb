import Martlet
import MartletTesting
import MartletTransport
import Testing

@Suite("Reused connections that close during a request")
struct IdleRaceTests {
    /// The way the server ends a connection after it read a second request.
    enum Ending: CaseIterable, Sendable {
        case close
        case reset

        var step: ScriptStep { self == .close ? .close : .reset }
    }

    /// Responds to one request, reads the next, and ends the connection without a response byte.
    private static func dying(_ ending: Ending) -> ServerScript {
        ServerScript(.expectRequestHead, .sendEmpty, .expectRequestHead, .readBody(0), ending.step)
    }

    private static let sound = ServerScript(.expectRequestHead, .sendOK, .awaitClose)

    @Test("A GET is retried once on a new connection", arguments: Ending.allCases)
    func get(_ ending: Ending) async throws {
        try await TestOrigin.withOrigin(scripts: IdleRaceTests.dying(ending), IdleRaceTests.sound) { origin in
            let session = HTTPSession.own()
            _ = try await session.get(origin.url("/first"))
            let exchange = try await session.get(origin.url("/second"))
            #expect(exchange.text == "ok")
            #expect(exchange.metrics.attempts == 2)
            #expect(!exchange.metrics.isConnectionReused)
            #expect(origin.connectionCount == 2)
        }
    }

    @Test("A connection that another request returned in the meantime is not a new connection")
    func oldCompanion() async throws {
        // The first response is late, so its connection is returned while the retry of the second one is connecting.
        // Both connections have the same age.
        let late = ServerScript(
            .expectRequestHead, .signal("asked"), .await("free"), .sendEmpty, .awaitClose, .signal("closed"))
        try await TestOrigin.withOrigin(scripts: late, IdleRaceTests.dying(.close), IdleRaceTests.sound) {
            origin in
            let resolver = GatedResolver(freeCount: 2)
            let session = HTTPSession.own { $0.resolver = resolver }
            let base = "http://origin.test:\(origin.port)"
            let slow = Task { try await session.get("\(base)/slow") }
            try await origin.signals.wait(for: "asked")
            _ = try await session.get("\(base)/quick")
            let last = Task { try await session.get("\(base)/last") }
            // The second connection has closed, and a third one is being opened.
            while resolver.askedCount < 3 { await Task.yield() }
            origin.signals.raise("free")
            _ = try await slow.value
            try await origin.signals.wait(for: "closed")
            resolver.open()
            let exchange = try await last.value
            #expect(exchange.text == "ok" && exchange.metrics.attempts == 2)
            #expect(!exchange.metrics.isConnectionReused)
            #expect(origin.connectionCount == 3)
        }
    }

    @Test("A PUT with a replayable body is retried", arguments: Ending.allCases)
    func put(_ ending: Ending) async throws {
        let second = ServerScript(.expectRequestHead, .expect("hello"), .sendOK, .awaitClose)
        try await TestOrigin.withOrigin(scripts: IdleRaceTests.dying(ending), second) { origin in
            let session = HTTPSession.own()
            _ = try await session.get(origin.url())
            let exchange = try await session.put(
                origin.url(), body: .stream(length: 5) { Pieces("hello") })
            #expect(exchange.text == "ok")
            #expect(exchange.metrics.attempts == 2)
        }
    }

    @Test("A POST whose bytes were written is not retried", arguments: Ending.allCases)
    func post(_ ending: Ending) async throws {
        try await TestOrigin.withOrigin(scripts: IdleRaceTests.dying(ending), IdleRaceTests.sound) { origin in
            let session = HTTPSession.own()
            _ = try await session.get(origin.url())
            let error = try #require(
                await #expect(throws: HTTPError.self) {
                    try await session.post(origin.url(), body: .text("hello"))
                })
            #expect(error.code == .emptyResponse || error.code == .connectionLost)
            #expect(error.wasSent)
            #expect(error.attempts == 1)
            #expect(origin.connectionCount == 1)
        }
    }

    @Test("A POST with an Idempotency-Key is retried")
    func keyedPost() async throws {
        let second = ServerScript(.expectRequestHead, .expect("hello"), .sendOK, .awaitClose)
        try await TestOrigin.withOrigin(scripts: IdleRaceTests.dying(.close), second) { origin in
            let session = HTTPSession.own()
            _ = try await session.get(origin.url())
            let key = try #require(HTTPField.Name("Idempotency-Key"))
            let exchange = try await session.post(
                origin.url(), body: .text("hello"), headers: [.init(key): "abc"])
            #expect(exchange.text == "ok")
            #expect(exchange.metrics.attempts == 2)
        }
    }

    @Test("A POST that its caller declares idempotent is retried")
    func declaredPost() async throws {
        let second = ServerScript(.expectRequestHead, .expect("hello"), .sendOK, .awaitClose)
        try await TestOrigin.withOrigin(scripts: IdleRaceTests.dying(.close), second) { origin in
            let session = HTTPSession.own()
            _ = try await session.get(origin.url())
            var options = RequestOptions()
            options.allowsResendingNonIdempotentMethods = true
            let exchange = try await session.post(origin.url(), body: .text("hello"), options: options)
            #expect(exchange.text == "ok")
            #expect(exchange.metrics.attempts == 2)
        }
    }

    @Test("A one-shot body is not sent again, even if the method would allow it")
    func onceBody() async throws {
        try await TestOrigin.withOrigin(scripts: IdleRaceTests.dying(.close), IdleRaceTests.sound) { origin in
            let session = HTTPSession.own()
            _ = try await session.get(origin.url())
            let error = try #require(
                await #expect(throws: HTTPError.self) {
                    try await session.put(origin.url(), body: .once(Pieces("hello"), length: 5))
                })
            #expect(error.code == .emptyResponse || error.code == .connectionLost)
            #expect(error.attempts == 1)
            #expect(origin.connectionCount == 1)
        }
    }

    @Test("The same failure on a new connection is an error")
    func freshConnection() async throws {
        let script = ServerScript(.expectRequestHead, .close)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let session = HTTPSession.own()
            let error = try #require(
                await #expect(throws: HTTPError.self) { try await session.get(origin.url()) })
            #expect(error.code == .emptyResponse)
            #expect(error.attempts == 1)
            #expect(origin.connectionCount == 1)
        }
    }

    @Test("A failure after the first byte of a response is an error, on a reused connection too")
    func afterFirstByte() async throws {
        let first = ServerScript(
            .expectRequestHead, .sendEmpty, .expectRequestHead, .send("HTTP/1.1 2"), .close)
        try await TestOrigin.withOrigin(scripts: first, IdleRaceTests.sound) { origin in
            let session = HTTPSession.own()
            _ = try await session.get(origin.url())
            let error = try #require(
                await #expect(throws: HTTPError.self) { try await session.get(origin.url()) })
            #expect(error.code == .truncated)
            #expect(origin.connectionCount == 1)
        }
    }

    @Test("Other idle connections to the same host are closed with a dead one")
    func companions() async throws {
        try await TestOrigin.withOrigin(
            scripts: ServerScript(
                .expectRequestHead, .await("both"), .sendEmpty, .expectRequestHead, .close),
            ServerScript(.expectRequestHead, .signal("both"), .sendEmpty, .expectRequestHead, .close),
            IdleRaceTests.sound
        ) { origin in
            let session = HTTPSession.own()
            async let one = session.get(origin.url())
            async let two = session.get(origin.url())
            _ = try await (one, two)
            #expect(session.poolStatus.idle == 2)
            let exchange = try await session.get(origin.url())
            #expect(exchange.text == "ok")
            #expect(exchange.metrics.attempts == 2)
            #expect(session.poolStatus.idle == 1)
            #expect(origin.connectionCount == 3)
        }
    }

    @Test("A POST is retried if no byte was written", arguments: [false, true])
    func unwrittenPost(isOnce: Bool) async throws {
        let mock = MockTransport { request in
            .text(try await request.collectText())
        }
        let connector = FailingConnector(mock)
        let session = HTTPSession.own { $0.connector = connector }
        _ = try await session.get("http://mock.example/")
        connector.streams.first?.failWrites(.system(SystemError(operation: "send", code: 32)))
        let body: HTTPBody = isOnce ? .once(Pieces("hello"), length: 5) : .text("hello")
        let exchange = try await session.post("http://mock.example/", body: body)
        #expect(exchange.text == "hello")
        #expect(exchange.metrics.attempts == 2)
        #expect(connector.streams.count == 2)
        await mock.stop()
    }
}
