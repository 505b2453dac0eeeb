@testable import MartletURL
import Martlet
import MartletTesting
import MartletTestSupport
import MartletTransport
import Testing

@testable import MartletCaching
@testable import MartletCore
@testable import MartletHosts

@Suite("Cache keys and connection overrides")
struct CacheOverrideTests {
    private static func place(
        _ url: String, _ change: (inout SessionConfiguration) -> Void
    ) throws -> String? {
        var configuration = SessionConfiguration.default
        change(&configuration)
        return configuration.overriddenTarget(of: try HTTPURL(url))
    }

    @Test("Only overrides that apply to a URL change its cache key")
    func inForce() throws {
        let staging = ConnectOverride(fromHost: "a.example", fromPort: 80, toHost: "staging.example")
        let same = ConnectOverride(fromHost: "a.example", toHost: "a.example")
        let address = try #require(SocketAddress(literal: "192.0.2.1", port: 80))
        let every = [Endpoint(host: "*", port: 80): [address]]
        let one = [Endpoint(host: "a.example", port: 80): [address]]
        let moved = [Endpoint(host: "staging.example", port: 80): [address]]
        let url = "http://a.example/x"
        #expect(try CacheOverrideTests.place(url) { _ in } == nil)
        #expect(try CacheOverrideTests.place(url) { $0.unixSocketPath = "/s" } == "unix /s")
        #expect(
            try CacheOverrideTests.place(url) { $0.connectOverrides = [staging] } == "staging.example 80")
        #expect(try CacheOverrideTests.place(url) { $0.connectOverrides = [same, staging] } == nil)
        #expect(
            try CacheOverrideTests.place("http://b.example/") { $0.connectOverrides = [staging] } == nil)
        #expect(
            try CacheOverrideTests.place("https://a.example/") { $0.connectOverrides = [staging] } == nil)
        for overrides in [every, one] {
            #expect(
                try CacheOverrideTests.place(url) { $0.resolveOverrides = overrides }
                    == "a.example 80 192.0.2.1:80")
        }
        #expect(try CacheOverrideTests.place("http://b.example/") { $0.resolveOverrides = one } == nil)
        #expect(try CacheOverrideTests.place("https://a.example/") { $0.resolveOverrides = every } == nil)
        #expect(try CacheOverrideTests.place(url) { $0.resolveOverrides = moved } == nil)
        let both = try CacheOverrideTests.place(url) {
            $0.connectOverrides = [staging]
            $0.resolveOverrides = moved
        }
        #expect(both == "staging.example 80 192.0.2.1:80")
    }

    @Test("A response for a credential is not served to others, even with overrides and a shared partition")
    func credentials() async throws {
        try await TestOrigin.withOrigin { request in
            CacheScene.answer(request.headers["Authorization"] ?? "nobody")
        } run: { origin async throws in
            let cache = ResponseCache.memoryOnly(options: .withoutPressure)
            let session = HTTPSession.own { configuration in
                configuration.cache = cache
                configuration.cachePartition = ""
                configuration.connectOverrides = [
                    ConnectOverride(toHost: "127.0.0.1", toPort: origin.port)
                ]
            }
            for credential in ["Bearer alice", "Bearer bob", nil] {
                let fields = credential.map { CacheScene.fields(("Authorization", $0)) } ?? HTTPHeaders()
                let exchange = try await session.get("http://name.example/", headers: fields)
                #expect(exchange.text == credential ?? "nobody")
            }
        }
    }

    @Test(
        "Two servers for the same URL share no stored responses, and each serves its own again",
        arguments: [true, false])
    func twoServers(hasSockets: Bool) async throws {
        func options() -> OriginOptions {
            hasSockets ? .unix(path: "@martlet-place-\(UInt64.random(in: 0 ... .max))") : .plain
        }
        try await TestOrigin.withOrigin(options()) { _ in
            CacheScene.answer("one")
        } run: { one async throws in
            try await TestOrigin.withOrigin(options()) { _ in
                CacheScene.answer("two")
            } run: { two async throws in
                let cache = ResponseCache.memoryOnly(options: .withoutPressure)
                func get(_ origin: TestOrigin) async throws -> HTTPExchange {
                    let session = HTTPSession.own { configuration in
                        configuration.cache = cache
                        if hasSockets {
                            configuration.unixSocketPath = origin.address
                        } else {
                            configuration.connectOverrides = [
                                ConnectOverride(toHost: "127.0.0.1", toPort: origin.port)
                            ]
                        }
                    }
                    return try await session.get("http://name.example/")
                }
                #expect(try await get(one).text == "one")
                #expect(try await get(two).text == "two")
                for (origin, text) in [(one, "one"), (two, "two")] {
                    let again = try await get(origin)
                    #expect(again.source == .cache && again.text == text)
                }
            }
        }
    }
}
