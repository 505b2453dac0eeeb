import Martlet
import MartletTesting
import SystemPackage
import Testing

@Suite("Redirects over the network")
struct RedirectTests {
    @Test("A redirect is followed, and the exchange contains the final URL and the history")
    func followed() async throws {
        try await TestOrigin.withOrigin { request in
            request.path == "/a" ? .redirect(to: "/b") : .text("there")
        } run: { origin async throws in
            let exchange = try await HTTPSession.own().get(origin.url("/a#part"))
            #expect(exchange.text == "there")
            #expect(exchange.url.path == "/b")
            #expect(exchange.url.fragment == "part")
            #expect(exchange.metrics.hops.count == 1)
            let hop = try #require(exchange.metrics.hops.first)
            #expect(hop.reason == .redirect)
            #expect(hop.status == 302)
            #expect(hop.url.path == "/a")
            #expect(exchange.metrics.attempts == 2)
            // The first connection carried the second request.
            #expect(origin.connectionCount == 1)
        }
    }

    @Test("A policy that does not follow returns the redirect, for a session and for a call")
    func notFollowed() async throws {
        try await TestOrigin.withOrigin { _ in
            .redirect(to: "/b")
        } run: { origin async throws in
            let session = HTTPSession.own { $0.redirects = .doNotFollow }
            #expect(try await session.get(origin.url("/a")).statusCode == 302)
            var options = RequestOptions()
            options.redirects = .doNotFollow
            let request = try HTTPRequest(method: .get, url: origin.url("/a"))
            #expect(try await HTTPSession.own().send(request, options: options).statusCode == 302)
        }
    }

    @Test("A session that stays on the host returns a redirect to another host, and follows the others")
    func staysOnHost() async throws {
        try await TestOrigin.withOrigin { request in
            request.path == "/away" ? .redirect(to: "http://other.example/") : .redirect(to: "/away")
        } run: { origin async throws in
            let session = HTTPSession.own { $0.redirects.staysOnHost = true }
            let response = try await session.get(origin.url("/"))
            #expect(response.statusCode == 302 && response.headers["Location"] == "http://other.example/")
            #expect(origin.requests.map(\.path) == ["/", "/away"])
        }
    }

