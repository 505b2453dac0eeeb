import Martlet
import MartletTesting
import MartletTestSupport
import MartletTransport
import Testing

@Suite("Hostile proxies", .timeLimit(.minutes(20)))
struct HostileProxyTests {
    /// Returns the error of a call through a proxy that plays a script. None of its sockets may stay open.
    private func failure(
        socks: Bool = false, connect: Duration = TestTimeouts.long, _ steps: ScriptStep...,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> HTTPError {
        try await failure(socks: socks, connect: connect, steps: steps, sourceLocation: sourceLocation)
    }

    private func failure(
        socks: Bool, connect: Duration, steps: [ScriptStep],
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> HTTPError {
        try await TestOrigin.withOrigin(scripts: ServerScript(steps)) { proxy in
            let settings: ProxySettings =
                socks ? try .socks5("127.0.0.1", port: proxy.port) : try .http("127.0.0.1:\(proxy.port)")
            let session = HTTPSession.own {
                $0.proxy = settings
                $0.timeouts.connect = connect
            }
            let error = try await ProxyScene.failure(
                session, "https://a.test/", headers: [.authorization: "Bearer top-secret"],
                sourceLocation: sourceLocation)
            #expect(!error.wasSent, sourceLocation: sourceLocation)
            // The timeout may expire before the client contacts the proxy.
            let isEarly = error.timeout == .connect && error.phase.precedes(.tunneling)
            #expect(error.proxy != nil || isEarly, sourceLocation: sourceLocation)
            #expect(
                await eventually { OpenSockets.count(toPort: proxy.port) == 0 },
                sourceLocation: sourceLocation)
            #expect(
                await eventually { session.diagnostics.isIdle && session.poolStatus.idle == 0 },
                sourceLocation: sourceLocation)
            let sent = String(decoding: proxy.recorder.transcript(ofConnection: 1), as: UTF8.self)
            #expect(!sent.contains("top-secret"), sourceLocation: sourceLocation)
            return error
        }
    }

    private func cause(_ error: HTTPError) throws -> ProxyError {
        try #require(error.underlying as? ProxyError)
    }

    @Test("The error of a rejected CONNECT has its status, fields and body")
    func rejection() async throws {
        let error = try await failure(
            .expectRequestHead,
            .send("HTTP/1.1 403 Forbidden\r\nX-Why: policy\r\nContent-Length: 7\r\n\r\nblocked"), .awaitClose)
        let cause = try cause(error)
        #expect(cause.kind == .rejected(status: 403) && !cause.wantsCredentials)
        let why = try #require(HTTPField.Name("X-Why"))
        #expect(cause.response?.headerFields[why] == "policy")
        #expect(cause.body == Array("blocked".utf8) && cause.isBodyComplete)
        #expect(error.exchange == nil)
        #expect(error.description.contains("403"))
    }

