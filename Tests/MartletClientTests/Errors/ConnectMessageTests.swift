import Martlet
import MartletTesting
import Testing

@Suite("Messages of connection failures", .timeLimit(.minutes(20)))
struct ConnectMessageTests {
    private struct Names: Resolver {
        var addresses: [String] = []

        func addresses(of host: String, port: Int) async throws(ResolutionError) -> [SocketAddress] {
            if addresses.isEmpty { throw ResolutionError(host: host, message: "the name is not known") }
            return addresses.compactMap { SocketAddress(literal: $0, port: port) }
        }
    }

    private func message(_ url: String, _ change: (inout SessionConfiguration) -> Void) async throws -> String {
        let session = HTTPSession.own {
            $0.proxy = .none
            change(&$0)
        }
        let error = try #require(await #expect(throws: HTTPError.self) { try await session.get(url) })
        return error.message
    }

    @Test("The message contains an unreachable address once, with a remedy")
    func refused() async throws {
        let port = try ClosedPort.shared.get().number
        let rows: [(String, [String], String)] = [
            (
                "http://127.0.0.1:\(port)/", [],
                "could not connect to 127.0.0.1 port \(port): connection refused"
            ),
            (
                "https://127.0.0.1:\(port)/", [],
                "could not connect to 127.0.0.1 port \(port): connection refused"
            ),
            (
                "http://name.example:\(port)/", ["127.0.0.1"],
                "could not connect to name.example port \(port): 127.0.0.1: connection refused"
            ),
            (
                "http://name.example:\(port)/", ["127.0.0.1", "127.0.0.2"],
                "could not connect to name.example port \(port): 127.0.0.1: connection refused; 127.0.0.2: connection refused"
            ),
        ]
        for (url, addresses, expected) in rows {
            let message = try await message(url) {
                if !addresses.isEmpty { $0.resolver = Names(addresses: addresses) }
            }
            #expect(message == "\(expected); check that it is running and listens on this port")
        }
    }

    @Test("The message contains an unreachable proxy once")
    func proxy() async throws {
        let port = try ClosedPort.shared.get().number
        for scheme in ["http", "https"] {
            let message = try await message("\(scheme)://a.test/") {
                $0.proxy = .server(ProxyServer(kind: .http, host: "127.0.0.1", port: port))
            }
            #expect(
                message
                    == "could not connect to the proxy http://127.0.0.1:\(port): connection refused; "
                    + "check that it is running and listens on this port")
        }
    }

    @Test("The message contains the path of a missing socket")
    func socket() async throws {
        let message = try await message("http://a.test/") { $0.unixSocketPath = "/nowhere/a.sock" }
        #expect(message == "could not connect to a.test port 80: /nowhere/a.sock: no such file or directory")
    }

    @Test("The message contains an unresolvable name of the server or proxy once")
    func names() async throws {
        let server = try await message("http://a.test/") { $0.resolver = Names() }
        #expect(
            server
                == "could not resolve a.test: the name is not known; check the name, and this machine's DNS")
        let proxy = try await message("http://a.test/") {
            $0.resolver = Names()
            $0.proxy = .server(ProxyServer(kind: .http, host: "proxy.test", port: 3128))
        }
        #expect(
            proxy
                == "could not resolve the proxy http://proxy.test:3128: the name is not known; "
                + "check the name, and this machine's DNS")
    }

    @Test("The message of a TLS failure contains the host once, with a remedy")
    func tls() async throws {
        try await TestOrigin.withOrigin(.tls(), handler: .fixed(.text("x"))) { origin in
            let url = "https://localhost:\(origin.port)/"
            let message = try await message(url) { $0.tls.trust = .system }
            #expect(message.components("localhost") == 1, "\(message)")
            #expect(message.contains("add"), "\(message)")
        }
    }
}

extension String {
    /// Returns the number of occurrences of a text.
    fileprivate func components(_ text: String) -> Int {
        var (count, rest) = (0, self[...])
        while let found = rest.firstRange(of: text) {
            count += 1
            rest = rest[found.upperBound...]
        }
        return count
    }
}
