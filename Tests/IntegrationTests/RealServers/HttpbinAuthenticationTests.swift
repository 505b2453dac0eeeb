import Martlet
import Synchronization
import Testing

@Suite("Authentication with httpbin", .timeLimit(.minutes(20)))
struct HttpbinAuthenticationTests {
    private func session(
        _ credentials: Credentials, _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) -> HTTPSession {
        .plain {
            $0.authentication.credentials = credentials
            change(&$0)
        }
    }

    @Test("Basic is accepted preemptively or after a challenge")
    func basic() async throws {
        try await HttpbinServer.withServer { server in
            let url = server.url("/basic-auth/me/hunter2")
            let eager = try await session(.basic(user: "me", password: "hunter2")).get(url)
            #expect(try eager.httpbin.authenticated == true && eager.httpbin.user == "me")
            #expect(eager.metrics.attempts == 1)
            let shy = try await session(.any(user: "me", password: "hunter2")).get(url)
            #expect(try shy.httpbin.authenticated == true)
            #expect(shy.metrics.hops.map(\.reason) == [.challenge])
            let address = "http://me:hunter2@127.0.0.1:\(server.port)/basic-auth/me/hunter2"
            #expect(try await HTTPSession.plain().get(address).httpbin.authenticated == true)
            let spoken = server.url("/basic-auth/m%C3%A9/p%C3%A4ss%20w%C3%B6rd")
            let other = try await session(.basic(user: "mé", password: "päss wörd")).get(spoken)
            #expect(try other.httpbin.user == "mé")
        }
    }

    @Test("A wrong password for Basic is rejected once, and the 401 is the response")
    func wrongBasic() async throws {
        try await HttpbinServer.withServer { server in
            let url = server.url("/basic-auth/me/hunter2")
            let eager = try await session(.basic(user: "me", password: "swordfish")).get(url)
            #expect(eager.statusCode == 401 && eager.metrics.attempts == 1)
            let shy = try await session(.any(user: "me", password: "swordfish")).get(url)
            #expect(shy.statusCode == 401 && shy.metrics.attempts == 2)
        }
    }

    @Test("A handler is called until it is right, or has been wrong three times")
    func handler() async throws {
        try await HttpbinServer.withServer { server in
            let url = server.url("/basic-auth/me/hunter2")
            for (passwords, status) in [(["a", "b", "hunter2"], 200), (["a", "b", "c", "hunter2"], 401)] {
                let asked = Mutex(0)
                let session = HTTPSession.plain {
                    $0.authentication.handler = { challenge in
                        #expect(challenge.realm == "Fake Realm")
                        let index = asked.withLock { count in
                            defer { count += 1 }
                            return count
                        }
                        return .basic(user: "me", password: passwords[index])
                    }
                }
                let answer = try await session.get(url)
                #expect(answer.statusCode == status)
                #expect(asked.withLock { $0 } == 3)
                #expect(answer.metrics.attempts == 4)
            }
        }
    }

    @Test("A resource that hides as a 404 is only reached with preemptive credentials")
    func hiddenBasic() async throws {
        try await HttpbinServer.withServer { server in
            let url = server.url("/hidden-basic-auth/me/hunter2")
            let eager = try await session(.basic(user: "me", password: "hunter2")).get(url)
            #expect(try eager.httpbin.authenticated == true)
            #expect(try await session(.any(user: "me", password: "hunter2")).get(url).statusCode == 404)
        }
    }

    @Test("Bearer sends a token, and requests one from the provider")
    func bearer() async throws {
        try await HttpbinServer.withServer { server in
            let url = server.url("/bearer")
            #expect(try await session(.bearer("abc.def")).get(url).httpbin.token == "abc.def")
            let without = try await HTTPSession.plain().get(url)
            #expect(without.statusCode == 401)
            #expect(without.response.headerFields[.wwwAuthenticate] == "Bearer")
            let session = HTTPSession.plain {
                $0.authentication.tokens = SingleFlightTokens(Tokens())
            }
            #expect(try await session.get(url).httpbin.token == "fresh")
        }
    }

