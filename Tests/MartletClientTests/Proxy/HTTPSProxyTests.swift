import Martlet
import MartletTesting
import MartletTestSupport
import MartletTransport
import Testing

@Suite("HTTPS proxies", .timeLimit(.minutes(20)))
struct HTTPSProxyTests {
    /// Runs a TLS origin with a TLS proxy in front, each with its own authority.
    private func withProxy(
        handler: OriginHandler = .fixed(.text("x")), _ template: CertificateTemplate = .loopback,
        trustsProxy: Bool = true,
        _ body: (TestOrigin, TestProxy, HTTPSession) async throws -> Void
    ) async throws {
        try await TestOrigin.withOrigin(.tls(), handler: handler) { origin in
            let (context, tls) = try ProxyScene.certificate(template)
            var settings = TestProxy.Settings()
            settings.context = context
            let proxy = try TestProxy(to: origin.port, settings)
            defer { proxy.close() }
            let address = try ProxySettings.https(
                "localhost:\(proxy.port)", tls: trustsProxy ? tls : TLSSettings())
            let session = HTTPSession.trusting(origin) { $0.proxy = address }
            try await body(origin, proxy, session)
        }
    }

    @Test("TLS with the server runs inside of TLS with the proxy")
    func tunnel() async throws {
        try await withProxy { origin, proxy, session in
            for _ in 0..<3 {
                let text = try await session.get("https://localhost:\(origin.port)/").text
                #expect(text == "x")
            }
            #expect(proxy.targets == ["localhost:\(origin.port)"])
            #expect(session.poolStatus.opened == 1)
            await session.finishAndInvalidate()
            #expect(await eventually { OpenSockets.count(toPort: proxy.port) == 0 })
        }
    }

    @Test("Megabytes pass in both directions through both TLS layers")
    func large() async throws {
        let echo = OriginHandler { request in
            .bytes(try await ProxyScene.collect(request))
        }
        try await withProxy(handler: echo) { origin, _, session in
            let body = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
            let exchange = try await session.post("https://localhost:\(origin.port)/", body: .bytes(body))
            #expect(exchange.body == body)
            #expect(exchange.metrics.sentByteCount > UInt64(body.count))
        }
    }

    @Test("Plain requests are forwarded inside of TLS with the proxy")
    func forwarding() async throws {
        try await TestOrigin.withOrigin(.tls(), handler: .fixed(.text("x"))) { proxy in
            let tls = TLSSettings(trust: .only(.text(proxy.authorityPEM ?? "")))
            let settings = try ProxySettings.https("me:p@localhost:\(proxy.port)", tls: tls)
            let session = HTTPSession.own { $0.proxy = settings }
            #expect(try await session.get("http://a.test/p").text == "x")
            #expect(proxy.requests.map(\.target) == ["http://a.test/p"])
            #expect(proxy.requests[0].headers.values(of: "Proxy-Authorization") == ["Basic bWU6cA=="])
        }
    }

    @Test("The proxy is verified with its own trust and not with the session's")
    func proxyTrust() async throws {
        try await withProxy(trustsProxy: false) { origin, proxy, session in
            let error = try await ProxyScene.failure(session, "https://localhost:\(origin.port)/")
            #expect(error.code == .tlsFailed)
            #expect(error.proxy == "https://localhost:\(proxy.port)")
            #expect(proxy.heads.isEmpty && origin.connectionCount == 0)
        }
    }

    @Test("A proxy with a certificate for another name receives no request")
    func proxyName() async throws {
        try await withProxy(
            CertificateTemplate(commonName: "other", hostNames: ["other.test"])
        ) { origin, proxy, session in
            let error = try await ProxyScene.failure(session, "https://localhost:\(origin.port)/")
            #expect(error.code == .tlsFailed && error.proxy != nil)
            guard case .nameMismatch(["other.test"]) = (error.underlying as? TLSError)?.kind else {
                Issue.record("\(error)")
                return
            }
            #expect(proxy.heads.isEmpty)
        }
    }

    @Test("The server is verified with the session's trust and not with the proxy's")
    func originTrust() async throws {
        try await withProxy { origin, proxy, session in
            let view = session.with { $0.tls.trust = .system }
            let error = try await ProxyScene.failure(view, "https://localhost:\(origin.port)/")
            #expect(error.code == .tlsFailed && error.proxy == nil)
            #expect(proxy.heads.count == 1 && origin.requests.isEmpty)
        }
    }

    @Test("A proxy without TLS is reported as such")
    func plainProxy() async throws {
        let proxy = try TestProxy(to: 1)
        defer { proxy.close() }
        let settings = try ProxySettings.https("localhost:\(proxy.port)")
        // The proxy reads the ClientHello as an incomplete head, so both sides wait until the timeout expires.
        try await withEnoughTime(from: .seconds(1)) { connect in
            let session = HTTPSession.own {
                $0.proxy = settings
                $0.timeouts.connect = connect
            }
            let error = try await ProxyScene.failure(session, "https://a.test/")
            if error.timeout == .connect, error.phase.precedes(.tlsHandshake) { return false }
            #expect([.tlsFailed, .timedOut, .connectFailed].contains(error.code))
            #expect(error.proxy == "https://localhost:\(proxy.port)")
            return true
        }
    }
}
