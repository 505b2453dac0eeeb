import MartletCredentials
import MartletContent
import Testing

/// The properties of the servers that other tests rely on, checked with curl.
@Suite("Real servers, checked with curl")
struct ServerTests {
    @Test("nginx serves files with ranges and an ETag, compressed, chunked and with trailers")
    func nginxAnswers() async throws {
        try await NginxServer.withServer { server in
            let base = "http://127.0.0.1:\(server.plainPort)"
            let whole = try await Curl.run("\(base)/bytes.bin")
            #expect(whole.status == 200)
            #expect(whole.body == Site.bytes)
            let tag = try #require(whole.header("ETag"))
            #expect(tag.hasPrefix("\""))
            let part = try await Curl.run("-r", "5-8", "-H", "If-Range: \(tag)", "\(base)/bytes.bin")
            #expect(part.status == 206)
            #expect(part.header("Content-Range") == "bytes 5-8/1048576")
            #expect(part.body == Array(Site.bytes[5...8]))
            let compressed = try await Curl.run("--compressed", "\(base)/gzip/lines.txt")
            #expect(compressed.header("Content-Encoding") == "gzip")
            #expect(compressed.text == Site.lines)
            let chunked = try await Curl.run("\(base)/chunked/lines.txt")
            #expect(chunked.header("Transfer-Encoding") == "chunked")
            #expect(chunked.text == Site.lines)
            let trailed = try await Curl.run("\(base)/trailers/hello.txt")
            #expect(trailed.header("Transfer-Encoding") == "chunked")
            #expect(trailed.header("X-Checksum") == "abc123")
            #expect(trailed.text == Site.hello)
        }
    }

