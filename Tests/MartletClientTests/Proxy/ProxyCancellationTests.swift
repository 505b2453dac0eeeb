import Martlet
import MartletTesting
import MartletTestSupport
import MartletTransport
import Testing

extension OneAtATime {
    /// A call cancelled while its proxy delays it returns immediately and leaves no descriptor.
    @Suite("Cancellation while waiting for a proxy", .serialized)
    struct ProxyCancellationTests {
        /// The step at which the proxy delays the call.
        enum Point: String, CaseIterable, Sendable {
            case greeting, choice, reply, connectHead, halfHead, refusalBody, proxyTLS, tunnelTLS

            var isSocks: Bool { [.greeting, .choice, .reply].contains(self) }

            var script: ServerScript {
                let reached = ScriptStep.signal("reached")
                return switch self {
                case .greeting: ServerScript(.readBody(3), reached, .awaitClose)
                case .choice: ServerScript(.readBody(3), .send([5]), reached, .awaitClose)
                case .reply: ServerScript(.readBody(3), .send([5, 0, 5, 0, 0]), reached, .awaitClose)
                case .connectHead: ServerScript(.expectRequestHead, reached, .awaitClose)
                case .halfHead:
                    ServerScript(.expectRequestHead, .send("HTTP/1.1 200 OK\r\nX: "), reached, .awaitClose)
                case .refusalBody:
                    ServerScript(
                        .expectRequestHead, .send("HTTP/1.1 500 No\r\nContent-Length: 9\r\n\r\nabc"), reached,
                        .awaitClose)
                case .proxyTLS: ServerScript(reached, .awaitClose)
                case .tunnelTLS:
                    ServerScript(
                        .expectRequestHead, .send("HTTP/1.1 200 OK\r\n\r\n"), reached, .awaitClose)
                }
            }

            func settings(_ port: Int) throws -> ProxySettings {
                if isSocks { return try .socks5("127.0.0.1", port: port) }
                return self == .proxyTLS ? try .https("127.0.0.1:\(port)") : try .http("127.0.0.1:\(port)")
            }
        }

        @Test("Cancelling a call that waits for its proxy ends it immediately", arguments: Point.allCases)
        func cancelling(_ point: Point) async throws {
            try await TestOrigin.withOrigin(scripts: point.script) { proxy in
                let settings = try point.settings(proxy.port)
                let session = HTTPSession.own {
                    $0.proxy = settings
                    $0.timeouts.connect = nil
                }
                let task = Task { _ = try await session.get("https://a.test/") }
                try await proxy.signals.wait(for: "reached")
                let start = ContinuousClock.now
                task.cancel()
                await #expect(throws: CancellationError.self) { try await task.value }
                #expect(ContinuousClock.now - start < TestTimeouts.ending)
                #expect(await eventually { session.diagnostics.isIdle })
                #expect(await eventually { OpenSockets.count(toPort: proxy.port) == 0 })
                try await proxy.recorder.waitForOpenConnections(atMost: 0)
            }
        }

        @Test("Cancelling a call that waits for the lookup of its proxy ends it immediately")
        func lookUp() async throws {
            let resolver = GatedResolver()
            let session = HTTPSession.own {
                $0.proxy = .server(ProxyServer(kind: .http, host: "proxy.test", port: 1))
                $0.resolver = resolver
            }
            let task = Task { _ = try await session.get("https://a.test/") }
            #expect(await eventually { resolver.askedCount == 1 })
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            #expect(await eventually { session.diagnostics.isIdle })
        }

        @Test("Randomly cancelled tunnels leave nothing open")
        func random() async throws {
            try await TestOrigin.withOrigin(.tls(), handler: .fixed(.text("x"))) { origin in
                let proxy = try TestProxy(to: origin.port)
                defer { proxy.close() }
                let session = try ProxyScene.session(proxy.port) {
                    $0.tls.trust = .only(.text(origin.authorityPEM ?? ""))
                }
                var random = SplitMix64(state: 11)
                for _ in 0..<200 {
                    let task = Task {
                        try await session.get("https://localhost/", headers: [.connection: "close"]).text
                    }
                    let yields = random.next() % 400
                    for _ in 0..<yields { await Task.yield() }
                    task.cancel()
                    do {
                        #expect(try await task.value == "x")
                    } catch {
                        #expect(error is CancellationError)
                    }
                }
                #expect(await eventually { session.diagnostics.isIdle })
                await session.invalidateAndCancel()
                #expect(await eventually { OpenSockets.count(toPort: proxy.port) == 0 })
            }
        }
    }
}
