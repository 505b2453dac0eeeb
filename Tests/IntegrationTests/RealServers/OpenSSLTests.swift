import Martlet
import Testing

@Suite("TLS with OpenSSL's s_server")
struct OpenSSLTests {
    @Test(
        "A server with a single TLS version is reached with that version",
        arguments: [("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")])
    func oneVersion(_ option: String, _ version: String) async throws {
        let page = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
        try await OpenSSLServer.withServer(.literal(["page": page]), [option]) { server in
            let answer = try await HTTPSession.trusting(server.certificates).get(
                server.url(server.port, "/page", scheme: "https"))
            #expect(answer.text == "hello")
            #expect(answer.metrics.connection?.tls?.version == version)
        }
    }

    @Test("A server of TLS 1.2 is rejected if 1.3 is required")
    func versionRefused() async throws {
        try await OpenSSLServer.withServer(.statusPage, ["-tls1_2"]) { server in
            let session = HTTPSession.trusting(server.certificates) { $0.tls.minimumVersion = .tls13 }
            let error = await #expect(throws: HTTPError.self) {
                try await session.get(server.url(server.port, "/", scheme: "https"))
            }
            #expect(error?.tlsKind == .protocolVersion)
        }
    }

    @Test("A status page that ends with a close_notify is complete")
    func closeDelimited() async throws {
        try await OpenSSLServer.withServer(.statusPage) { server in
            let page = try await HTTPSession.trusting(server.certificates).get(
                server.url(server.port, "/", scheme: "https"))
            #expect(page.response.status == .ok)
            #expect(page.text.contains("Protocol  : TLSv1.3"))
            #expect(page.text.contains("</pre>"))
        }
    }

    @Test("An expired certificate is rejected as expired")
    func expired() async throws {
        try await OpenSSLServer.withServer(.statusPage, expired: true) { server in
            let error = await #expect(throws: HTTPError.self) {
                try await HTTPSession.trusting(server.certificates).get(
                    server.url(server.port, "/", scheme: "https"))
            }
            #expect(error?.code == .tlsFailed)
            #expect(error?.tlsKind == .expired)
        }
    }

    @Test(
        "A server that requires a certificate rejects a client without one with an alert, and serves one with it",
        arguments: ["-tls1_2", "-tls1_3"])
    func clientCertificate(_ option: String) async throws {
        let page = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
        let options = [option, "-Verify", "1", "-verify_return_error"]
        try await OpenSSLServer.withServer(.literal(["page": page]), options) { server in
            let url = server.url(server.port, "/page", scheme: "https")
            let anonymous = HTTPSession.trusting(server.certificates)
            let error = await #expect(throws: HTTPError.self) { try await anonymous.get(url) }
            #expect(error?.code == .tlsFailed)
            #expect(error?.tlsKind == .clientCertificateRequired)
            let client = server.certificates.client
            let martlet = anonymous.with {
                $0.tls.identity = TLSIdentity(
                    certificateChain: .file(client.certificate), privateKey: .file(client.key))
            }
            let page = try await martlet.get(url)
            #expect(page.text == "hello")
        }
    }

    @Test("A body without a length is complete with a close_notify, and truncated without one")
    func abruptEndOfCloseDelimitedBody() async throws {
        try await OpenSSLServer.withServer(.spoken) { server in
            server.say("HTTP/1.1 200 OK\r\n\r\nall there is so far")
            let session = HTTPSession.trusting(server.certificates)
            let request = try HTTPRequest(
                method: .get, url: server.url(server.port, "/", scheme: "https"))
            var received = ""
            let error = await #expect(throws: HTTPError.self) {
                try await session.stream(request) { _, body in
                    for try await piece in body {
                        received += String(decoding: piece, as: UTF8.self)
                        if received.hasSuffix("so far") { await server.child.kill() }
                    }
                }
            }
            #expect(received == "all there is so far")
            #expect(error?.code == .truncated || error?.code == .connectionLost)
            #expect(error?.phase == .receivingBody)
        }
    }

    @Test("A body shorter than its length is an error, with or without a close_notify")
    func shortBody() async throws {
        let short = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"
        try await OpenSSLServer.withServer(.literal(["short": short])) { server in
            let error = await #expect(throws: HTTPError.self) {
                try await HTTPSession.trusting(server.certificates).get(
                    server.url(server.port, "/short", scheme: "https"))
            }
            #expect(error?.code == .truncated)
        }
        try await OpenSSLServer.withServer(.spoken) { server in
            server.say("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nnot the whole")
            let session = HTTPSession.trusting(server.certificates)
            async let answer = session.get(server.url(server.port, "/", scheme: "https"))
            try await server.child.waitForOutput("GET / HTTP/1.1")
            await server.child.kill()
            let result: Result<HTTPExchange, any Error>
            do { result = .success(try await answer) } catch { result = .failure(error) }
            let error = #expect(throws: HTTPError.self) { try result.get() }
            #expect(error?.code == .truncated || error?.code == .connectionLost)
        }
    }

    @Test("A server that dies before its response is an error, not a hang")
    func deathBeforeAnswer() async throws {
        try await OpenSSLServer.withServer(.spoken) { server in
            let session = HTTPSession.trusting(server.certificates)
            async let answer = session.get(server.url(server.port, "/", scheme: "https"))
            try await server.child.waitForOutput("GET / HTTP/1.1")
            await server.child.kill()
            let result: Result<HTTPExchange, any Error>
            do { result = .success(try await answer) } catch { result = .failure(error) }
            let error = #expect(throws: HTTPError.self) { try result.get() }
            #expect(
                error?.code == .emptyResponse || error?.code == .truncated
                    || error?.code == .connectionLost)
            #expect(error?.phase == .awaitingHead)
            #expect(error?.wasSent == true)
        }
    }

    @Test("A renegotiation request is rejected: the call ends with an error, and does not hang")
    func renegotiation() async throws {
        try await OpenSSLServer.withServer(.spoken, ["-tls1_2"]) { server in
            let session = HTTPSession.trusting(server.certificates)
            async let answer = session.get(server.url(server.port, "/", scheme: "https"))
            try await server.child.waitForOutput("GET / HTTP/1.1")
            server.say("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc")
            server.renegotiate()
            let result: Result<HTTPExchange, any Error>
            do { result = .success(try await answer) } catch { result = .failure(error) }
            let error = #expect(throws: HTTPError.self) { try result.get() }
            #expect(error?.isTimeout == false)
            #expect([.tlsFailed, .truncated, .connectionLost].contains(error?.code))
            #expect(session.poolStatus.leased == 0)
        }
    }

    @Test(
        "Literal responses are read correctly",
        arguments: [
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n",
                "abcde"
            ),
            ("HTTP/1.0 200 OK\r\n\r\nuntil the end", "until the end"),
            ("HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", "ok"),
            ("\r\nHTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok", "ok"),
            (
                "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
                    + "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
                "ok"
            ),
        ])
    func literal(_ bytes: String, _ body: String) async throws {
        try await OpenSSLServer.withServer(.literal(["answer": bytes])) { server in
            let answer = try await HTTPSession.trusting(server.certificates).get(
                server.url(server.port, "/answer", scheme: "https"))
            #expect(answer.response.status == .ok)
            #expect(answer.text == body)
        }
    }

    @Test(
        "Literal responses that violate the protocol are errors",
        arguments: [
            ("garbage\r\n\r\n", HTTPError.Code.protocolViolation),
            ("HTTP/2 200\r\n\r\n", .protocolViolation),
            ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", .protocolViolation),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", .truncated),
            ("HTTP/1.1 200 OK\r\nContent-Le", .truncated),
        ])
    func broken(_ bytes: String, _ code: HTTPError.Code) async throws {
        try await OpenSSLServer.withServer(.literal(["answer": bytes])) { server in
            let error = await #expect(throws: HTTPError.self) {
                try await HTTPSession.trusting(server.certificates).get(
                    server.url(server.port, "/answer", scheme: "https"))
            }
            #expect(error?.code == code)
        }
    }
}