    @Test("nginx stores uploads, requests a password and rejects large bodies")
    func nginxRefusals() async throws {
        try await NginxServer.withServer { server in
            let base = "http://127.0.0.1:\(server.plainPort)"
            #expect(try await Curl.run("-X", "PUT", "-d", "abc", "\(base)/upload/new/a.txt").status == 201)
            #expect(try await Curl.run("\(base)/upload/new/a.txt").text == "abc")
            #expect(try await Curl.run("-X", "DELETE", "\(base)/upload/new/a.txt").status == 204)
            #expect(try await Curl.run("\(base)/upload/new/a.txt").status == 404)
            let large = String(repeating: "x", count: 2_000)
            #expect(try await Curl.run("-X", "PUT", "-d", large, "\(base)/small/b.txt").status == 413)
            let locked = try await Curl.run("\(base)/private/hello.txt")
            #expect(locked.status == 401)
            #expect(locked.header("WWW-Authenticate") == "Basic realm=\"nest\"")
            #expect(try await Curl.run("-u", "user:secret", "\(base)/private/hello.txt").text == Site.hello)
            #expect(try await Curl.run("\(base)/moved").header("Location")?.hasSuffix("/hello.txt") == true)
            #expect(try await Curl.run("\(base)/none").status == 204)
            #expect(try await Curl.run("\(base)/gone").status == 410)
            #expect(try await Curl.run("\(base)/busy").header("Retry-After") == "1")
            let emptyReply: Int32 = 52
            #expect(try await Curl.run("\(base)/drop").exitCode == emptyReply)
            let echo = try await Curl.run("-A", "me", "-H", "X-Echo: hi", "\(base)/echo?a=b").text
            #expect(echo == "GET\n/echo?a=b\n127.0.0.1:\(server.plainPort)\nhi\nme\n")
            let timedOut: Int32 = 28
            #expect(try await Curl.run("-m", "0.3", "\(base)/slow/bytes.bin").exitCode == timedOut)
            #expect(
                try await Curl.run("--unix-socket", server.socketPath, "http://nest/hello.txt").text
                    == Site.hello)
        }
    }

    @Test("nginx closes a limited connection after its third request")
    func nginxLimitedKeepAlive() async throws {
        try await NginxServer.withServer { server in
            let url = "http://127.0.0.1:\(server.limitedPort)/connection"
            let discard = Array(repeating: ["-o", "/dev/null"], count: 3).flatMap(\.self)
            let four = try await Curl.run(discard + ["-w", "%{num_connects} ", url, url, url, url])
            #expect(four.message == "1 0 0 1 ")
            let one = try await Curl.run(url)
            #expect(one.text == "1")
            #expect(one.header("Keep-Alive") == "timeout=600")
        }
    }

    @Test("nginx restricts its listeners to their TLS versions and certificates")
    func nginxTLS() async throws {
        try await NginxServer.withServer { server in
            let trust = ["--cacert", server.certificates.authority]
            func tls(_ port: UInt16, _ path: String, _ more: [String]) async throws -> Curl.StreamedResponse {
                try await Curl.run(trust + more + ["https://localhost:\(port)\(path)"])
            }
            #expect(try await tls(server.tlsPort, "/tls", []).text == "TLSv1.3 . localhost")
            #expect(try await tls(server.tls12Port, "/tls", []).text == "TLSv1.2 . localhost")
            #expect(try await tls(server.tls13Port, "/tls", []).text == "TLSv1.3 . localhost")
            let handshakeFailed: Int32 = 35
            #expect(
                try await tls(server.tls13Port, "/tls", ["--tls-max", "1.2"]).exitCode == handshakeFailed)
            let untrusted: Int32 = 60
            #expect(try await tls(server.expiredPort, "/tls", []).exitCode == untrusted)
            #expect(try await tls(server.expiredPort, "/hello.txt", ["-k"]).text == Site.hello)
            #expect(try await tls(server.clientCertificatePort, "/client", []).status == 400)
            let client = server.certificates.client
            let known = try await tls(
                server.clientCertificatePort, "/client", ["--cert", client.certificate, "--key", client.key])
            #expect(known.text == "CN=Martlet")
        }
    }

    @Test("Apache serves files with ranges, compressed, and over TLS")
    func apache() async throws {
        try await ApacheServer.withServer { server in
            let base = "http://127.0.0.1:\(server.plainPort)"
            let part = try await Curl.run("-r", "0-3", "\(base)/bytes.bin")
            #expect(part.status == 206)
            #expect(part.body == Array(Site.bytes[0...3]))
            #expect(part.header("ETag")?.hasPrefix("\"") == true)
            let compressed = try await Curl.run("--compressed", "\(base)/deflate/bytes.bin")
            #expect(compressed.header("Content-Encoding") == "gzip")
            #expect(compressed.header("Transfer-Encoding") == "chunked")
            #expect(compressed.body == Site.bytes)
            #expect(try await Curl.run("\(base)/moved").status == 302)
            let limited = try await Curl.run(
                "-H", "Connection: keep-alive", "http://127.0.0.1:\(server.limitedPort)/hello.txt")
            #expect(limited.header("Keep-Alive")?.contains("max=3") == true)
            let secure = try await Curl.run(
                "--cacert", server.certificates.authority, "https://localhost:\(server.tlsPort)/hello.txt")
            #expect(secure.text == Site.hello)
        }
    }

    @Test("lighttpd and Flask serve files with ranges and strong ETags", arguments: ["lighttpd", "flask"])
    func otherFiles(_ name: String) async throws {
        func look(_ port: UInt16) async throws {
            let url = "http://127.0.0.1:\(port)/bytes.bin"
            let part = try await Curl.run("-r", "5-8", url)
            #expect(part.status == 206)
            #expect(part.header("Content-Range") == "bytes 5-8/1048576")
            #expect(part.body == Array(Site.bytes[5...8]))
            let tag = try #require(part.header("ETag"))
            #expect(tag.hasPrefix("\""))
            #expect(try await Curl.run("-r", "5-8", "-H", "If-Range: \(tag)", url).status == 206)
            #expect(try await Curl.run("-r", "5-8", "-H", "If-Range: \"other\"", url).status == 200)
            #expect(try await Curl.run("http://127.0.0.1:\(port)/empty.txt").body.isEmpty)
        }
        if name == "flask" {
            try await FlaskServer.withServer { try await look($0.port) }
        } else {
            try await LighttpdServer.withServer { try await look($0.port) }
        }
    }

    @Test("Python's server supports HTTP/1.0 and HTTP/1.1", arguments: [PythonServer.Version.http10, .http11])
    func python(_ version: PythonServer.Version) async throws {
        try await PythonServer.withServer(version) { server in
            let answer = try await Curl.run("http://127.0.0.1:\(server.port)/hello.txt")
            #expect(answer.status == 200)
            #expect(answer.text == Site.hello)
            #expect(try await Curl.run("http://127.0.0.1:\(server.port)/nothing").status == 404)
        }
    }

    @Test("OpenSSL's server uses only one TLS version", arguments: ["1.2", "1.3"])
    func opensslVersions(_ version: String) async throws {
        let option = version == "1.2" ? "-tls1_2" : "-tls1_3"
        try await OpenSSLServer.withServer(.statusPage, [option]) { server in
            let trust = ["--cacert", server.certificates.authority, "--http0.9"]
            let page = try await Curl.run(trust + ["https://127.0.0.1:\(server.port)/"])
            #expect(page.status == 200)
            #expect(page.text.contains("Protocol  : TLSv\(version)"))
        }
    }

    @Test("OpenSSL's server sends an expired certificate")
    func opensslExpired() async throws {
        try await OpenSSLServer.withServer(.statusPage, expired: true) { server in
            let answer = try await Curl.run(
                "--cacert", server.certificates.authority, "https://127.0.0.1:\(server.port)/")
            let untrusted: Int32 = 60
            #expect(answer.exitCode == untrusted)
            #expect(answer.message.contains("expired"))
        }
    }

    @Test("OpenSSL's server sends literal responses")
    func opensslLiteral() async throws {
        let answers = ["short": "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"]
        try await OpenSSLServer.withServer(.literal(answers)) { server in
            let answer = try await Curl.run(
                "--cacert", server.certificates.authority, "https://127.0.0.1:\(server.port)/short")
            let partialFile: Int32 = 18
            #expect(answer.exitCode == partialFile)
            #expect(answer.text == "abc")
        }
    }

    @Test("OpenSSL's server dies in the middle of a response without a close_notify")
    func opensslAbruptEnd() async throws {
        try await OpenSSLServer.withServer(.spoken) { server in
            server.say("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nnot the whole")
            let url = "https://127.0.0.1:\(server.port)/"
            async let answer = Curl.run("--cacert", server.certificates.authority, url)
            try await server.child.waitForOutput("GET / HTTP/1.1")
            await server.child.kill()
            let partialFile: Int32 = 18
            let receiveFailed: Int32 = 56
            #expect([partialFile, receiveFailed].contains(try await answer.exitCode))
            #expect(try await answer.text == "not the whole")
        }
    }

    @Test("OpenSSL's server renegotiates in the middle of a response")
    func opensslRenegotiation() async throws {
        try await OpenSSLServer.withServer(.spoken, ["-tls1_2"]) { server in
            let url = "https://127.0.0.1:\(server.port)/"
            async let answer = Curl.run("--cacert", server.certificates.authority, url)
            try await server.child.waitForOutput("GET / HTTP/1.1")
            server.say("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc")
            server.renegotiate()
            try await server.child.waitForOutput("SSL_do_handshake -> 1")
            server.say("def")
            #expect(try await answer.text == "abcdef")
        }
    }

    @Test("The error of a server that cannot start has the reason")
    func failedStart() async throws {
        let failure = await #expect(throws: ServerFailure.self) {
            try await OpenSSLServer.withServer(.statusPage, ["-no-such-option"]) { _ in }
        }
        #expect(failure?.description.contains("-no-such-option") == true)
    }

    @Test("A stopped server no longer listens, and its directory is removed")
    func stopped() async throws {
        let server = try await PythonServer.start(.http11)
        await server.stop()
        #expect(server.child.hasExited)
        #expect(try !ListeningSockets.ports().contains(server.port))
        let couldNotConnect: Int32 = 7
        #expect(try await Curl.run("http://127.0.0.1:\(server.port)/").exitCode == couldNotConnect)
        #expect(throws: (any Error).self) { try server.directory.write("", to: "gone") }
    }
}