    private struct Tokens: TokenProvider {
        func token() async throws -> String { "fresh" }
        func refresh(after token: String) async throws -> String { "fresher" }
    }

    @Test(
        "Digest works with each quality of protection and algorithm",
        arguments: ["auth", "auth-int", "either"], ["MD5", "SHA-256"])
    func digest(_ quality: String, _ algorithm: String) async throws {
        try await HttpbinServer.withServer { server in
            let url = server.url("/digest-auth/\(quality)/me/hunter2/\(algorithm)")
            for credentials in [
                Credentials.digest(user: "me", password: "hunter2"), .any(user: "me", password: "hunter2"),
            ] {
                let session = session(credentials)
                let answer = try await session.get(url)
                #expect(try answer.httpbin.authenticated == true && answer.httpbin.user == "me")
                #expect(answer.metrics.hops.map(\.status) == [401])
                // The nonce is reused for the second.
                #expect(try await session.get(url).metrics.attempts == 1)
            }
        }
    }

    @Test("Digest works with MD5, the default of the shortest path", arguments: ["auth", "auth-int"])
    func shortest(_ quality: String) async throws {
        try await HttpbinServer.withServer { server in
            let url = server.url("/digest-auth/\(quality)/me/hunter2")
            let answer = try await session(.digest(user: "me", password: "hunter2")).get(url)
            #expect(try answer.httpbin.authenticated == true)
        }
    }

    @Test("SHA-512, which no RFC defines for Digest, gets no reply", arguments: ["auth", "auth-int"])
    func unknownAlgorithm(_ quality: String) async throws {
        try await HttpbinServer.withServer { server in
            let url = server.url("/digest-auth/\(quality)/me/hunter2/SHA-512")
            let answer = try await session(.any(user: "me", password: "hunter2")).get(url)
            #expect(answer.statusCode == 401 && answer.metrics.attempts == 1)
        }
    }

    @Test("A wrong password for Digest is rejected once", arguments: ["auth", "auth-int"])
    func wrongDigest(_ quality: String) async throws {
        try await HttpbinServer.withServer { server in
            let url = server.url("/digest-auth/\(quality)/me/hunter2/SHA-256")
            for hasJar in [false, true] {
                let session = session(.digest(user: "me", password: "swordfish")) {
                    if hasJar { $0.cookies = CookieJar() }
                }
                let answer = try await session.get(url)
                #expect(answer.statusCode == 401 && answer.metrics.attempts == 2)
            }
        }
    }

    @Test("A stale nonce is replaced", arguments: [1, 3])
    func stale(_ uses: Int) async throws {
        try await HttpbinServer.withServer { server in
            let session = session(.digest(user: "me", password: "hunter2")) { $0.cookies = CookieJar() }
            let url = server.url("/digest-auth/auth/me/hunter2/SHA-256/\(uses)")
            for call in 0..<(3 * uses) {
                let answer = try await session.get(url)
                #expect(try answer.httpbin.authenticated == true)
                #expect(answer.metrics.attempts == (call % uses == 0 ? 2 : 1), "call \(call)")
            }
        }
    }

    @Test("A stale nonce is not a rejection: each call asks the handler only once")
    func staleForHandler() async throws {
        try await HttpbinServer.withServer { server in
            let asked = Mutex(0)
            let session = HTTPSession.plain {
                $0.cookies = CookieJar()
                $0.authentication.handler = { _ in
                    asked.withLock { $0 += 1 }
                    return .digest(user: "me", password: "hunter2")
                }
            }
            for call in 1...3 {
                let answer = try await session.get(server.url("/digest-auth/auth/me/hunter2/MD5/1"))
                #expect(try answer.httpbin.authenticated == true)
                #expect(asked.withLock { $0 } == call)
            }
        }
    }

    @Test("A server that rejects every nonce as stale gets few requests")
    func alwaysStale() async throws {
        try await HttpbinServer.withServer { server in
            let session = session(.digest(user: "me", password: "hunter2")) { $0.cookies = CookieJar() }
            let answer = try await session.get(server.url("/digest-auth/auth/me/hunter2/MD5/0"))
            #expect(answer.statusCode == 401)
            #expect(answer.metrics.attempts <= 5)
        }
    }
}
