import FoundationEssentials
import Martlet
import MartletTesting
import Testing

@Suite("Where connections lead")
struct PlaceTests {
    @Test("A unix domain socket takes the place of the network")
    func unixSocket() async throws {
        let path =
            FileManager.default.temporaryDirectory.path + "/martlet-\(UUID().uuidString.prefix(8)).sock"
        try await TestOrigin.withOrigin(.unix(path: path)) { request in
            .text("\(request.fields["Host"] ?? "") \(request.path)")
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
        #expect(error.connectFailures.first?.address == path)
    }

    @Test("A unix domain socket may be in the abstract space")
    func abstractSocket() async throws {
        let path = "@martlet-\(UUID().uuidString)"
        try await TestOrigin.withOrigin(.unix(path: path), handler: .fixed(.text("ok"))) { _ in
            let session = HTTPSession.own { $0.unixSocketPath = path }
            let exchange = try await session.get("http://name.example/")
            #expect(exchange.text == "ok")
        }
    }

    @Test("A path too long for a socket is an error")
    func longPath() async throws {
        let session = HTTPSession.own { $0.unixSocketPath = String(repeating: "x", count: 200) }
        let error = try #require(
            await #expect(throws: HTTPError.self) { try await session.get("http://name.example/") })
        #expect(error.code == .resolutionFailed)
    }

    @Test("An override takes the place of a look-up for its host and port alone")
    func override() async throws {
        try await TestOrigin.withOrigin { request in
            .text(request.fields["Host"] ?? "")
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

    @Test("An override for any host goes by the port")
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

    @Test("A redirection connects elsewhere, and the names stay, in TLS too")
    func redirection() async throws {
        try await TestOrigin.withOrigin(.tls()) { request in
            .text("\(request.fields["Host"] ?? "") \(request.connection.serverName ?? "")")
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

    @Test("Connections come from the local address that is set")
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

    @Test("A local address of another family is a connect failure")
    func wrongFamily() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("x"))) { origin in
            let session = HTTPSession.own { $0.socketOptions.localAddress = "::1" }
            let error = try #require(
                await #expect(throws: HTTPError.self) { try await session.get(origin.url()) })
            #expect(error.code == .connectFailed)
            #expect(origin.connectionCount == 0)
        }
    }

    @Test("Small writes may wait and probes may be off: the options change nothing else")
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
