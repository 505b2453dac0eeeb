import Martlet
import MartletTesting
import MartletTestSupport
import Testing

@Suite("Idle connections")
struct CheckoutTests {
    /// The server's action on an idle connection.
    enum Deed: CaseIterable, Sendable {
        case end
        case reset
        case speakUnasked
        case speakAndEnd

        var steps: [ScriptStep] {
            let poison = ScriptStep.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison")
            return switch self {
            case .end: [.close]
            case .reset: [.reset]
            case .speakUnasked: [poison, .awaitClose]
            case .speakAndEnd: [poison, .close]
            }
        }
    }

    @Test(
        "An idle connection that ends, is reset or receives data is closed immediately",
        arguments: Deed.allCases, [false, true])
    func discarded(_ deed: Deed, isSecure: Bool) async throws {
        let first = ServerScript([.expectRequestHead, .sendEmpty, .await("now")] + deed.steps)
        let second = ServerScript(.expectRequestHead, .sendOK, .awaitClose)
        try await TestOrigin.withOrigin(isSecure ? .tls() : .plain, scripts: first, second) { origin in
            let session = HTTPSession.trusting(origin)
            _ = try await session.get(origin.url("/first"))
            #expect(session.poolStatus.idle == 1)
            origin.signals.raise("now")
            #expect(await eventually { session.poolStatus.idle == 0 })
            #expect(await eventually { OpenSockets.count(toPort: origin.port) == 0 })
            let exchange = try await session.get(origin.url("/second"))
            #expect(exchange.text == "ok")
            #expect(exchange.metrics.attempts == 1)
            #expect(!exchange.metrics.isConnectionReused)
        }
    }

    @Test("Bytes after a response are never the next response")
    func poisoned() async throws {
        let first = ServerScript(
            .expectRequestHead,
            .send(
                "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
                    + "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"), .awaitClose)
        let second = ServerScript(.expectRequestHead, .sendOK, .awaitClose)
        try await TestOrigin.withOrigin(scripts: first, second) { origin in
            let session = HTTPSession.own()
            #expect(try await session.get(origin.url("/first")).text == "ok")
            let exchange = try await session.get(origin.url("/second"))
            #expect(exchange.text == "ok")
            #expect(origin.connectionCount == 2)
        }
    }

    @Test("A healthy connection is reused repeatedly")
    func reused() async throws {
        try await TestOrigin.withOrigin { request in
            .text("\(request.number)")
        } run: { origin in
            let session = HTTPSession.own()
            for number in 1...20 {
                let exchange = try await session.get(origin.url())
                #expect(exchange.text == "\(number)")
                #expect(exchange.metrics.isConnectionReused == (number > 1))
            }
            #expect(session.poolStatus.opened == 1)
            #expect(session.poolStatus.reused == 19)
            #expect(origin.connectionCount == 1)
        }
    }
}
