import FoundationEssentials
import Martlet
import MartletTesting
import Testing

@Suite("Connection targets")
struct PlaceTests {
    @Test("With a Unix domain socket path, requests for any host use that socket")
    func unixSocket() async throws {
        let path =
            FileManager.default.temporaryDirectory.path + "/martlet-\(UUID().uuidString.prefix(8)).sock"
        try await TestOrigin.withOrigin(.unix(path: path)) { request in
            .text("\(request.headers["Host"] ?? "") \(request.path)")
        } run: { origin in
            let session = HTTPSession.own { $0.unixSocketPath = path }
            let exchange = try await session.get("http://name.example/things")
            #expect(exchange.text == "name.example /things")
            #expect(try await session.get("http://name.example/").metrics.isConnectionReused)
        }
        let error = try #require(
            await #expect(throws: HTTPError.self) {
                try await HTTPSession.own { $0.unixSocketPath = path }.get("http://name.example/")
            })
        #expect(error.code == .connectFailed)
        #expect(error.connectErrors.first?.address == path)
    }

    @Test("A Unix domain socket may be in the abstract namespace")
    func abstractSocket() async throws {
        let path = "@martlet-\(UUID().uuidString)"
        try await TestOrigin.withOrigin(.unix(path: path), handler: .fixed(.text("ok"))) { _ in
            let session = HTTPSession.own { $0.unixSocketPath = path }
            let exchange = try await session.get("http://name.example/")
            #expect(exchange.text == "ok")
        }
    }

    @Test("A socket path that is too long is an error")
    func longPath() async throws {
        let session = HTTPSession.own { $0.unixSocketPath = String(repeating: "x", count: 200) }
        let error = try #require(
            await #expect(throws: HTTPError.self) { try await session.get("http://name.example/") })
        #expect(error.code == .resolutionFailed)
    }

    @Test("A resolve override replaces the lookup for exactly its host and port")
    func override() async throws {
        try await TestOrigin.withOrigin { request in
            .text(request.headers["Host"] ?? "")
        } run: { origin in
            let address = try #require(SocketAddress(literal: "127.0.0.1", port: origin.port))
            let session = HTTPSession.own { configuration in
                configuration.resolver = ListResolver()
                configuration.resolveOverrides[Endpoint(host: "name.example", port: 80)] = [address]
            }
            #expect(try await session.get("http://name.example/").text == "name.example")
            await #expect(throws: HTTPError.self) { try await session.get("http://name.example:8080/") }
            await #expect(throws: HTTPError.self) { try await session.get("http://other.example/") }
        }
    }

    @Test("A resolve override for any host applies to its port only")
    func overrideForAll() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("ok"))) { origin in
            let address = try #require(SocketAddress(literal: "127.0.0.1", port: origin.port))
            let session = HTTPSession.own { configuration in
                configuration.resolver = ListResolver()
                configuration.resolveOverrides[Endpoint(host: "*", port: 80)] = [address]
            }
            for name in ["name", "other"] {
                let exchange = try await session.get("http://\(name).example/")
                #expect(exchange.text == "ok")
            }
        }
    }

    @Test("A connect override changes the host and port, but not the Host field and the TLS server name")
    func redirection() async throws {
        try await TestOrigin.withOrigin(.tls()) { request in
            .text("\(request.headers["Host"] ?? "") \(request.connection.serverName ?? "")")
        } run: { origin in
            let session = HTTPSession.trusting(origin) { configuration in
                configuration.connectOverrides = [
                    ConnectOverride(fromHost: "other.example", toHost: "127.0.0.2", toPort: 1),
                    ConnectOverride(
                        fromHost: "localhost", fromPort: 443, toHost: "127.0.0.1", toPort: origin.port),
                ]
            }
            let exchange = try await session.get("https://localhost/")
            #expect(exchange.text == "localhost localhost")
        }
    }

    @Test("Connections use the configured local address")
    func localAddress() async throws {
        try await TestOrigin.withOrigin { request in
            .text(request.connection.remoteAddress)
        } run: { origin in
            let session = HTTPSession.own { $0.socketOptions.localAddress = "127.0.0.9" }
            let exchange = try await session.get(origin.url())
            #expect(exchange.text.hasPrefix("127.0.0.9:"))
            #expect(exchange.metrics.connection?.localAddress == exchange.text)
        }
    }

    @Test("A local address of another address family is a connect failure")
    func wrongFamily() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("x"))) { origin in
            let session = HTTPSession.own { $0.socketOptions.localAddress = "::1" }
            let error = try #require(
                await #expect(throws: HTTPError.self) { try await session.get(origin.url()) })
            #expect(error.code == .connectFailed)
            #expect(origin.connectionCount == 0)
        }
    }

    @Test("Requests succeed with Nagle's algorithm on and keep-alive probes off")
    func otherOptions() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("ok"))) { origin in
            let session = HTTPSession.own { configuration in
                configuration.socketOptions.tcpNoDelay = false
                configuration.socketOptions.keepAliveInterval = nil
            }
            let exchange = try await session.get(origin.url())
            #expect(exchange.text == "ok")
        }
    }
}
