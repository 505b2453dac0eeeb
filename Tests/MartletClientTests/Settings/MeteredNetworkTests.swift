import Martlet
import MartletTesting
import MartletTestSupport
import Testing

@Suite("Calls on metered networks")
struct MeteredNetworkTests {
    private static let mobile = NetworkPath([NetworkInterface(name: "wwan0", kind: .mobile)])
    private static let wifi = NetworkPath([NetworkInterface(name: "wlan0", kind: .wifi)])

    private static func session(
        _ path: ManualNetworkPath, _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) -> HTTPSession {
        HTTPSession.own {
            $0.networkMonitor = path.monitor
            change(&$0)
        }
    }

    @Test("By default every network is used")
    func allowed() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("x"))) { origin async throws in
            let session = MeteredNetworkTests.session(ManualNetworkPath(MeteredNetworkTests.mobile))
            #expect(try await session.get(origin.url()).text == "x")
        }
    }

    @Test(
        "A call or a session that denies metered networks fails before anything is sent",
        arguments: [false, true])
    func denied(bySession: Bool) async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("x"))) { origin async throws in
            let path = ManualNetworkPath(MeteredNetworkTests.mobile)
            let session = MeteredNetworkTests.session(path) { if bySession { $0.meteredNetworks = .denied } }
            let denied = RequestOptions { if !bySession { $0.meteredNetworks = .denied } }
            let error = await #expect(throws: HTTPError.self) {
                try await session.post(origin.url(), body: .text("a"), options: denied)
            }
            #expect(error?.code == .meteredNetwork && error?.wasSent == false)
            #expect(origin.requests.isEmpty)
            let allowed = RequestOptions { $0.meteredNetworks = .allowed }
            #expect(try await session.get(origin.url(), options: allowed).text == "x")
            path.set(MeteredNetworkTests.wifi)
            #expect(try await session.get(origin.url(), options: denied).text == "x")
        }
    }

    @Test("Unknown and missing networks are not metered", arguments: [NetworkPath.unknown, .unsatisfied])
    func unknown(_ path: NetworkPath) async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("x"))) { origin async throws in
            let session = MeteredNetworkTests.session(ManualNetworkPath(path)) {
                $0.meteredNetworks = .denied
            }
            #expect(try await session.get(origin.url()).text == "x")
        }
    }

    @Test("A reported condition decides for a session without a monitor")
    func reported() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("x"))) { origin async throws in
            let session = HTTPSession.own { $0.meteredNetworks = .denied }
            session.networkConditionChanged(to: .mobile)
            await #expect(throws: HTTPError.self) { try await session.get(origin.url()) }
            session.networkConditionChanged(to: .wifi)
            #expect(try await session.get(origin.url()).text == "x")
        }
    }

    @Test(
        "A waiting call continues when the network changes, from any source of conditions", arguments: [false, true])
    func waits(byMonitor: Bool) async throws {
        try await TestOrigin.withOrigin(handler: .echo) { origin async throws in
            let path = ManualNetworkPath(MeteredNetworkTests.mobile)
            let session = HTTPSession.own {
                if byMonitor { $0.networkMonitor = path.monitor }
                $0.meteredNetworks = .waits
            }
            if !byMonitor { session.networkConditionChanged(to: .mobile) }
            async let waiting = session.post(origin.url(), body: .text("kept"))
            // A call that times out proves that calls wait in this condition.
            let error = await #expect(throws: HTTPError.self) {
                try await session.get(
                    origin.url(), options: RequestOptions { $0.timeouts.total = .milliseconds(100) })
            }
            #expect(error?.timeout == .total && error?.wasSent == false)
            #expect(origin.requests.isEmpty)
            path.set(MeteredNetworkTests.wifi)
            if !byMonitor { session.networkConditionChanged(to: .wifi) }
            #expect(try await waiting.statusCode == 200)
            #expect(origin.requests.count == 1)
        }
    }

    @Test("Cancelling ends the wait for another network")
    func cancelling() async throws {
        try await TestOrigin.withOrigin(handler: .echo) { origin async throws in
            let path = ManualNetworkPath(MeteredNetworkTests.mobile)
            let session = MeteredNetworkTests.session(path) { $0.meteredNetworks = .waits }
            let task = Task { try await session.get(origin.url()) }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
        }
    }

    @Test("A wait for a monitor that has ended fails, since no other network will be reported")
    func endedMonitor() async throws {
        try await TestOrigin.withOrigin(handler: .echo) { origin async throws in
            var path: ManualNetworkPath? = ManualNetworkPath(MeteredNetworkTests.mobile)
            let monitor = path?.monitor
            let session = HTTPSession.own {
                $0.networkMonitor = monitor
                $0.meteredNetworks = .waits
            }
            path = nil
            let error = await #expect(throws: HTTPError.self) { try await session.get(origin.url()) }
            #expect(error?.code == .meteredNetwork)
        }
    }

    @Test("Fresh cached responses are returned on any network, and stale ones are not validated")
    func cached() async throws {
        try await TestOrigin.withOrigin { request in
            CacheScene.answer("x", request.path == "/fresh" ? "max-age=600" : "no-cache")
        } run: { origin async throws in
            let path = ManualNetworkPath(MeteredNetworkTests.wifi)
            let (session, _) = try CacheScene.session {
                $0.networkMonitor = path.monitor
                $0.meteredNetworks = .denied
            }
            for name in ["/fresh", "/stale"] { _ = try await session.get(origin.url(name)) }
            path.set(MeteredNetworkTests.mobile)
            #expect(try await session.get(origin.url("/fresh")).text == "x")
            let error = await #expect(throws: HTTPError.self) { try await session.get(origin.url("/stale")) }
            #expect(error?.code == .meteredNetwork)
            #expect(origin.requests.count == 2)
        }
    }

    @Test("A request that a feature changes is denied as well")
    func changedRequest() async throws {
        try await TestOrigin.withOrigin(handler: .echo) { origin async throws in
            let path = ManualNetworkPath(MeteredNetworkTests.mobile)
            let session = MeteredNetworkTests.session(path) {
                $0.meteredNetworks = .denied
                $0[Marking.self] = true
            }
            let error = await #expect(throws: HTTPError.self) { try await session.get(origin.url()) }
            #expect(error?.code == .meteredNetwork && origin.requests.isEmpty)
        }
    }

    private enum Marking: FeatureKey {
        static var defaultValue: Bool { false }
        static var position: StagePosition { .cache }

        static func middleware(for isOn: Bool) -> (any HTTPMiddleware)? { isOn ? Marker() : nil }
    }

    private struct Marker: HTTPMiddleware {
        func handle(_ request: HTTPCall.Request, context: CallContext, next: HTTPNext) async throws
            -> HTTPCall.Response
        {
            var request = request
            request.headers[.accept] = "x/y"
            return try await next(request)
        }
    }
}
