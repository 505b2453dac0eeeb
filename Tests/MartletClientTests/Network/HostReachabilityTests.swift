import MartletURL
import MartletCore
import MartletHosts
import MartletFeatureSettings
import MartletConditions
import MartletTesting
import MartletTransport
import Testing

@Suite("Reachability of a host")
struct HostReachabilityTests {
    private static let wifi = NetworkInterface(name: "wlan0", kind: .wifi)

    @Test("The route and network kind of an address or a domain decide its reachability")
    func byRoute() async throws {
        let manual = ManualNetworkPath(NetworkPath([Self.wifi]))
        for host in ["192.0.2.1", "2001:db8::1", "[2001:db8::1]", "api.example", "münchen.example"] {
            let sequence = try manual.monitor.reachability(
                ofHost: host, timeout: .seconds(600), resolver: ListResolver(("192.0.2.1", 443)))
            var iterator = sequence.makeAsyncIterator()
            let found = try #require(await iterator.next(isolation: nil))
            #expect(found.isReachable && !found.isProbed)
            #expect(found.interface == Self.wifi)
        }
    }

    @Test("A service reports whether its host is reachable, and reports each change")
    func ofHost() async throws {
        let manual = ManualNetworkPath(NetworkPath([Self.wifi]))
        let session = HTTPSession.own { configuration in
            configuration.networkMonitor = manual.monitor
            configuration.resolver = ListResolver(("192.0.2.1", 443))
        }
        let api = try session.host("https://api.example/v2")
        var iterator = api.reachability().makeAsyncIterator()
        #expect(await iterator.next(isolation: nil)?.status == .reachable)
        manual.set(.unsatisfied)
        #expect(await iterator.next(isolation: nil) == HostReachability(.unreachable))
        manual.set(.unknown)
        #expect(await iterator.next(isolation: nil) == HostReachability(.unknown))
    }

    @Test("The local machine is reachable without a network path")
    func loopback() async throws {
        let monitor = ManualNetworkPath(.unsatisfied).monitor
        let url = try HTTPURL("http://127.0.0.1:1/")
        #expect(await monitor.currentReachability(of: url).isReachable)
        // The kernel reports the loopback link as well.
        let found = await NetworkMonitor.system.currentReachability(of: url)
        #expect(found.status != .unreachable)
        if found.isReachable { #expect(found.interface?.kind == .loopback) }
    }

    @Test("A connection is attempted on request, and a refused one means unreachable")
    func probing() async throws {
        let monitor = ManualNetworkPath(.unknown).monitor
        try await TestOrigin.withOrigin { _ in
            .text("x")
        } run: { origin in
            let url = try HTTPURL("http://127.0.0.1:\(origin.port)/")
            let found = await monitor.currentReachability(
                of: url, probe: .connection, timeout: .seconds(600))
            #expect(found == HostReachability(.reachable, address: "127.0.0.1", isProbed: true))
        }
        let closed = await monitor.currentReachability(
            of: try HTTPURL(try ClosedPort.shared.get().url), probe: .connection, timeout: .seconds(600))
        #expect(closed == HostReachability(.unreachable, isProbed: true))
    }

    @Test("A name without addresses is unreachable, and an invalid name is rejected")
    func names() async throws {
        let monitor = ManualNetworkPath(NetworkPath([Self.wifi])).monitor
        let url = try HTTPURL("http://nowhere.example/")
        let found = await monitor.currentReachability(
            of: url, timeout: .seconds(600), resolver: ListResolver())
        #expect(found == HostReachability(.unreachable))
        #expect(throws: HTTPURL.ParseError.self) { try monitor.reachability(ofHost: "a b") }
        #expect(throws: HTTPURL.ParseError.self) { try monitor.reachability(ofHost: "a/b@c:1:2") }
        #expect(throws: HTTPURL.ParseError.self) {
            try monitor.reachability(ofHost: "a.example", port: 70_000)
        }
    }
}
