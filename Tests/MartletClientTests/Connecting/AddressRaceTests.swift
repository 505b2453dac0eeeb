import Martlet
import MartletTesting
import MartletTestSupport
import Testing

extension OneAtATime {
    @Suite("Hosts with several addresses")
    struct AddressRaceTests {
        /// Ports without a listener.
        private let closed: [ClosedPort]

        init() throws {
            closed = [try ClosedPort(), try ClosedPort()]
        }

        @Test("An address that refuses the connection is followed immediately by the next one")
        func rejected() async throws {
            let rejected = closed[0].number
            try await TestOrigin.withOrigin(handler: .fixed(.text("ok"))) { origin in
                let session = HTTPSession.own { configuration in
                    configuration.resolver = ListResolver(("127.0.0.1", rejected), ("127.0.0.1", origin.port))
                    configuration.happyEyeballs.attemptDelay = TestTimeouts.long
                }
                let exchange = try await session.get("http://name.example/")
                #expect(exchange.text == "ok")
                #expect(exchange.metrics.connection?.remoteAddress == origin.address)
            }
        }

        @Test("The next address is tried after 250 ms if an address does not respond")
        func silent() async throws {
            let hole = try await BlackHole()
            try await TestOrigin.withOrigin(handler: .fixed(.text("ok"))) { origin in
                let session = HTTPSession.own { configuration in
                    configuration.resolver = ListResolver(
                        ("127.0.0.1", hole.port), ("127.0.0.1", origin.port))
                }
                let start = ContinuousClock.now
                let exchange = try await session.get("http://name.example/")
                #expect(exchange.text == "ok")
                #expect(ContinuousClock.now - start >= .milliseconds(245))
                #expect(exchange.metrics.connection?.remoteAddress == origin.address)
                #expect(await eventually { OpenSockets.count(toPort: hole.port) <= 8 })
            }
            hole.close()
        }

        @Test("An address that refused the connection is tried last the next time")
        func remembered() async throws {
            let hole = try await BlackHole()
            try await TestOrigin.withOrigin(handler: .fixed(.text("ok"))) { origin async throws in
                let rejected = closed[0].number
                let session = HTTPSession.own { configuration in
                    configuration.resolver = ListResolver(
                        ("127.0.0.1", rejected), ("127.0.0.1", origin.port), ("127.0.0.1", hole.port))
                    configuration.happyEyeballs.attemptDelay = TestTimeouts.long
                    configuration.pool.idleConnectionsPerHost = 0
                }
                for _ in 1...2 { #expect(try await session.get("http://name.example/").text == "ok") }
                #expect(origin.connectionCount == 2)
            }
            hole.close()
        }

        // An earlier version recorded no address if the connect timeout ended a race of several addresses.
        @Test("An address that did not respond until the connect timeout is tried last the next time")
        func rememberedSilence() async throws {
            let hole = try await BlackHole()
            try await TestOrigin.withOrigin(handler: .fixed(.text("ok"))) { origin async throws in
                let session = HTTPSession.own { configuration in
                    configuration.resolver = ListResolver(("127.0.0.1", hole.port), ("127.0.0.1", origin.port))
                    configuration.happyEyeballs.attemptDelay = TestTimeouts.long
                }
                let options = RequestOptions { $0.timeouts.connect = .milliseconds(100) }
                let error = await #expect(throws: HTTPError.self) {
                    try await session.get("http://name.example/", options: options)
                }
                #expect(error?.timeout == .connect)
                #expect(origin.connectionCount == 0)
                let exchange = try await session.get("http://name.example/")
                #expect(exchange.metrics.connection?.remoteAddress == origin.address)
            }
            hole.close()
        }

        @Test("If an address sends garbage instead of a TLS handshake, the next address is tried")
        func garbage() async throws {
            let garbage = ServerScript(.send("SSH-2.0-OpenSSH_9.2\r\n"), .awaitClose)
            try await TestOrigin.withOrigin(scripts: garbage) { wrong in
                try await TestOrigin.withOrigin(.tls(), handler: .fixed(.text("ok"))) { origin in
                    let session = HTTPSession.trusting(origin) { configuration in
                        configuration.resolver = ListResolver(
                            ("127.0.0.1", wrong.port), ("127.0.0.1", origin.port))
                        configuration.happyEyeballs.attemptDelay = TestTimeouts.long
                    }
                    let exchange = try await session.get("https://localhost/")
                    #expect(exchange.text == "ok")
                    #expect(wrong.connectionCount == 1)
                    try await wrong.recorder.waitForOpenConnections(atMost: 0)
                }
            }
        }