    @Test("A redirect loop ends at the limit with an error that contains the last redirect")
    func loop() async throws {
        try await TestOrigin.withOrigin { _ in
            .redirect(to: "/again")
        } run: { origin async throws in
            let error = await #expect(throws: HTTPError.self) {
                try await HTTPSession.own().get(origin.url("/again"))
            }
            #expect(error?.code == .tooManyRedirects)
            #expect(error?.exchange?.statusCode == 302)
            #expect(origin.requests.count == 21)
        }
    }

    @Test("307 sends the body again, and 303 does not")
    func bodies() async throws {
        try await TestOrigin.withOrigin { request in
            switch request.path {
            case "/307": return .redirect(to: "/end", status: 307)
            case "/303": return .redirect(to: "/end", status: 303)
            default:
                let body = try await request.collectText()
                return .text("\(request.method) \(request.headers["Content-Type"] ?? "-") \(body)")
            }
        } run: { origin async throws in
            let session = HTTPSession.own()
            let kept = try await session.post(origin.url("/307"), body: .text("hello"))
            #expect(kept.text == "POST text/plain; charset=utf-8 hello")
            let dropped = try await session.post(origin.url("/303"), body: .text("hello"))
            #expect(dropped.text == "GET - ")
        }
    }

    @Test("A one-shot body makes 307 the response")
    func once() async throws {
        try await TestOrigin.withOrigin { request in
            _ = try await request.collectText()
            return .redirect(to: "/end", status: 307)
        } run: { origin async throws in
            let exchange = try await HTTPSession.own().post(
                origin.url("/307"), body: .once(Pieces("hello"), length: 5))
            #expect(exchange.statusCode == 307)
            #expect(origin.requests.count == 1)
        }
    }

    @Test(
        "A redirect or challenge whose body arrives after its head frees its connection for the next request"
    )
    func lateBody() async throws {
        // On a busy machine a body may arrive too late, but not every time.
        var fewest = Int.max
        for _ in 0..<200 where fewest > 1 {
            try await TestOrigin.withOrigin { request in
                let late = OriginPacing(pieceSize: 2, every: .milliseconds(1))
                if request.path != "/next" {
                    return OriginResponse(302, headers: ["Location": "/next"], body: .text("gone")).with {
                        $0.pacing = late
                    }
                }
                if request.headers["Authorization"] != nil { return .text("in") }
                let fields: OriginFields = ["WWW-Authenticate": "Basic realm=\"x\""]
                return OriginResponse(401, headers: fields, body: .text("gone")).with { $0.pacing = late }
            } run: { origin async throws in
                let session = HTTPSession.own {
                    $0.authentication.credentials = .any(user: "u", password: "p")
                }
                #expect(try await session.get(origin.url()).text == "in")
                fewest = min(fewest, origin.connectionCount)
            }
        }
        #expect(fewest == 1)
    }

    @Test("A redirect whose small body does not arrive is followed shortly on another connection")
    func stalledBody() async throws {
        let first = ServerScript(
            .expectRequestHead,
            .send("HTTP/1.1 302 Found\r\nLocation: /next\r\nContent-Length: 4\r\n\r\n"), .awaitClose)
        let second = ServerScript(.expectRequestHead, .sendOK, .awaitClose)
        try await TestOrigin.withOrigin(scripts: first, second) { origin async throws in
            #expect(try await HTTPSession.own().get(origin.url()).text == "ok")
            #expect(origin.connectionCount == 2)
        }
    }

    @Test("A redirect whose body never ends is followed immediately on another connection")
    func endlessBody() async throws {
        let first = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 302 Found\r\nLocation: /next\r\n\r\nand so on"), .awaitClose)
        let second = ServerScript(.expectRequestHead, .sendOK, .awaitClose)
        try await TestOrigin.withOrigin(scripts: first, second) { origin async throws in
            let exchange = try await HTTPSession.own().get(origin.url())
            #expect(exchange.text == "ok")
            #expect(origin.connectionCount == 2)
        }
    }

    @Test("Streams and downloads follow redirects")
    func others() async throws {
        let directory = try TemporaryDirectory()
        try await TestOrigin.withOrigin { request in
            request.path == "/a" ? .redirect(to: "/b") : .text("there")
        } run: { origin async throws in
            let session = HTTPSession.own()
            let text = try await session.stream(try HTTPRequest(method: .get, url: origin.url("/a"))) {
                _, body in
                String(decoding: try await body.collect(), as: UTF8.self)
            }
            #expect(text == "there")
            let path = FilePath(directory.path + "/file")
            try await session.save(
                HTTPRequest(method: .get, url: origin.url("/a")), to: path, overwrites: false)
            #expect(try directory.contents() == ["file"])
        }
    }

    @Test("The total timeout starts with the first request")
    func totalClock() async throws {
        try await TestOrigin.withOrigin { request in
            .redirect(to: "/again").with { $0.delay = .milliseconds(60) }
        } run: { origin async throws in
            // The timeout may expire before the first redirect arrives.
            try await withEnoughTime(from: .milliseconds(400)) { total in
                let session = HTTPSession.own {
                    $0.timeouts.total = total
                    $0.redirects = .follow(limit: 100_000)
                }
                let error = try #require(
                    await #expect(throws: HTTPError.self) { try await session.get(origin.url()) })
                #expect(error.timeout == .total)
                return error.attempts > 1
            }
        }
    }

    @Test("Credentials are sent to trusted origins only", arguments: [false, true])
    func trusted(_ trusts: Bool) async throws {
        try await TestOrigin.withOrigin { request in
            .text(request.headers["Authorization"] ?? "none")
        } run: { other async throws in
            let place = other.url()
            try await TestOrigin.withOrigin { _ in
                .redirect(to: place)
            } run: { origin async throws in
                let session = HTTPSession.own {
                    $0.redirects.sendsCredentialsCrossOrigin = trusts
                    $0.authentication.credentials = .basic(user: "u", password: "p")
                }
                #expect(try await session.get(origin.url()).text == (trusts ? "Basic dTpw" : "none"))
                let inAddress = origin.url().replacing("http://", with: "http://u:p@")
                let plain = HTTPSession.own { $0.redirects.sendsCredentialsCrossOrigin = trusts }
                #expect(try await plain.get(inAddress).text == (trusts ? "Basic dTpw" : "none"))
            }
        }
    }

    @Test("Cancelling ends an endless redirect chain")
    func cancelled() async throws {
        try await TestOrigin.withOrigin { request in
            .redirect(to: "/again").with { $0.delay = .milliseconds(20) }
        } run: { origin async throws in
            let session = HTTPSession.own { $0.redirects = .follow(limit: 100_000) }
            let task = Task { try await session.get(origin.url()) }
            try await origin.waitForRequests(count: 3)
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
        }
    }
}
