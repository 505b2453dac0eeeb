import Martlet
import Synchronization
import Testing

@Suite("Authentication with Apache and nginx", .timeLimit(.minutes(20)))
struct ApacheAuthenticationTests {
    private func session(_ credentials: Credentials) -> HTTPSession {
        .plain { $0.authentication.credentials = credentials }
    }

    @Test(
        "A nonce of mod_auth_digest serves all requests of a session after the first, whatever their method")
    func nonceReuse() async throws {
        try await ApacheServer.withServer { server in
            let session = session(.digest(user: "me", password: "hunter2"))
            let first = try await session.get(server.url(server.plainPort, "/digest/hello.txt?a=b"))
            #expect(first.text == Site.hello)
            #expect(first.metrics.hops.map(\.reason) == [.challenge])
            let proof = try #require(HTTPField.Name("Authentication-Info"))
            #expect(first.response.headerFields[proof]?.contains("rspauth=") == true)
            for path in [
                "/digest/hello.txt", "/digest/data.json", "/digest/empty.txt", "/digest/%68ello.txt",
            ] {
                let next = try await session.get(server.url(server.plainPort, path))
                #expect(next.statusCode == 200 && next.metrics.attempts == 1, "\(path)")
            }
            let head = try await session.head(server.url(server.plainPort, "/digest/bytes.bin"))
            #expect(head.statusCode == 200 && head.metrics.attempts == 1)
            let bytes = try await session.get(server.url(server.plainPort, "/digest/bytes.bin"))
            #expect(bytes.body == Site.bytes)
            #expect(session.poolStatus.opened == 1)
        }
    }

    @Test("Sixteen concurrent calls share the nonce that the first of them received")
    func concurrent() async throws {
        try await ApacheServer.withServer { server in
            let session = session(.digest(user: "me", password: "hunter2"))
            let url = server.url(server.plainPort, "/digest/hello.txt")
            for round in 0..<2 {
                try await withThrowingTaskGroup(of: HTTPExchange.self) { group in
                    for _ in 0..<16 { group.addTask { try await session.get(url) } }
                    for try await answer in group {
                        #expect(answer.text == Site.hello)
                        #expect(answer.metrics.attempts <= 2 - round)
                    }
                }
            }
        }
    }

    @Test("One-time nonces are taken from the previous responses")
    func nextNonce() async throws {
        try await ApacheServer.withServer { server in
            let session = session(.digest(user: "me", password: "hunter2"))
            let url = server.url(server.plainPort, "/once/hello.txt")
            #expect(try await session.get(url).metrics.attempts == 2)
            for _ in 0..<4 {
                let answer = try await session.get(url)
                #expect(answer.text == Site.hello)
                #expect(answer.metrics.attempts == 1)
            }
        }
    }

    @Test("A posted body is sent again after the challenge, and once if the nonce is known")
    func post() async throws {
        try await ApacheServer.withServer { server in
            for (directory, credentials) in [
                ("digest", Credentials.digest(user: "me", password: "hunter2")),
                ("basic", .any(user: "me", password: "hunter2")),
            ] {
                let session = session(credentials)
                let url = server.url(server.plainPort, "/\(directory)/echo")
                let text = String(repeating: "feathers ", count: 20_000)
                let first = try await session.post(url, body: .text(text))
                #expect(first.text == text)
                #expect(first.metrics.attempts == 2)
                let second = try await session.post(url, body: .text(text))
                #expect(second.text == text)
                #expect(second.metrics.attempts == 1, "\(directory)")
            }
        }
    }

    @Test("A body that can be read once is kept until the server accepts the credentials")
    func onceBody() async throws {
        try await ApacheServer.withServer { server in
            let session = session(.digest(user: "me", password: "hunter2"))
            let url = server.url(server.plainPort, "/digest/echo")
            func body() -> HTTPBody {
                .once(
                    AsyncStream<[UInt8]> { continuation in
                        continuation.yield(Array("feathers".utf8))
                        continuation.finish()
                    }, length: 8, contentType: nil)
            }
            let first = try await session.post(url, body: body())
            #expect(first.text == "feathers" && first.metrics.hops.map(\.status) == [401])
            // A call that knows the nonce needs only one attempt.
            let second = try await session.post(url, body: body())
            #expect(second.text == "feathers" && second.metrics.hops.isEmpty)
        }
    }

    @Test("A wrong password or user is rejected once, and the 401 is the response")
    func wrong() async throws {
        try await ApacheServer.withServer { server in
            for (user, password) in [("me", "swordfish"), ("you", "hunter2")] {
                let digest = try await session(.digest(user: user, password: password)).get(
                    server.url(server.plainPort, "/digest/hello.txt"))
                #expect(digest.statusCode == 401 && digest.metrics.attempts == 2)
                let basic = try await session(.basic(user: user, password: password)).get(
                    server.url(server.plainPort, "/basic/hello.txt"))
                #expect(basic.statusCode == 401 && basic.metrics.attempts == 1)
            }
        }
    }

    @Test("A handler that is always wrong is called as often as the limit allows", arguments: [1, 2, 3])
    func limit(_ limit: Int) async throws {
        try await ApacheServer.withServer { server in
            for directory in ["digest", "basic"] {
                let asked = Mutex(0)
                let session = HTTPSession.plain {
                    $0.authentication.attemptLimit = limit
                    $0.authentication.handler = { challenge in
                        #expect(challenge.realm == "nest")
                        let count = asked.withLock {
                            $0 += 1
                            return $0
                        }
                        return .any(user: "me", password: "wrong\(count)")
                    }
                }
                let answer = try await session.get(server.url(server.plainPort, "/\(directory)/hello.txt"))
                #expect(answer.statusCode == 401)
                #expect(asked.withLock { $0 } == limit)
                #expect(answer.metrics.attempts == limit + 1)
            }
        }
    }

    @Test("Digest alone does not send the password to a server that requests Basic")
    func noDowngrade() async throws {
        try await ApacheServer.withServer { server in
            let answer = try await session(.digest(user: "me", password: "hunter2")).get(
                server.url(server.plainPort, "/basic/hello.txt"))
            #expect(answer.statusCode == 401 && answer.metrics.attempts == 1)
        }
    }

    @Test("nginx accepts Basic from the session, from the URL and from a netrc file")
    func nginx() async throws {
        try await NginxServer.withServer { server in
            let url = server.url(server.plainPort, "/private/hello.txt")
            let known = session(.basic(user: "user", password: "secret"))
            let eager = try await known.get(url)
            #expect(eager.text == Site.hello && eager.metrics.attempts == 1)
            let shy = session(.any(user: "user", password: "secret"))
            #expect(try await shy.get(url).metrics.attempts == 2)
            // Credentials for one path are sent to its siblings.
            #expect(
                try await shy.get(server.url(server.plainPort, "/private/data.json")).metrics.attempts == 1)
            let address = "http://user:secret@127.0.0.1:\(server.plainPort)/private/hello.txt"
            #expect(try await HTTPSession.plain().get(address).text == Site.hello)
            let netrc = try NetrcFile("machine 127.0.0.1 login user password secret")
            let filed = HTTPSession.plain { $0.authentication.netrc = netrc }
            #expect(try await filed.get(url).text == Site.hello)
            let wrong = try await session(.basic(user: "user", password: "swordfish")).get(url)
            #expect(wrong.statusCode == 401 && wrong.metrics.attempts == 1)
        }
    }
}
