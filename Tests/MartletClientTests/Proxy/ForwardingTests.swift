import Martlet
import MartletTesting
import Testing

@Suite("Requests forwarded by a proxy", .timeLimit(.minutes(20)))
struct ForwardingTests {
    private let secret = ProxyCredentials(user: "me", password: "hunter2")

    @Test("The target is the whole URL, and Host is the server's")
    func absoluteForm() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("x"))) { proxy in
            let session = try ProxyScene.session(proxy.port)
            for (url, target, host) in [
                ("http://a.test/p?q#f", "http://a.test/p?q", "a.test"),
                ("http://b.test:8080", "http://b.test:8080/", "b.test:8080"),
                ("http://[::1]:81/x", "http://[::1]:81/x", "[::1]:81"),
                ("http://a.test:80/", "http://a.test/", "a.test"),
            ] {
                let exchange = try await session.get(url)
                #expect(exchange.metrics.proxy == "http://127.0.0.1:\(proxy.port)")
                let seen = try #require(proxy.requests.last)
                #expect(seen.target == target)
                #expect(seen.headers.values(of: "Host") == [host])
                #expect(seen.headers.values(of: "Proxy-Authorization").isEmpty)
            }
            // All servers share one connection to the proxy.
            #expect(proxy.connectionCount == 1)
        }
    }

    @Test("The exact bytes of a forwarded request are as expected")
    func bytes() async throws {
        try await TestOrigin.withOrigin(
            scripts: ServerScript(.expectRequestHead, .sendOK, .awaitClose)
        ) { proxy in
            let session = try ProxyScene.session(proxy.port, credentials: secret) {
                $0.userAgent = nil
                $0.decompressesResponses = false
            }
            _ = try await session.get("http://a.test/")
            let expected =
                "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nAccept: */*\r\n"
                + "Proxy-Authorization: Basic bWU6aHVudGVyMg==\r\n\r\n"
            #expect(String(decoding: proxy.recorder.transcript(ofConnection: 1), as: UTF8.self) == expected)
        }
    }

    @Test("OPTIONS * names the server without a path")
    func serverWide() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("x"))) { proxy in
            let session = try ProxyScene.session(proxy.port)
            let request = HTTPRequest(method: .options, scheme: "http", authority: "a.test:81", path: "*")
            _ = try await session.send(request)
            #expect(proxy.requests.map(\.target) == ["http://a.test:81"])
        }
    }

    @Test("Bypassed servers are reached directly, without proxy fields")
    func bypassing() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("x"))) { origin in
            let settings = try ProxySettings.http("127.0.0.1:1", credentials: secret)
            let session = HTTPSession.own { $0.proxy = settings.bypassing("127.0.0.0/8") }
            let exchange = try await session.get(
                origin.url("/here"), headers: [.proxyAuthorization: "Basic mine"])
            #expect(exchange.metrics.proxy == nil)
            #expect(origin.requests.map(\.target) == ["/here"])
            #expect(origin.requests[0].headers.values(of: "Proxy-Authorization").isEmpty)
        }
    }

    @Test("A default Proxy-Authorization is sent only to the proxy")
    func defaultField() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("x"))) { origin in
            let proxy = try ProxySettings.http("127.0.0.1:\(origin.port)")
            let session = HTTPSession.own {
                $0.headers[.proxyAuthorization] = "Bearer t"
                $0.proxy = proxy.bypassing("127.0.0.1")
            }
            _ = try await session.get("http://a.test/")
            _ = try await session.get(origin.url())
            #expect(
                origin.requests.map { $0.headers.values(of: "Proxy-Authorization") } == [["Bearer t"], []])
        }
    }

    @Test("A call can override its proxy or disable it")
    func perCall() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("x"))) { origin in
            let session = HTTPSession.own { $0.proxy = .none }
            var options = RequestOptions()
            options.proxy = try .http("127.0.0.1:\(origin.port)")
            _ = try await session.get("http://a.test/", options: options)
            options.proxy = ProxySettings.none
            let through = try ProxyScene.session(origin.port)
            _ = try await through.get(origin.url("/direct"), options: options)
            #expect(origin.requests.map(\.target) == ["http://a.test/", "/direct"])
        }
    }

    @Test("A selector chooses the proxy for each call")
    func selector() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("x"))) { origin in
            let server = try ProxyServer("127.0.0.1:\(origin.port)")
            let session = HTTPSession.own { configuration in
                configuration.proxy = .selector { request in
                    request.path == "/proxied" && request.method == .get ? server : nil
                }
            }
            _ = try await session.get(origin.url("/proxied"))
            _ = try await session.get(origin.url("/direct"))
            #expect(origin.requests.map(\.target) == [origin.url("/proxied"), "/direct"])
        }
    }

    @Test("A 407 is answered with credentials only once")
    func refusedCredentials() async throws {
        let rejecting = OriginHandler { _ in
            var answer = OriginResponse.text("no")
            answer.status = 407
            answer.headers.append("Proxy-Authenticate", "Basic realm=\"p\"")
            return answer
        }
        try await TestOrigin.withOrigin(handler: rejecting) { proxy in
            let shy = ProxyCredentials(user: "me", password: "hunter2", sendsPreemptively: false)
            for (credentials, count) in [(shy, 2), (secret, 1), (nil, 1)] as [(ProxyCredentials?, Int)] {
                let before = proxy.requests.count
                let session = try ProxyScene.session(proxy.port, credentials: credentials)
                let exchange = try await session.get("http://a.test/")
                #expect(exchange.response.status.code == 407)
                #expect(exchange.text == "no")
                #expect(proxy.requests.count == before + count)
                #expect(exchange.metrics.attempts == count)
            }
        }
    }

    @Test("After a 407 the credentials and the body are sent on the second attempt")
    func askedCredentials() async throws {
        let handler = OriginHandler { request in
            guard request.headers.values(of: "Proxy-Authorization") == ["Basic bWU6aHVudGVyMg=="] else {
                var answer = OriginResponse.text("no")
                answer.status = 407
                answer.headers.append("Proxy-Authenticate", "Digest realm=\"x\", Basic realm=\"p\"")
                return answer
            }
            return .text(String(decoding: try await ProxyScene.collect(request), as: UTF8.self))
        }
        try await TestOrigin.withOrigin(handler: handler) { proxy in
            let shy = ProxyCredentials(user: "me", password: "hunter2", sendsPreemptively: false)
            let session = try ProxyScene.session(proxy.port, credentials: shy)
            #expect(try await session.post("http://a.test/", body: .text("body")).text == "body")
            #expect(proxy.requests.count == 2)
        }
    }

    @Test("Digest-only credentials are never sent with Basic, and Digest is chosen if both are offered")
    func digestAlone() async throws {
        let handler = OriginHandler { request in
            guard request.headers.values(of: "Proxy-Authorization").isEmpty else { return .text("x") }
            var answer = OriginResponse.text("no", status: 407)
            answer.headers.append("Proxy-Authenticate", "Basic realm=\"p\"")
            guard request.target.hasSuffix("/both") else { return answer }
            answer.headers.append("Proxy-Authenticate", "Digest realm=\"p\", nonce=\"n\", qop=\"auth\"")
            return answer
        }
        try await TestOrigin.withOrigin(handler: handler) { proxy in
            let credentials = ProxyCredentials(user: "me", password: "hunter2", requiresDigest: true)
            let session = try ProxyScene.session(proxy.port, credentials: credentials)
            #expect(try await session.get("http://a.test/basic").response.status.code == 407)
            #expect(proxy.requests.flatMap { $0.headers.values(of: "Proxy-Authorization") }.isEmpty)
            #expect(try await session.get("http://a.test/both").text == "x")
            let sent = proxy.requests.flatMap { $0.headers.values(of: "Proxy-Authorization") }
            #expect(sent.count == 1)
            #expect(sent.allSatisfy { $0.hasPrefix("Digest username=\"me\"") })
        }
    }

    @Test("Connections with different proxy credentials are not shared")
    func poolKey() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("x"))) { proxy in
            let session = try ProxyScene.session(proxy.port)
            let address = "127.0.0.1:\(proxy.port)"
            let views = [
                try ProxySettings.http(address), try .http("a:b@\(address)"), try .http("a:c@\(address)"),
                try .http("b:b@\(address)"),
                try .http(
                    address,
                    credentials: ProxyCredentials(user: "b", password: "b", requiresDigest: true)),
            ]
            for settings in views + views {
                _ = try await session.with { $0.proxy = settings }.get("http://a.test/")
            }
            #expect(proxy.connectionCount == 5)
            _ = try await session.with { $0.proxy = .none }.get(proxy.url())
            #expect(proxy.connectionCount == 6)
        }
    }

    @Test("The error for an unreachable proxy contains the proxy without its password")
    func unreachable() async throws {
        let closed = try ClosedPort.shared.get()
        let port = closed.number
        let session = try ProxyScene.session(port, credentials: secret)
        let rejected = try await ProxyScene.failure(session, "http://a.test/")
        #expect(rejected.code == .connectFailed && rejected.isConnectFailure)
        #expect(rejected.proxy == "http://127.0.0.1:\(port)")
        #expect(rejected.message.contains("the proxy http://127.0.0.1:\(port)"))
        let unnamed = HTTPSession.own {
            $0.proxy = .server(
                ProxyServer(kind: .http, host: "proxy.test", port: 1, credentials: secret))
            $0.resolver = ProxyScene.NoNames()
        }
        for scheme in ["http", "https"] {
            let unresolved = try await ProxyScene.failure(unnamed, "\(scheme)://a.test/")
            #expect(unresolved.code == .resolutionFailed)
            #expect(unresolved.proxy == "http://proxy.test:1")
            #expect(unresolved.message.contains("proxy.test"))
            #expect(!unresolved.description.contains("hunter2"))
        }
    }

    @Test("Cookies of a proxy's 407 are never stored for the origin")
    func refusalCookies() async throws {
        let handler = OriginHandler { request in
            guard request.headers.values(of: "Proxy-Authorization").isEmpty else { return .text("x") }
            var answer = OriginResponse.text("no", status: 407)
            answer.headers.append("Proxy-Authenticate", "Basic realm=\"p\"")
            answer.headers.append("Set-Cookie", "a=1")
            return answer
        }
        try await TestOrigin.withOrigin(handler: handler) { proxy in
            let shy = ProxyCredentials(user: "me", password: "hunter2", sendsPreemptively: false)
            for (credentials, status) in [(shy, 200), (nil, 407)] as [(ProxyCredentials?, Int)] {
                let jar = CookieJar()
                let session = try ProxyScene.session(proxy.port, credentials: credentials) {
                    $0.cookies = jar
                }
                #expect(try await session.get("http://a.test/").statusCode == status)
                #expect(jar.isEmpty)
            }
        }
    }

    @Test("The caller's Proxy-Authorization is never sent to a server")
    func directSecrets() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("x"))) { origin in
            let elsewhere = try ProxySettings.http("127.0.0.1:1").bypassing("127.0.0.1")
            for proxy in [ProxySettings.none, .environment, elsewhere] {
                let session = HTTPSession.own { $0.proxy = proxy }
                _ = try await session.get(origin.url(), headers: [.proxyAuthorization: "Basic bWU6cA=="])
                let other = session.with { $0.headers[.proxyAuthorization] = "Basic bWU6cA==" }
                _ = try await other.get(origin.url())
            }
            #expect(origin.requests.count == 6)
            #expect(origin.requests.flatMap { $0.headers.values(of: "Proxy-Authorization") }.isEmpty)
        }
    }
}
