import Martlet
import Testing

@Suite("Third-party proxies", .timeLimit(.minutes(20)))
struct RealProxyTests {
    private let user = ProxyCredentials(user: "me", password: "hunter2")

    private func session(
        _ proxy: ProxySettings, _ certificates: Certificates
    ) -> HTTPSession {
        .trusting(certificates) { $0.proxy = proxy }
    }

    /// Fetches a plaintext and a TLS URL twice each, and a megabyte from each.
    private func exercise(
        _ proxy: ProxySettings, _ nginx: NginxServer, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> HTTPSession {
        let session = session(proxy, nginx.certificates)
        for (port, scheme) in [(nginx.plainPort, "http"), (nginx.tlsPort, "https")] {
            for _ in 0..<2 {
                let hello = try await session.get(nginx.url(port, "/hello.txt", scheme: scheme))
                #expect(hello.text == Site.hello, sourceLocation: sourceLocation)
                #expect(hello.metrics.proxy != nil, sourceLocation: sourceLocation)
            }
            let bytes = try await session.get(nginx.url(port, "/bytes.bin", scheme: scheme))
            #expect(bytes.body == Site.bytes, sourceLocation: sourceLocation)
        }
        return session
    }

    @Test("Squid receives plain requests and CONNECT requests")
    func squid() async throws {
        try await NginxServer.withServer { nginx in
            try await SquidProxy.withServer { squid in
                let session = try await exercise(.http("127.0.0.1:\(squid.openPort)"), nginx)
                // One connection for plain requests, one for the tunnel.
                #expect(session.poolStatus.opened == 2)
            }
        }
    }

    @Test("Squid accepts Basic, preemptively and after a challenge")
    func squidBasic() async throws {
        try await NginxServer.withServer { nginx in
            try await SquidProxy.withServer { squid in
                let shy = ProxyCredentials(user: "me", password: "hunter2", sendsPreemptively: false)
                for credentials in [user, shy] {
                    _ = try await exercise(
                        .http("127.0.0.1:\(squid.basicPort)", credentials: credentials), nginx)
                }
            }
        }
    }

    @Test("Squid accepts Digest after one challenge; its nonce serves the later calls")
    func squidDigest() async throws {
        try await NginxServer.withServer { nginx in
            try await SquidProxy.withServer { squid in
                let shy = ProxyCredentials(user: "me", password: "hunter2", sendsPreemptively: false)
                let session = try await exercise(
                    .http("127.0.0.1:\(squid.digestPort)", credentials: shy), nginx)
                let url = nginx.url(nginx.plainPort, "/hello.txt")
                let attempts = try await session.get(url).metrics.attempts
                #expect(attempts == 1)
                let wrong = ProxyCredentials(user: "me", password: "swordfish", sendsPreemptively: false)
                let other = self.session(
                    try .http("127.0.0.1:\(squid.digestPort)", credentials: wrong), nginx.certificates)
                let rejected = try await other.get(url)
                #expect(rejected.response.status.code == 407)
                #expect(rejected.metrics.attempts == 2)
            }
        }
    }

    @Test("Squid rejects a wrong password: a response for plain requests, an error for tunnels")
    func squidRejection() async throws {
        try await NginxServer.withServer { nginx in
            try await SquidProxy.withServer { squid in
                let wrong = ProxyCredentials(user: "me", password: "swordfish")
                let session = session(
                    try .http("127.0.0.1:\(squid.basicPort)", credentials: wrong), nginx.certificates)
                let plain = try await session.get(nginx.url(nginx.plainPort, "/hello.txt"))
                #expect(plain.response.status.code == 407)
                let url = nginx.url(nginx.tlsPort, "/hello.txt", scheme: "https")
                let error = try #require(
                    await #expect(throws: HTTPError.self) { try await session.get(url) })
                #expect(error.code == .proxyFailed && error.phase == .tunneling)
                let cause = try #require(error.underlying as? ProxyError)
                #expect(cause.wantsCredentials)
                #expect(cause.response?.headerFields[.proxyAuthenticate] == "Basic realm=\"nest\"")
                #expect(String(decoding: cause.body, as: UTF8.self).contains("ERR_CACHE_ACCESS_DENIED"))
            }
        }
    }

    @Test("A TLS connection to Squid carries TLS to the origin")
    func squidOverTLS() async throws {
        try await NginxServer.withServer { nginx in
            try await SquidProxy.withServer { squid in
                let tls = TLSSettings(trust: .only(.file(squid.certificates.authority)))
                _ = try await exercise(.https("localhost:\(squid.tlsPort)", tls: tls), nginx)
            }
        }
    }

    @Test("Squid reports why it cannot reach a server")
    func unreachable() async throws {
        try await SquidProxy.withServer { squid in
            let session = session(try .http("127.0.0.1:\(squid.openPort)"), squid.certificates)
            let error = try #require(
                await #expect(throws: HTTPError.self) { try await session.get("https://127.0.0.1:1/") })
            let cause = try #require(error.underlying as? ProxyError)
            #expect(cause.kind == .rejected(status: 503))
            #expect(!cause.body.isEmpty && cause.isBodyComplete)
        }
    }

    @Test("Tinyproxy accepts Basic, and closes after each response")
    func tinyproxy() async throws {
        try await NginxServer.withServer { nginx in
            try await TinyProxy.withServer { proxy in
                _ = try await exercise(.http("127.0.0.1:\(proxy.port)", credentials: user), nginx)
                let shy = ProxyCredentials(user: "me", password: "hunter2", sendsPreemptively: false)
                _ = try await exercise(.http("127.0.0.1:\(proxy.port)", credentials: shy), nginx)
                let session = session(try .http("127.0.0.1:\(proxy.port)"), nginx.certificates)
                let url = nginx.url(nginx.tlsPort, "/hello.txt", scheme: "https")
                let error = await #expect(throws: HTTPError.self) { try await session.get(url) }
                #expect((error?.underlying as? ProxyError)?.wantsCredentials == true)
            }
        }
    }

    @Test(
        "Microsocks leads to names and addresses",
        arguments: [ProxyNameResolution.resolvedLocally, .resolvedRemotely])
    func microsocks(_ names: ProxyNameResolution) async throws {
        try await NginxServer.withServer { nginx in
            try await MicroSocks.withServer { proxy in
                _ = try await exercise(
                    .socks5("127.0.0.1", port: Int(proxy.port), names: names), nginx)
                let session = session(
                    try .socks5("127.0.0.1", port: Int(proxy.port), names: names), nginx.certificates)
                let error = try #require(
                    await #expect(throws: HTTPError.self) { try await session.get("http://127.0.0.1:1/") })
                #expect((error.underlying as? ProxyError)?.kind == .socksRejected(code: 5))
            }
        }
    }

    @Test("Microsocks accepts only the right user")
    func microsocksUser() async throws {
        try await NginxServer.withServer { nginx in
            try await MicroSocks.withServer(demandsUser: true) { proxy in
                _ = try await exercise(
                    .socks5("127.0.0.1", port: Int(proxy.port), credentials: user), nginx)
                for wrong in [ProxyCredentials(user: "me", password: "swordfish"), nil] {
                    let session = session(
                        try .socks5("127.0.0.1", port: Int(proxy.port), credentials: wrong),
                        nginx.certificates)
                    let url = nginx.url(nginx.plainPort, "/hello.txt")
                    let error = await #expect(throws: HTTPError.self) { try await session.get(url) }
                    #expect((error?.underlying as? ProxyError)?.wantsCredentials == true)
                }
            }
        }
    }
}
