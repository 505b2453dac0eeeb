import Martlet
import MartletPool
import MartletTesting
import MartletTransport
import MartletWire
import Testing

@Suite("Tunnels through HTTP proxies", .timeLimit(.minutes(20)))
struct TunnelTests {
    private let secret = ProxyCredentials(user: "me", password: "hunter2")
    private let basic = "Basic bWU6aHVudGVyMg=="

    /// Runs a TLS origin, a proxy in front of it, and a session that trusts the origin.
    private func withTunnel(
        _ settings: TestProxy.Settings = TestProxy.Settings(), origin options: OriginOptions = .tls(),
        credentials: ProxyCredentials? = nil,
        _ body: (TestOrigin, TestProxy, HTTPSession) async throws -> Void
    ) async throws {
        try await TestOrigin.withOrigin(options, handler: .fixed(.text("x"))) { origin in
            let proxy = try TestProxy(to: origin.port, settings)
            defer { proxy.close() }
            let session = try ProxyScene.session(proxy.port, credentials: credentials) {
                if let authority = origin.authorityPEM { $0.tls.trust = .only(.text(authority)) }
            }
            try await body(origin, proxy, session)
        }
    }

    @Test("CONNECT contains the target, User-Agent, Proxy-Authorization and no other fields")
    func head() async throws {
        try await withTunnel(credentials: secret) { origin, proxy, session in
            let exchange = try await session.get(
                "https://localhost:8443/path?query",
                headers: [.authorization: "Bearer t", .cookie: "a=b", .proxyAuthorization: "Basic mine"])
            #expect(exchange.text == "x")
            #expect(
                proxy.heads == [
                    "CONNECT localhost:8443 HTTP/1.1\r\nHost: localhost:8443\r\n"
                        + "User-Agent: Martlet/\(martletVersion)\r\nProxy-Authorization: \(basic)\r\n\r\n"
                ])
            let seen = try #require(origin.requests.first)
            #expect(seen.target == "/path?query")
            #expect(seen.headers.values(of: "Host") == ["localhost:8443"])
            #expect(seen.headers.values(of: "Authorization") == ["Bearer t"])
            #expect(seen.headers.values(of: "Proxy-Authorization").isEmpty)
            #expect(exchange.metrics.proxy == "http://127.0.0.1:\(proxy.port)")
            #expect(exchange.metrics.tunnel != nil && exchange.metrics.tls != nil)
            #expect(session.diagnostics.description.contains("through http://127.0.0.1:\(proxy.port)"))
        }
    }

    @Test("The default port is included, and an IPv6 address has brackets")
    func authority() async throws {
        try await withTunnel { origin, proxy, session in
            _ = try await session.get("https://localhost/")
            _ = try await session.get("https://[::1]/")
            #expect(proxy.targets == ["localhost:443", "[::1]:443"])
            #expect(proxy.heads[1].hasPrefix("CONNECT [::1]:443 HTTP/1.1\r\nHost: [::1]:443\r\n"))
        }
    }

    @Test("The server in the tunnel is verified by its own name, and its failure is not the proxy's")
    func verification() async throws {
        try await withTunnel { origin, proxy, session in
            let error = try await ProxyScene.failure(session, "https://other.test/")
            #expect(error.code == .tlsFailed && error.proxy == nil)
            guard case .nameMismatch = (error.underlying as? TLSError)?.kind else {
                Issue.record("\(error)")
                return
            }
            #expect(origin.requests.isEmpty)
        }
    }

    @Test("A tunnel is reused only for its server")
    func reuse() async throws {
        try await withTunnel { origin, proxy, session in
            for url in [
                "https://localhost/", "https://localhost/2", "https://127.0.0.1/", "https://localhost/3",
            ] {
                _ = try await session.get(url)
            }
            #expect(proxy.targets == ["localhost:443", "127.0.0.1:443"])
        }
    }

    @Test("A plain request can be tunnelled")
    func plain() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("x"))) { origin in
            let proxy = try TestProxy(to: origin.port)
            defer { proxy.close() }
            let server = try ProxyServer("127.0.0.1:\(proxy.port)").alwaysTunneling()
            let session = HTTPSession.own { $0.proxy = .server(server) }
            #expect(try await session.get("http://a.test/p").text == "x")
            #expect(proxy.targets == ["a.test:80"])
            #expect(origin.requests.map(\.target) == ["/p"])
        }
    }

    @Test("A connect override is sent to the proxy as the target")
    func redirection() async throws {
        try await withTunnel { origin, proxy, session in
            let view = session.with {
                $0.connectOverrides = [
                    ConnectOverride(fromHost: "localhost", toHost: "b.test", toPort: 9)
                ]
            }
            let text = try await view.get("https://localhost/").text
            #expect(text == "x")
            #expect(proxy.targets == ["b.test:9"])
        }
    }

    @Test("A plain request with a connect override is tunnelled to the new target")
    func plainRedirection() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("x"))) { origin in
            let proxy = try TestProxy(to: origin.port)
            defer { proxy.close() }
            let session = try ProxyScene.session(proxy.port) {
                $0.connectOverrides = [ConnectOverride(fromHost: "a.test", toHost: "b.test", toPort: 9)]
            }
            #expect(try await session.get("http://a.test/p").text == "x")
            #expect(proxy.targets == ["b.test:9"])
            #expect(origin.requests.map(\.target) == ["/p"])
        }
    }

    @Test("A server at the proxy's own address is reached through the proxy")
    func ownPlace() async throws {
        let inner = TestProxy.Settings(isSocks: true)
        try await TestOrigin.withOrigin(handler: .fixed(.text("x"))) { origin in
            let proxy = try TestProxy(to: origin.port, inner)
            defer { proxy.close() }
            let settings = try ProxySettings.socks5("127.0.0.1", port: proxy.port)
            let session = HTTPSession.own { $0.proxy = settings }
            #expect(try await session.get("http://127.0.0.1:\(proxy.port)/").text == "x")
            #expect(proxy.targets == ["127.0.0.1:\(proxy.port)"])
        }
        let (context, tls) = try ProxyScene.certificate()
        try await TestOrigin.withOrigin(.tls(), handler: .fixed(.text("x"))) { origin in
            let proxy = try TestProxy(to: origin.port, TestProxy.Settings(context: context))
            defer { proxy.close() }
            let settings = try ProxySettings.https("localhost:\(proxy.port)", tls: tls)
            let session = HTTPSession.trusting(origin) { $0.proxy = settings }
            #expect(try await session.get("https://localhost:\(proxy.port)/").text == "x")
            #expect(proxy.targets == ["localhost:\(proxy.port)"])
        }
    }

    @Test("A 2xx has no body despite its fields, and interim responses may come first")
    func announcedBody() async throws {
        for opening in [
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.0 200 OK\r\nConnection: close\r\n\r\n", "HTTP/1.1 204 None\r\n\r\n",
            "HTTP/1.1 299\r\n\r\n",
        ] {
            var settings = TestProxy.Settings()
            settings.opening = opening
            settings.preface = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nX: y\r\n\r\n"
            try await withTunnel(settings) { _, _, session in
                let text = try await session.get("https://localhost/").text
                #expect(text == "x")
                let isReused = try await session.get("https://localhost/").metrics.isConnectionReused
                #expect(isReused)
            }
        }
    }

    @Test(
        "Credentials are sent after a 407, on the same connection or the next", arguments: [false, true])
    func askedCredentials(closes: Bool) async throws {
        var settings = TestProxy.Settings()
        settings.authorization = basic
        settings.closesAfterRefusal = closes
        settings.challenges = ["Negotiate", "Digest realm=\"x\", Basic realm=\"p\""]
        let shy = ProxyCredentials(user: "me", password: "hunter2", sendsPreemptively: false)
        try await withTunnel(settings, credentials: shy) { _, proxy, session in
            let text = try await session.get("https://localhost/").text
            #expect(text == "x")
            #expect(proxy.heads.count == 2 && !proxy.heads[0].contains("Proxy-Authorization"))
            #expect(proxy.connectionCount == (closes ? 2 : 1))
        }
    }

    @Test("Rejected credentials are an error with the response after at most two attempts")
    func refusedCredentials() async throws {
        var settings = TestProxy.Settings()
        settings.authorization = "Basic other"
        let shy = ProxyCredentials(user: "me", password: "hunter2", sendsPreemptively: false)
        for (credentials, count) in [(shy, 2), (secret, 1), (nil, 1)] as [(ProxyCredentials?, Int)] {
            try await withTunnel(settings, credentials: credentials) { origin, proxy, session in
                let error = try await ProxyScene.failure(session, "https://localhost/")
                #expect(error.code == .proxyFailed && error.phase == .tunneling && !error.wasSent)
                #expect(error.isConnectFailure)
                #expect(error.proxy == "http://127.0.0.1:\(proxy.port)")
                let cause = try #require(error.underlying as? ProxyError)
                #expect(cause.kind == .rejected(status: 407) && cause.wantsCredentials)
                #expect(cause.response?.headerFields[.proxyAuthenticate] == "Basic realm=\"proxy\"")
                #expect(cause.body == Array("no way".utf8) && cause.isBodyComplete)
                #expect(proxy.heads.count == count)
                #expect(origin.connectionCount == 0)
                #expect(!"\(error)\(cause)".contains("hunter2"))
            }
        }
    }

    @Test("An authenticator that always replies differently is called once")
    func endlessAuthenticator() async throws {
        struct Eager: ProxyAuthenticator {
            let asked = Counter()
            func preemptiveValue(for request: ProxyAuthenticationRequest) -> String? { nil }
            func value(
                answering challenges: [String], rejected: String?, for request: ProxyAuthenticationRequest
            ) -> String? {
                asked.add()
                return "Other \(request.method) \(request.target) \(asked.count)"
            }
        }
        var settings = TestProxy.Settings()
        settings.authorization = "never"
        let proxy = try TestProxy(to: 1, settings)
        defer { proxy.close() }
        var dial = DialSettings()
        let eager = Eager()
        dial.proxyAuthenticator = eager
        let pool = ConnectionPool(
            limits: PoolLimits(), wireLimits: WireLimits(), loop: EventLoop.sharedOrStalled)
        defer { pool.shutDown() }
        let acquisition = try pool.acquire(
            Destination(isSecure: true, host: "a.test", port: 443),
            by: Dialer(settings: dial, loop: EventLoop.sharedOrStalled),
            through: try ProxyServer("me:x@127.0.0.1:\(proxy.port)"), ConnectionPool.Request())
        guard case .ticket(let ticket) = acquisition else {
            Issue.record("a connection out of nothing")
            return
        }
        await #expect(throws: ExchangeError.self) { _ = try await ticket.lease() }
        #expect(eager.asked.count == 1)
        #expect(proxy.heads.count == 2)
        #expect(proxy.heads[1].contains("Proxy-Authorization: Other CONNECT a.test:443 1\r\n"))
    }

    @Test("Tunnels with other credentials or through other proxies are not shared")
    func poolKey() async throws {
        try await withTunnel { origin, proxy, session in
            let address = "127.0.0.1:\(proxy.port)"
            let second = try TestProxy(to: origin.port)
            defer { second.close() }
            let views = [
                try ProxySettings.http(address), try .http("a:b@\(address)"), try .http("a:c@\(address)"),
                try .http("127.0.0.1:\(second.port)"),
                .server(try ProxyServer(address).alwaysTunneling()),
            ]
            for settings in views + views {
                _ = try await session.with { $0.proxy = settings }.get("https://localhost:\(origin.port)/")
            }
            #expect(proxy.connectionCount == 4 && second.connectionCount == 1)
            let direct = try await session.with { $0.proxy = .none }.get(
                "https://localhost:\(origin.port)/")
            #expect(!direct.metrics.isConnectionReused)
        }
    }

    @Test("A TLS session is resumed only with the same proxy setting")
    func tickets() async throws {
        try await withTunnel { origin, proxy, session in
            let view = session.with { $0.tls.usesSessionTickets = true }
            let url = "https://localhost:\(origin.port)/"
            var resumed: [Bool?] = []
            for settings in [nil, nil, ProxySettings.none, ProxySettings.none] {
                var options = RequestOptions()
                options.proxy = settings
                let exchange = try await view.get(url, headers: [.connection: "close"], options: options)
                resumed.append(exchange.metrics.connection?.tls?.isResumed)
            }
            #expect(resumed == [false, true, false, true])
        }
    }

    @Test("A Unix domain socket is used for connections with and without a proxy")
    func unixSocket() async throws {
        try await TestOrigin.withOrigin(
            .unix(path: "@martlet-proxy-\(UInt64.random(in: 0 ... .max))"), handler: .fixed(.text("x"))
        ) { origin in
            let session = try ProxyScene.session(1) { $0.unixSocketPath = origin.address }
            #expect(try await session.get("http://localhost/p").text == "x")
            #expect(origin.requests.map(\.target) == ["/p"])
        }
    }
}
