import Martlet
import MartletTesting
import Testing

@Suite("Bodies that can be read only once")
struct OnceBodyTests {
    /// The reason for which a request is sent again.
    enum Reason: CaseIterable, Sendable {
        case redirect, expectation, credentials, proxy

        var answer: String {
            switch self {
            case .redirect: "307 Elsewhere\r\nLocation: /other"
            case .expectation: "417 No"
            case .credentials: "401 Who\r\nWWW-Authenticate: Digest realm=\"r\", nonce=\"n\", qop=\"auth\""
            case .proxy: "407 Who\r\nProxy-Authenticate: Digest realm=\"r\", nonce=\"n\", qop=\"auth\""
            }
        }
    }

    @Test("A body that has not been read is sent with the follow-up request", arguments: Reason.allCases)
    func unread(_ reason: Reason) async throws {
        let rejection = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 \(reason.answer)\r\nContent-Length: 0\r\n\r\n"), .awaitClose)
        let goOn: [ScriptStep] = reason == .expectation ? [] : [.send("HTTP/1.1 100 Continue\r\n\r\n")]
        let taken = ServerScript(
            [.expectRequestHead] + goOn + [.expect("5\r\nhello\r\n0\r\n\r\n"), .sendOK, .awaitClose])
        try await TestOrigin.withOrigin(scripts: rejection, taken) { origin in
            let session = HTTPSession.own { configuration in
                configuration.continueTimeout = .seconds(3600)
                configuration.authentication.credentials = .digest(user: "u", password: "p")
                if reason == .proxy {
                    let settings = try? ProxySettings.http("http://u:p@127.0.0.1:\(origin.port)")
                    configuration.proxy =
                        settings?.changingCredentials { $0.sendsPreemptively = false } ?? .none
                }
            }
            let url = reason == .proxy ? "http://server.test/" : origin.url()
            let answer = try await session.post(
                url, body: .once(Pieces("hello")), headers: [.expect: "100-continue"])
            #expect(answer.statusCode == 200 && answer.text == "ok")
        }
    }

    @Test("Digest credentials make the call send Expect and wait for the challenge before the body")
    func expectsChallenge() async throws {
        let challenge = "401 Who\r\nWWW-Authenticate: Digest realm=\"r\", nonce=\"n\", qop=\"auth\""
        let rejection = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 \(challenge)\r\nContent-Length: 0\r\n\r\n"), .awaitClose)
        let taken = ServerScript(.expectRequestHead, .expect("5\r\nhello\r\n0\r\n\r\n"), .sendOK, .awaitClose)
        try await TestOrigin.withOrigin(scripts: rejection, taken) { origin in
            let session = HTTPSession.own {
                $0.continueTimeout = .seconds(3600)
                $0.authentication.credentials = .digest(user: "u", password: "p")
            }
            let answer = try await session.post(origin.url(), body: .once(Pieces("hello")))
            #expect(answer.text == "ok")
            #expect(
                String(decoding: origin.recorder.transcript(ofConnection: 1), as: UTF8.self).contains(
                    "\r\nExpect: 100-continue\r\n"))
        }
    }

    @Test("A body that was read is not resent, and the redirect is returned as the response")
    func startedBody() async throws {
        let script = ServerScript(
            .expectRequestHead, .expect("5\r\nhello\r\n0\r\n\r\n"),
            .send("HTTP/1.1 307 Elsewhere\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n"), .awaitClose)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let answer = try await HTTPSession.own().post(origin.url(), body: .once(Pieces("hello")))
            #expect(answer.statusCode == 307)
            #expect(origin.connectionCount == 1)
        }
    }

    @Test("A request without content sends no Expect field")
    func noContent() async throws {
        try await TestOrigin.withOrigin(.plain, handler: .fixed(.text("x"))) { origin in
            let session = HTTPSession.own()
            for body in [HTTPBody.none, .bytes([]), .form([])] {
                _ = try await session.post(origin.url(), body: body, headers: [.expect: "100-continue"])
            }
            #expect(origin.requests.count == 3)
            #expect(origin.requests.allSatisfy { !$0.headers.contains("Expect") })
        }
    }
}