        // An earlier version remembered only addresses that refused the connection.
        @Test("An address whose TLS handshake failed is tried last the next time")
        func rememberedHandshake() async throws {
            let garbage = ServerScript(.send("SSH-2.0-OpenSSH_9.2\r\n"), .awaitClose)
            try await TestOrigin.withOrigin(scripts: garbage) { wrong in
                try await TestOrigin.withOrigin(.tls(), handler: .fixed(.text("ok"))) { origin in
                    let session = HTTPSession.trusting(origin) { configuration in
                        configuration.resolver = ListResolver(
                            ("127.0.0.1", wrong.port), ("127.0.0.1", origin.port))
                        configuration.happyEyeballs.attemptDelay = TestTimeouts.long
                        configuration.pool.idleConnectionsPerHost = 0
                    }
                    let first = try await session.get("https://localhost/")
                    let second = try await session.get("https://localhost/")
                    #expect(first.text == "ok" && second.text == "ok")
                    #expect(wrong.connectionCount == 1)
                    #expect(origin.connectionCount == 2)
                }
            }
        }

        @Test("A rejected certificate ends the race without trying the other addresses")
        func certificate() async throws {
            try await TestOrigin.withOrigin(.tls(.expired), handler: .fixed(.text("x"))) { wrong in
                try await TestOrigin.withOrigin(.tls(), handler: .fixed(.text("ok"))) { origin in
                    let session = HTTPSession.own { configuration in
                        configuration.tls.trust = .only(
                            .text(wrong.authorityPEM ?? ""), .text(origin.authorityPEM ?? ""))
                        configuration.resolver = ListResolver(
                            ("127.0.0.1", wrong.port), ("127.0.0.1", origin.port))
                        configuration.happyEyeballs.attemptDelay = TestTimeouts.long
                    }
                    let error = try #require(
                        await #expect(throws: HTTPError.self) { try await session.get("https://localhost/") })
                    #expect(error.code == .tlsFailed)
                    #expect(error.phase == .tlsHandshake)
                    #expect(origin.connectionCount == 0)
                }
            }
        }

        @Test("If all addresses fail, the error contains each failure")
        func allFail() async throws {
            let ports = closed.map(\.number)
            let session = HTTPSession.own { configuration in
                configuration.resolver = ListResolver(("127.0.0.1", ports[0]), ("127.0.0.1", ports[1]))
            }
            let error = try #require(
                await #expect(throws: HTTPError.self) { try await session.get("http://name.example/") })
            #expect(error.code == .connectFailed)
            #expect(error.phase == .connecting)
            #expect(!error.wasSent)
            #expect(error.isConnectFailure)
            #expect(
                Set(error.connectErrors.map(\.address)) == Set(ports.map { "127.0.0.1:\($0)" }))
            // ECONNREFUSED
            #expect(error.connectErrors.allSatisfy { $0.error.code == 111 })
            for port in ports { #expect(error.message.contains("127.0.0.1:\(port)")) }
        }

        @Test("A failure of the resolver is reported as resolutionFailed with its cause")
        func unresolved() async throws {
            struct Failing: Resolver {
                func addresses(of host: String, port: Int) async throws(ResolutionError) -> [SocketAddress] {
                    throw ResolutionError(host: host, message: "unknown name")
                }
            }
            let session = HTTPSession.own { $0.resolver = Failing() }
            let error = try #require(
                await #expect(throws: HTTPError.self) { try await session.get("http://name.example/") })
            #expect(error.code == .resolutionFailed)
            #expect(error.phase == .resolving)
            #expect((error.underlying as? ResolutionError)?.message == "unknown name")
        }

        @Test("A resolver that returns no addresses is a connect failure")
        func noAddresses() async throws {
            let session = HTTPSession.own { $0.resolver = ListResolver() }
            let error = try #require(
                await #expect(throws: HTTPError.self) { try await session.get("http://name.example/") })
            #expect(error.isConnectFailure)
        }
    }
}
