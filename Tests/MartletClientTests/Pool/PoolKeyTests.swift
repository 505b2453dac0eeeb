import Martlet
import MartletTesting
import Testing

@Suite("Separation of connections")
struct PoolKeyTests {
    /// Sends two requests, the second one through a view, and returns the number of connections.
    private func connections(
        _ options: OriginOptions = .plain, _ change: (TestOrigin, inout SessionConfiguration) -> Void
    ) async throws -> Int {
        try await TestOrigin.withOrigin(options, handler: .fixed(.text("x"))) { origin in
            let session = HTTPSession.trusting(origin)
            _ = try await session.get(origin.url())
            _ = try await session.with { change(origin, &$0) }.get(origin.url())
            return origin.connectionCount
        }
    }

    @Test("A view with other timeouts, fields and limits shares connections")
    func sharing() async throws {
        let count = try await connections { _, configuration in
            configuration.timeouts.total = TestTimeouts.long
            configuration.userAgent = "other"
            configuration.bufferedBodyLimit = .kibibytes(1)
        }
        #expect(count == 1)
    }

    @Test("A view with other trust has separate connections")
    func trust() async throws {
        let count = try await connections(.tls()) { origin, configuration in
            configuration.tls.trust = configuration.tls.trust.adding(.text(origin.authorityPEM ?? ""))
        }
        #expect(count == 2)
    }

    @Test("A view without verification has separate connections")
    func verification() async throws {
        let count = try await connections(.tls()) { _, configuration in
            configuration.tls.trust = .dangerouslyAcceptingAnyCertificate
        }
        #expect(count == 2)
    }

    @Test("Connections of a session without verification are not used by a view that verifies")
    func insecureFirst() async throws {
        try await TestOrigin.withOrigin(.tls(.unknownAuthority), handler: .fixed(.text("x"))) { origin in
            let session = HTTPSession.own { $0.tls.trust = .dangerouslyAcceptingAnyCertificate }
            _ = try await session.get(origin.url())
            let checking = session.with { $0.tls.trust = .only(.text(origin.authorityPEM ?? "")) }
            let error = try #require(
                await #expect(throws: HTTPError.self) { try await checking.get(origin.url()) })
            #expect(error.code == .tlsFailed)
            #expect(try await session.get(origin.url()).metrics.isConnectionReused)
        }
    }

    @Test("A view with a client certificate has separate connections")
    func identity() async throws {
        let count = try await connections(.tls()) { origin, configuration in
            guard let identity = origin.credentials?.clientIdentity else { return }
            configuration.tls.identity = TLSIdentity(
                certificateChain: .text(identity.certificatePEM), privateKey: .text(identity.privateKeyPEM))
        }
        #expect(count == 2)
    }

    @Test("A view with its own connect overrides has separate connections")
    func overrides() async throws {
        let count = try await connections { origin, configuration in
            configuration.resolveOverrides[Endpoint(host: "else.example", port: 80)] = []
        }
        #expect(count == 2)
    }

    @Test("A view with other socket options has separate connections")
    func socketOptions() async throws {
        let count = try await connections { _, configuration in
            configuration.socketOptions.localAddress = "127.0.0.1"
        }
        #expect(count == 2)
    }

    @Test("Two names of one address do not share connections")
    func names() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("x"))) { origin in
            let session = HTTPSession.own { $0.resolver = ListResolver(("127.0.0.1", origin.port)) }
            _ = try await session.get("http://one.example:\(origin.port)/")
            _ = try await session.get("http://two.example:\(origin.port)/")
            _ = try await session.get("http://ONE.example:\(origin.port)/")
            #expect(origin.connectionCount == 2)
        }
    }

    @Test("http and https to one port do not share connections")
    func schemes() async throws {
        let script = ServerScript(.expectRequestHead, .sendOK, .awaitClose)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let session = HTTPSession.own()
            _ = try await session.get(origin.url())
            let call = Task { try await session.get("https://127.0.0.1:\(origin.port)/") }
            try await origin.recorder.waitForConnections(count: 2)
            call.cancel()
            await #expect(throws: CancellationError.self) { try await call.value }
        }
    }
}
