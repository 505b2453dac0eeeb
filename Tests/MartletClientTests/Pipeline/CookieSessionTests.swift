import Martlet
import MartletTesting
import Testing

@Suite("Cookies of a session")
struct CookieSessionTests {
    @Test("Cookies set by a server are sent back, also during redirects")
    func kept() async throws {
        try await TestOrigin.withOrigin { request in
            request.path == "/set"
                ? OriginResponse(
                    302, headers: ["Location": "/see", "Set-Cookie": "a=1", "Set-Cookie": "b=2; Path=/"])
                : .text(request.headers["Cookie"] ?? "-")
        } run: { origin async throws in
            let jar = CookieJar()
            let session = HTTPSession.own { $0.cookies = jar }
            #expect(try await session.get(origin.url("/set")).text == "a=1; b=2")
            #expect(try await session.get(origin.url("/see")).text == "a=1; b=2")
            #expect(await jar.allCookies.count == 2)
        }
    }

    @Test("The caller's cookies come first and share one field with the jar's cookies")
    func joined() async throws {
        try await TestOrigin.withOrigin { request in
            .text(request.headers.values(of: "Cookie").joined(separator: "|")).with {
                $0.headers.append("Set-Cookie", "jar=1")
            }
        } run: { origin async throws in
            let session = HTTPSession.own { $0.cookies = CookieJar() }
            _ = try await session.get(origin.url())
            var request = try HTTPRequest(method: .get, url: origin.url())
            request.headerFields[.cookie] = "mine=2"
            #expect(try await session.send(request).text == "mine=2; jar=1")
        }
    }

    @Test("A call can disable cookies, and a session has no jar by default")
    func without() async throws {
        try await TestOrigin.withOrigin { request in
            .text(request.headers["Cookie"] ?? "-").with { $0.headers.append("Set-Cookie", "a=1") }
        } run: { origin async throws in
            let jar = CookieJar()
            let session = HTTPSession.own { $0.cookies = jar }
            var options = RequestOptions()
            options.usesCookies = false
            let request = try HTTPRequest(method: .get, url: origin.url())
            _ = try await session.send(request, options: options)
            #expect(await jar.allCookies.isEmpty)
            _ = try await session.send(request)
            #expect(try await session.send(request, options: options).text == "-")
            #expect(try await session.send(request).text == "a=1")
            let plain = HTTPSession.own()
            _ = try await plain.send(request)
            #expect(try await plain.send(request).text == "-")
        }
    }

    @Test("Cookies depend on the URL and not on the Host field")
    func hostField() async throws {
        try await TestOrigin.withOrigin { request in
            .text(request.headers["Cookie"] ?? "-").with { $0.headers.append("Set-Cookie", "a=1") }
        } run: { origin async throws in
            let jar = CookieJar()
            let session = HTTPSession.own { $0.cookies = jar }
            var request = try HTTPRequest(method: .get, url: origin.url())
            request.headerFields[HTTPField.Name("Host") ?? .accept] = "bank.example"
            _ = try await session.send(request)
            #expect(await jar.allCookies.map(\.domain) == ["127.0.0.1"])
        }
    }
}
