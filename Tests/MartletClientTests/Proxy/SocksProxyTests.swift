import Martlet
import MartletTesting
import MartletTransport
import Testing

@Suite("SOCKS5 proxies", .timeLimit(.minutes(20)))
struct SocksProxyTests {
    private func withProxy(
        _ change: (inout TestProxy.Settings) -> Void = { _ in }, origin options: OriginOptions = .plain,
        credentials: ProxyCredentials? = nil, names: ProxyNameResolution = .resolvedRemotely,
        resolver: any Resolver = ProxyScene.NoNames(),
        _ body: (TestOrigin, TestProxy, HTTPSession) async throws -> Void
    ) async throws {
        try await TestOrigin.withOrigin(options, handler: .fixed(.text("x"))) { origin in
            var settings = TestProxy.Settings()
            settings.isSocks = true
            change(&settings)
            let proxy = try TestProxy(to: origin.port, settings)
            defer { proxy.close() }
            let address = try ProxySettings.socks5(
                "127.0.0.1", port: proxy.port, credentials: credentials, names: names)
            let session = HTTPSession.trusting(origin) {
                $0.proxy = address
                $0.resolver = resolver
            }
            try await body(origin, proxy, session)
        }
    }

    @Test("Names are sent to the proxy and never resolved locally")
    func remoteNames() async throws {
        try await withProxy { origin, proxy, session in
            let exchange = try await session.get("http://a.test/p")
            #expect(exchange.text == "x")
            #expect(exchange.metrics.proxy == "socks5h://127.0.0.1:\(proxy.port)")
            #expect(proxy.targets == ["a.test:80"])
            #expect(origin.requests.map(\.target) == ["/p"])
            #expect(origin.requests[0].headers.values(of: "Host") == ["a.test"])
        }
    }

    @Test("Locally resolved names are sent as addresses, one after the other, in the order of direct connections")
    func localNames() async throws {
        let resolver = ListResolver(("192.0.2.1", 80), ("2001:db8::1", 80), ("192.0.2.3", 80))
        try await withProxy({ $0.socksCodes = [5, 4, 0] }, names: .resolvedLocally, resolver: resolver) {
            _, proxy, session in
            let text = try await session.get("http://a.test/").text
            #expect(text == "x")
            #expect(proxy.targets.count == 3)
            #expect(proxy.targets.dropFirst() == ["192.0.2.1:80", "192.0.2.3:80"])
        }
    }

    @Test("A rejection that another address cannot fix fails the call immediately")
    func finalRefusal() async throws {
        let resolver = ListResolver(("192.0.2.1", 80), ("192.0.2.2", 80))
        try await withProxy({ $0.socksCodes = [2, 0] }, names: .resolvedLocally, resolver: resolver) {
            _, proxy, session in
            let error = try await ProxyScene.failure(session, "http://a.test/")
            #expect((error.underlying as? ProxyError)?.kind == .socksRejected(code: 2))
            #expect(proxy.targets.count == 1)
        }
    }

    @Test("A name that cannot be resolved locally is the server's failure")
    func unresolved() async throws {
        try await withProxy(names: .resolvedLocally) { _, proxy, session in
            let error = try await ProxyScene.failure(session, "http://a.test/")
            #expect(error.code == .resolutionFailed && error.proxy == nil)
            #expect(proxy.connectionCount == 0)
        }
    }

    @Test("TLS runs through the tunnel and is verified for the server", arguments: [true, false])
    func secure(isRight: Bool) async throws {
        try await withProxy(origin: .tls()) { origin, proxy, session in
            if isRight {
                #expect(try await session.get("https://localhost/").text == "x")
                #expect(proxy.targets == ["localhost:443"])
            } else {
                let error = try await ProxyScene.failure(session, "https://other.test/")
                #expect(error.code == .tlsFailed && error.proxy == nil)
            }
        }
    }

    @Test("User name and password authenticate the client")
    func credentials() async throws {
        try await withProxy(
            { $0.user = ("me", "hunter2") }, credentials: ProxyCredentials(user: "me", password: "hunter2")
        ) { origin, proxy, session in
            let text = try await session.get("http://a.test/").text
            #expect(text == "x")
            #expect(proxy.told == ["me:hunter2"])
            #expect(origin.requests[0].headers.values(of: "Proxy-Authorization").isEmpty)
        }
    }

    @Test("Wrong and missing credentials are reported as such")
    func refusedCredentials() async throws {
        for credentials in [ProxyCredentials(user: "me", password: "wrong"), nil] {
            try await withProxy({ $0.user = ("me", "hunter2") }, credentials: credentials) {
                _, proxy, session in
                let error = try await ProxyScene.failure(session, "http://a.test/")
                #expect(error.code == .proxyFailed && error.phase == .tunneling)
                let cause = try #require(error.underlying as? ProxyError)
                #expect(cause.kind == .socksCredentialsRejected && cause.wantsCredentials)
                #expect(!error.description.contains("wrong"))
            }
        }
    }

    @Test("A long name is rejected before anything is sent")
    func longName() async throws {
        try await withProxy { _, proxy, session in
            let label = String(repeating: "a", count: 63)
            let name = Array(repeating: label, count: 3).joined(separator: ".") + ".aaaaaaaaaa"
            #expect(try await session.get("http://\(name)/").text == "x")
            let user = ProxyCredentials(user: String(repeating: "u", count: 256), password: "")
            let settings = try ProxySettings.socks5("127.0.0.1", port: proxy.port, credentials: user)
            let view = session.with { $0.proxy = settings }
            let error = try await ProxyScene.failure(view, "http://a.test/")
            #expect((error.underlying as? ProxyError)?.kind == .unsendable)
            #expect(proxy.connectionCount == 1)
        }
    }

    @Test("Connections of different users are not shared")
    func poolKey() async throws {
        try await withProxy { _, proxy, session in
            var views: [ProxySettings] = []
            for user in ["", "a:b@", "a:c@"] {
                views.append(try .url("socks5h://\(user)127.0.0.1:\(proxy.port)"))
            }
            for settings in views + views {
                var options = RequestOptions()
                options.proxy = settings
                _ = try await session.get("http://a.test/", options: options)
            }
            #expect(proxy.connectionCount == 3)
        }
    }
}
