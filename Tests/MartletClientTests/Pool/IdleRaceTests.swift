import Martlet
import MartletTesting
import MartletTransport
import Testing

@Suite("A kept connection that dies under a request")
struct IdleRaceTests {
    /// How the server ends a connection on which it has just read a second request.
    enum Ending: CaseIterable, Sendable {
        case close
        case reset

        var step: ScriptStep { self == .close ? .close : .reset }
    }

    /// Answers one request, reads the next, and ends the connection without a byte.
    private static func dying(_ ending: Ending) -> ServerScript {
        ServerScript(.expectRequestHead, .sendEmpty, .expectRequestHead, .readBody(0), ending.step)
    }

    private static let sound = ServerScript(.expectRequestHead, .sendOK, .awaitClose)

    @Test("A GET is sent once more, on a fresh connection", arguments: Ending.allCases)
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

    @Test("What another request gives back meanwhile is no fresh connection")
    func oldCompanion() async throws {
        // The first answers late, and is given back while the second's successor is being made; it is as old as that.
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
            // The second has died under it, and a third is being opened.
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

    @Test("A PUT with a body that can be sent again is", arguments: Ending.allCases)
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

    @Test("A POST whose bytes were written is not sent again", arguments: Ending.allCases)
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

    @Test("A POST with an Idempotency-Key is sent again")
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

    @Test("A POST that its caller declares safe is sent again")
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

    @Test("A body that can be read once is not sent again, though the method would allow it")
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

    @Test("The same failure on a fresh connection is an error")
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

    @Test("A failure after the first byte of a response is an error, on a kept connection too")
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

    @Test("The dead connection's companions are closed with it")
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

    @Test("A POST of which no byte was written is sent again", arguments: [false, true])
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