    @Test("The body of a rejected CONNECT may be chunked, end with the connection, or be cut")
    func refusalBodies() async throws {
        let chunked = try cause(
            try await failure(
                .expectRequestHead,
                .send("HTTP/1.1 502 Bad\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
                .awaitClose))
        #expect(chunked.body == Array("abc".utf8) && chunked.isBodyComplete)
        let closed = try cause(
            try await failure(.expectRequestHead, .send("HTTP/1.0 502 Bad\r\n\r\nabc"), .close))
        #expect(closed.body == Array("abc".utf8) && closed.isBodyComplete)
        let cut = try cause(
            try await failure(
                .expectRequestHead, .send("HTTP/1.1 502 Bad\r\nContent-Length: 9\r\n\r\nabc"), .close))
        #expect(cut.body == Array("abc".utf8) && !cut.isBodyComplete)
        let broken = try cause(
            try await failure(
                .expectRequestHead,
                .send("HTTP/1.1 502 Bad\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), .awaitClose))
        #expect(broken.kind == .rejected(status: 502) && broken.body.isEmpty && !broken.isBodyComplete)
    }

    @Test("At most 64 KiB of a rejection's body are stored, and a body that stalls is not awaited")
    func endlessBody() async throws {
        var resumableByteCount = 0
        // A stalled machine may receive less within the one second that the client waits.
        for _ in 0..<60 where resumableByteCount < 65_536 {
            let endless = try cause(
                try await failure(
                    .expectRequestHead, .send("HTTP/1.1 500 No\r\n\r\n"),
                    .sendEndlessly("0123456789")))
            #expect(endless.body.count <= 65_536 && !endless.isBodyComplete)
            resumableByteCount = endless.body.count
        }
        #expect(resumableByteCount == 65_536)
        let silent = try cause(
            try await failure(
                .expectRequestHead, .send("HTTP/1.1 500 No\r\nContent-Length: 9\r\n\r\nabc"), .awaitClose))
        #expect(silent.kind == .rejected(status: 500) && silent.body == Array("abc".utf8))
    }

    @Test("Redirects and other responses of the proxy are never followed")
    func redirect() async throws {
        for status in [300, 302, 307, 401, 404, 500, 599] {
            let error = try await failure(
                .expectRequestHead,
                .send("HTTP/1.1 \(status) X\r\nLocation: http://evil.test/\r\nContent-Length: 0\r\n\r\n"),
                .awaitClose)
            #expect(try cause(error).kind == .rejected(status: status))
        }
    }

    @Test("Data that is not HTTP is reported immediately")
    func garbage() async throws {
        for bytes in [
            "SSH-2.0-OpenSSH\r\n", "\u{5}\u{0}", "HTTP/2 200\r\n\r\n", "HTTP/1.1 20\r\n\r\n", "<html>",
            "HTTP/1.1 200 OK\r\nBad Name: x\r\n\r\n", "HTTP/1.1 200 OK\r\nX: a\u{0}b\r\n\r\n",
            "HTTP/1.1 407 No\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        ] {
            let error = try await failure(.expectRequestHead, .send(bytes), .awaitClose)
            #expect(error.code == .proxyFailed)
            #expect(try cause(error).kind == .protocolViolation)
        }
    }

    @Test("A connection that ends within the head is reported as such")
    func ends() async throws {
        for bytes in ["", "HTTP/1.1 200 OK\r\nX: y", "HTTP/1.1 100 Continue\r\n\r\n"] {
            let error = try await failure(.expectRequestHead, .send(bytes), .close)
            #expect(try cause(error).kind == .connectionLost)
        }
        let reset = try await failure(.expectRequestHead, .reset)
        #expect(try cause(reset).kind == .connectionLost)
    }

    @Test("Floods of interim responses, of fields and of one endless line end at their limits")
    func floods() async throws {
        for flood in ["HTTP/1.1 100 Continue\r\n\r\n"] {
            let error = try await failure(.expectRequestHead, .sendEndlessly(flood))
            #expect(try cause(error).kind == .protocolViolation)
        }
        for flood in ["X: y\r\n", "x"] {
            let error = try await failure(
                .expectRequestHead, .send("HTTP/1.1 200 OK\r\nA: "), .sendEndlessly(flood))
            #expect(try cause(error).kind == .protocolViolation)
        }
    }

    @Test("A 101 does not open a tunnel")
    func upgrade() async throws {
        let error = try await failure(
            .expectRequestHead, .send("HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n"), .awaitClose)
        #expect(try cause(error).kind == .protocolViolation)
    }

    @Test("The connect timeout covers a silent proxy and a slowly dripping one")
    func clocks() async throws {
        let drip = "HTTP/1.1 200 OK\r\n" + String(repeating: "X: y\r\n", count: 900)
        try await expectTimeout(.expectRequestHead, .awaitClose)
        try await expectTimeout(.expectRequestHead, .drip(drip, every: .milliseconds(5)), .awaitClose)
        try await expectTimeout(socks: true, .readBody(3), .awaitClose)
    }

    /// Expects that the connect timeout ends the exchange with a proxy.
    private func expectTimeout(socks: Bool = false, _ steps: ScriptStep...) async throws {
        try await withEnoughTime(from: .milliseconds(300)) { connect in
            let error = try await failure(socks: socks, connect: connect, steps: steps)
            #expect(error.code == .timedOut && error.timeout == .connect)
            guard !error.phase.precedes(.tunneling) else { return false }
            #expect(error.phase == .tunneling)
            return true
        }
    }

    @Test("The connect timeout covers TLS in the tunnel")
    func tunnelClock() async throws {
        try await withEnoughTime(from: .milliseconds(300), run: endsInTunnel)
    }

    /// Opens a tunnel to a silent server.
    ///
    /// - Returns: Whether the tunnel was open before the timeout expired.
    private func endsInTunnel(after connect: Duration) async throws -> Bool {
        let script = ServerScript(.expectRequestHead, .send("HTTP/1.1 200 OK\r\n\r\n"), .awaitClose)
        return try await TestOrigin.withOrigin(scripts: script) { proxy in
            let session = try ProxyScene.session(proxy.port) { $0.timeouts.connect = connect }
            let error = try await ProxyScene.failure(session, "https://a.test/")
            #expect(error.code == .timedOut && error.timeout == .connect)
            #expect(await eventually { OpenSockets.count(toPort: proxy.port) == 0 })
            if error.phase.precedes(.tlsHandshake) { return false }
            #expect(error.proxy == nil)
            return true
        }
    }

    @Test("Bytes after the head of the CONNECT response belong to the tunnel")
    func earlyBytes() async throws {
        try await TestOrigin.withOrigin(
            scripts: ServerScript(
                .expectRequestHead,
                .send("HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly"),
                .expectRequestHead, .awaitClose)
        ) { proxy in
            let server = try ProxyServer("127.0.0.1:\(proxy.port)").alwaysTunneling()
            let session = HTTPSession.own { $0.proxy = .server(server) }
            #expect(try await session.get("http://a.test/").text == "early")
        }
    }

    @Test("Bytes in the tunnel that are not TLS are the server's failure")
    func noTLSInTunnel() async throws {
        try await TestOrigin.withOrigin(
            scripts: ServerScript(
                .expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), .awaitClose)
        ) { proxy in
            let session = try ProxyScene.session(proxy.port)
            let error = try await ProxyScene.failure(session, "https://a.test/")
            #expect(error.code == .tlsFailed && error.proxy == nil)
        }
    }

    @Test("If a proxy closes after its 407 without notice, the request is repeated once")
    func silentClose() async throws {
        let rejection = ScriptStep.send(
            "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n")
        let shy = ProxyCredentials(user: "a", password: "b", sendsPreemptively: false)
        try await TestOrigin.withOrigin(
            scripts: ServerScript(.expectRequestHead, rejection, .close),
            ServerScript(.expectRequestHead, rejection, .awaitClose)
        ) { proxy in
            let session = try ProxyScene.session(proxy.port, credentials: shy)
            let error = try await ProxyScene.failure(session, "https://a.test/")
            #expect((error.underlying as? ProxyError)?.kind == .rejected(status: 407))
            #expect(proxy.connectionCount == 2)
        }
    }

    @Test("A SOCKS proxy that violates the protocol is reported as such")
    func socksGarbage() async throws {
        for (bytes, kind) in [
            ([4, 0], .protocolViolation), (Array("HTTP/1.1 400 Bad\r\n\r\n".utf8), .protocolViolation),
            ([5, 2], .protocolViolation), ([5, 0xFF], .socksCredentialsRejected),
            ([5, 0, 5, 0, 0, 9, 0], .protocolViolation), ([5, 0, 5, 5], .socksRejected(code: 5)),
            ([5, 0, 5, 200], .socksRejected(code: 200)), ([5, 0, 5, 0, 0, 1, 9], .connectionLost),
            ([5], .connectionLost), ([], .connectionLost),
        ] as [([UInt8], ProxyError.Kind)] {
            let error = try await failure(
                socks: true, .readBody(3), .send(bytes), .shutdownWriting, .awaitClose)
            #expect(error.code == .proxyFailed)
            #expect(try cause(error).kind == kind)
        }
    }

    @Test("A SOCKS response may arrive byte by byte")
    func socksDrip() async throws {
        try await TestOrigin.withOrigin(
            scripts: ServerScript(
                .drip([5, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0], every: .milliseconds(2)), .readBody(3),
                .readBody(13), .expectRequestHead, .sendOK, .awaitClose)
        ) { proxy in
            let settings = try ProxySettings.socks5("127.0.0.1", port: proxy.port)
            let session = HTTPSession.own { $0.proxy = settings }
            #expect(try await session.get("http://a.test/").text == "ok")
        }
    }
}
