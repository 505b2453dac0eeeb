import Martlet
import MartletTesting
import Testing

@Suite("Expect: 100-continue")
struct ExpectContinueTests {
    private static let fields: HTTPFields = [.expect: "100-continue"]

    @Test("The body waits for the 100")
    func waits() async throws {
        let script = ServerScript(
            .expectRequestHead, .signal("head"), .await("go"), .send("HTTP/1.1 100 Continue\r\n\r\n"),
            .expect("hello"), .sendOK, .awaitClose)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let session = HTTPSession.own { $0.continueTimeout = TestTimeouts.long }
            let signals = origin.signals
            let body = HTTPBody.stream(length: 5) {
                Pieces("hello") { number in
                    if number == 0, !signals.isRaised("go") { signals.raise("too soon") }
                }
            }
            let request = try HTTPRequest(.post, origin, "/", ExpectContinueTests.fields)
            async let answer = session.send(request, body: body)
            try await signals.wait(for: "head")
            #expect(!signals.isRaised("too soon"))
            signals.raise("go")
            let exchange = try await answer
            #expect(exchange.text == "ok")
            #expect(exchange.interimResponses.map(\.status.code) == [100])
            #expect(!signals.isRaised("too soon"))
            #expect(origin.recorder.problems.isEmpty)
        }
    }

    @Test("A silent server receives the body after the timeout")
    func goesOn() async throws {
        let script = ServerScript(.expectRequestHead, .expect("hello"), .sendOK, .awaitClose)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let session = HTTPSession.own { $0.continueTimeout = .milliseconds(30) }
            let request = try HTTPRequest(.post, origin, "/", ExpectContinueTests.fields)
            let exchange = try await session.send(request, body: .text("hello"))
            #expect(exchange.text == "ok")
            #expect(exchange.metrics.attempts == 1)
        }
    }

    @Test("After a final response the body is never sent, and the connection is closed", arguments: [200, 403])
    func finalAnswer(status: Int) async throws {
        let script = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 \(status) Done\r\nContent-Length: 2\r\n\r\nno"), .readAll)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let session = HTTPSession.own { $0.continueTimeout = TestTimeouts.long }
            let request = try HTTPRequest(.put, origin, "/", ExpectContinueTests.fields)
            let exchange = try await session.send(request, body: .text("secret body"))
            #expect(exchange.response.status.code == status)
            #expect(exchange.text == "no")
            let sent = String(
                decoding: try await origin.recorder.waitForTranscript(ofConnection: 1), as: UTF8.self)
            #expect(sent.contains("Content-Length: 11\r\n"))
            #expect(sent.hasSuffix("\r\n\r\n"))
            #expect(!sent.contains("secret"))
            #expect(session.poolStatus.idle == 0)
        }
    }

    @Test("After a 417 the request is sent once more without the expectation")
    func expectationFailed() async throws {
        let rejection = "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n"
        let first = ServerScript(.expectRequestHead, .send(rejection), .readAll)
        let second = ServerScript(.expectRequestHead, .expect("hello"), .sendOK, .awaitClose)
        try await TestOrigin.withOrigin(scripts: first, second) { origin in
            let session = HTTPSession.own { $0.continueTimeout = TestTimeouts.long }
            let request = try HTTPRequest(.post, origin, "/", ExpectContinueTests.fields)
            let exchange = try await session.send(request, body: .text("hello"))
            #expect(exchange.text == "ok")
            #expect(exchange.metrics.attempts == 2)
            let again = String(decoding: origin.recorder.transcript(ofConnection: 2), as: UTF8.self)
            #expect(!again.lowercased().contains("expect"))
            #expect(again.hasSuffix("\r\n\r\nhello"))
            let sent = try await origin.recorder.waitForTranscript(ofConnection: 1)
            #expect(String(decoding: sent, as: UTF8.self).hasSuffix("\r\n\r\n"))
        }
    }

    @Test("A second 417 is returned")
    func expectationFailedTwice() async throws {
        let rejection = "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        let script = ServerScript(.expectRequestHead, .send(rejection), .readAll)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let session = HTTPSession.own { $0.continueTimeout = TestTimeouts.long }
            let request = try HTTPRequest(.post, origin, "/", ExpectContinueTests.fields)
            let exchange = try await session.send(request, body: .text("hello"))
            #expect(exchange.response.status.code == 417)
            #expect(origin.connectionCount == 2)
        }
    }

    @Test("A one-shot body is sent after a 417, since it was not read yet")
    func expectationFailedOnce() async throws {
        let rejection = "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n"
        let script = ServerScript(.expectRequestHead, .send(rejection), .readAll)
        let taken = ServerScript(.expectRequestHead, .expect("hello"), .sendOK, .awaitClose)
        try await TestOrigin.withOrigin(scripts: script, taken) { origin in
            let session = HTTPSession.own { $0.continueTimeout = TestTimeouts.long }
            let request = try HTTPRequest(.post, origin, "/", ExpectContinueTests.fields)
            let exchange = try await session.send(request, body: .once(Pieces("hello"), length: 5))
            #expect(exchange.response.status.code == 200)
            #expect(origin.connectionCount == 2)
        }
    }
}
