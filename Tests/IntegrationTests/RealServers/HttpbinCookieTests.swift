import Martlet
import Testing

@Suite("Cookies of httpbin", .timeLimit(.minutes(20)))
struct HttpbinCookieTests {
    private func told(_ session: HTTPSession, _ server: HttpbinServer) async throws -> [String: String]? {
        try await session.get(server.url("/cookies")).httpbin.cookies
    }

    @Test("Cookies set during a redirect are sent after it, and on the next call")
    func set() async throws {
        try await HttpbinServer.withServer { server in
            let jar = CookieJar()
            let session = HTTPSession.plain { $0.cookies = jar }
            let answer = try await session.get(server.url("/cookies/set?nest=high&bird=martlet"))
            #expect(try answer.httpbin.cookies == ["nest": "high", "bird": "martlet"])
            #expect(answer.metrics.hops.count == 1)
            let more = try await session.get(server.url("/cookies/set/legs/0"))
            #expect(try more.httpbin.cookies == ["nest": "high", "bird": "martlet", "legs": "0"])
            let changed = try await session.get(server.url("/cookies/set/legs/none"))
            #expect(try changed.httpbin.cookies?["legs"] == "none")
            #expect(try await told(session, server)?.count == 3)
            #expect(await jar.allCookies.allSatisfy { $0.path == "/" && $0.domain == "127.0.0.1" })
        }
    }

    @Test("A deleted cookie is not sent again")
    func delete() async throws {
        try await HttpbinServer.withServer { server in
            let jar = CookieJar()
            let session = HTTPSession.plain { $0.cookies = jar }
            _ = try await session.get(server.url("/cookies/set?a=1&b=2&c=3"))
            let answer = try await session.get(server.url("/cookies/delete?a&c="))
            #expect(try answer.httpbin.cookies == ["b": "2"])
            #expect(try await told(session, server) == ["b": "2"])
            #expect(await jar.allCookies.map(\.name) == ["b"])
        }
    }

    @Test("Values that the server quotes are sent back unchanged")
    func quoted() async throws {
        try await HttpbinServer.withServer { server in
            let session = HTTPSession.plain { $0.cookies = CookieJar() }
            let answer = try await session.get(server.url("/cookies/set?a=one%20two&b=x%3By%2Cz&c=%C3%A9"))
            #expect(try answer.httpbin.cookies == ["a": "one two", "b": "x;y,z", "c": "é"])
        }
    }

    @Test("Without a jar no cookie is stored, and a call can ignore the jar")
    func without() async throws {
        try await HttpbinServer.withServer { server in
            let plain = HTTPSession.plain()
            #expect(try await plain.get(server.url("/cookies/set/a/1")).httpbin.cookies == [:])
            let session = HTTPSession.plain { $0.cookies = CookieJar() }
            var options = RequestOptions()
            options.usesCookies = false
            let answer = try await session.get(server.url("/cookies/set/a/1"), options: options)
            #expect(try answer.httpbin.cookies == [:])
            #expect(try await told(session, server) == [:])
            let given = try await session.get(server.url("/cookies"), headers: [.cookie: "mine=1"])
            #expect(try given.httpbin.cookies == ["mine": "1"])
        }
    }

    @Test("The file of a jar restores its cookies in the next session")
    func persisted() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let path = FilePath(directory.appending("jar"))
        try await HttpbinServer.withServer { server in
            let jar = CookieJar(file: path, keepsSessionCookies: true)
            let first = HTTPSession.plain { $0.cookies = jar }
            _ = try await first.get(server.url("/cookies/set?a=1&b=2"))
            try await jar.save()
            let second = HTTPSession.plain { $0.cookies = CookieJar(file: path) }
            #expect(try await told(second, server) == ["a": "1", "b": "2"])
        }
    }
}
