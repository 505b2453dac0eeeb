import FoundationEssentials
import MartletCore
import MartletFeatureSettings
import MartletConditions
import MartletTesting
import MartletTestSupport
import MartletTransport
import Synchronization
import Testing

@Suite("Network paths")
struct NetworkMonitorTests {
    private static let wired = NetworkPath([.init(name: "eth0", kind: .wired)])
    private static let wifi = NetworkPath([.init(name: "wlan0", kind: .wifi)])
    private static let mobile = NetworkPath([.init(name: "wwan0", kind: .mobile)])

    @Test(
        "Every subscriber gets reachability (unknown, none, mobile or Wi-Fi) immediately and at each change"
    )
    func following() async {
        let manual = ManualNetworkPath()
        var one = manual.monitor.makeAsyncIterator()
        var other = manual.monitor.makeAsyncIterator()
        #expect(await one.next() == .unknown)
        for path in [NetworkPath.unsatisfied, Self.mobile, Self.wifi, .unsatisfied] {
            manual.set(path)
            #expect(await one.next() == path)
            #expect(await manual.monitor.path == path)
        }
        // A slow subscriber skips the values that it missed.
        #expect(await other.next() == .unsatisfied)
    }

    @Test("A path that is set again is not reported again, although addresses have changed")
    func repeated() async {
        let manual = ManualNetworkPath(Self.wired)
        var iterator = manual.monitor.makeAsyncIterator()
        #expect(await iterator.next() == Self.wired)
        manual.set(Self.wired, localAddresses: ["192.0.2.1"])
        manual.set(Self.wired, localAddresses: [])
        manual.set(.unsatisfied)
        #expect(await iterator.next() == .unsatisfied)
    }

    @Test("A sequence of manual paths ends when its source is released")
    func ending() async {
        var manual: ManualNetworkPath? = ManualNetworkPath(Self.wired)
        let monitor = manual?.monitor
        manual = nil
        var paths: [NetworkPath] = []
        if let monitor { for await path in monitor { paths.append(path) } }
        #expect(paths == [Self.wired])
    }

    @Test("Leaving or cancelling an iteration leaves nothing open")
    func leaving() async throws {
        let monitor = NetworkMonitor()
        #expect(!monitor.isListening)
        for await _ in monitor { break }
        #expect(await eventually { !monitor.isListening })
        let (paths, told) = AsyncStream.makeStream(of: NetworkPath.self)
        let task = Task {
            for await path in monitor { told.yield(path) }
        }
        for await _ in paths { break }
        task.cancel()
        await task.value
        #expect(await eventually { !monitor.isListening })
        _ = await monitor.path
        #expect(await eventually { !monitor.isListening })
    }

    @Test(
        "Conditions follow from paths: expensive is like mobile, and no path is unknown"
    )
    func conditions() async {
        #expect(Self.wired.condition == .unmetered)
        #expect(Self.wifi.condition == .wifi)
        #expect(Self.mobile.condition == .mobile)
        #expect(NetworkPath([.init(name: "wlan0", kind: .wifi, isExpensive: true)]).condition == .mobile)
        #expect(
            NetworkPath([.init(name: "wwan0", kind: .mobile, isExpensive: false)]).condition == .unmetered)
        #expect(NetworkPath.unsatisfied.condition == .unknown)
        #expect(NetworkPath.unknown.condition == .unknown)
        let manual = ManualNetworkPath(Self.wired)
        var iterator = manual.monitor.conditions.makeAsyncIterator()
        #expect(await iterator.next(isolation: nil) == .unmetered)
        manual.set(NetworkPath([.init(name: "eth1", kind: .wired)]))
        manual.set(Self.mobile)
        #expect(await iterator.next(isolation: nil) == .mobile)
    }

    @Test("Paths and reachability can be encoded and decoded")
    func coding() throws {
        let interface = NetworkInterface(
            name: "wg0", index: 7, kind: .mobile, isTunnel: true, addresses: ["10.0.0.2", "fd00::2"])
        let path = NetworkPath([interface], supportsIPv6: true)
        let data = try JSONEncoder().encode(path)
        #expect(try JSONDecoder().decode(NetworkPath.self, from: data) == path)
        let host = HostReachability(.reachable, interface: interface, address: "192.0.2.1", isProbed: true)
        let text = try JSONEncoder().encode(host)
        #expect(try JSONDecoder().decode(HostReachability.self, from: text) == host)
        #expect(path.description == "satisfied by wg0 (mobile, tunnel, expensive)")
        #expect(host.description == "reachable at 192.0.2.1 by wg0 (mobile)")
    }

    // MARK: Sessions

    /// Reports a path with a condition other than the last one, and waits until the session has applied it.
    private func tell(
        _ session: HTTPSession, _ manual: ManualNetworkPath, _ path: NetworkPath, _ addresses: [String]
    ) async {
        #expect(session.networkCondition != path.condition)
        manual.set(path, localAddresses: addresses)
        #expect(await eventually { session.networkCondition == path.condition })
    }

    /// Returns a mock whose responses to `/slow` wait, the number of requests that arrived there, and the gate that
    /// releases them.
    private func mock() -> (mock: MockTransport, arrived: Counter, gate: OneShot<Void>) {
        let arrived = Counter()
        let gate = OneShot<Void>()
        let mock = MockTransport { request in
            if request.path == "/slow", arrived.count == 0 {
                arrived.add()
                _ = await gate.wait(until: .distantFuture, on: .sharedOrStalled)
            }
            return .text("x")
        }
        return (mock, arrived, gate)
    }

    private func session(
        _ connector: AddressedConnector, _ manual: ManualNetworkPath,
        _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) -> HTTPSession {
        HTTPSession.own { configuration in
            configuration.connector = connector
            configuration.networkMonitor = manual.monitor
            change(&configuration)
        }
    }

    @Test("Idle connections from a removed address are closed immediately, and the others stay")
    func idle() async throws {
        let (mock, _, _) = mock()
        let manual = ManualNetworkPath()
        let connector = AddressedConnector(mock, from: ["192.0.2.5:1000", "[2001:db8::5]:1000"])
        let session = session(connector, manual)
        _ = try await session.get("http://a.example/")
        _ = try await session.get("http://b.example/")
        await tell(session, manual, Self.wired, ["127.0.0.1", "192.0.2.5", "2001:db8::5"])
        #expect(session.diagnostics.pool.idle == 2)
        await tell(session, manual, Self.wifi, ["2001:db8::5"])
        #expect(session.diagnostics.pool.idle == 1)
        #expect(session.diagnostics.hosts.map(\.origin) == ["http://b.example:80"])
    }

    @Test(
        "A call on a connection from a removed address fails immediately with that reason"
    )
    func busy() async throws {
        let (mock, arrived, gate) = mock()
        defer { gate.fulfill(()) }
        let manual = ManualNetworkPath()
        let session = session(AddressedConnector(mock, from: ["192.0.2.5:1000"]), manual)
        let task = Task { try await session.post("http://a.example/slow", body: .text("x")).text }
        #expect(await eventually { arrived.count == 1 })
        await tell(session, manual, Self.wired, ["192.0.2.5"])
        #expect(session.diagnostics.pool.leased == 1)
        await tell(session, manual, Self.wifi, [])
        let error = await #expect(throws: HTTPError.self) { try await task.value }
        #expect(error?.code == .connectionLost)
        #expect(error?.phase == .awaitingHead)
        #expect(error?.wasSent == true)
        #expect(error?.message.contains("address") == true)
    }

    @Test("A retryable call is retried from the current address")
    func retried() async throws {
        let (mock, arrived, gate) = mock()
        defer { gate.fulfill(()) }
        let manual = ManualNetworkPath()
        let connector = AddressedConnector(mock, from: ["192.0.2.5:1000", "192.0.2.6:1000"])
        let session = session(connector, manual) { $0.retry = .transient(maximumAttempts: 3) }
        let task = Task { try await session.get("http://a.example/slow").text }
        #expect(await eventually { arrived.count == 1 })
        await tell(session, manual, Self.wired, ["192.0.2.5", "192.0.2.6"])
        await tell(session, manual, Self.wifi, ["192.0.2.6"])
        #expect(try await task.value == "x")
        #expect(session.diagnostics.pool.opened == 2)
    }

    @Test("A connection whose address is removed while connecting is abandoned, and the next one serves the call")
    func dialing() async throws {
        let (mock, _, gate) = mock()
        let begun = Counter()
        let connector = AddressedConnector(mock, from: ["192.0.2.5:1", "192.0.2.6:1"]) {
            begun.add()
            if begun.count == 1 { _ = await gate.wait(until: .distantFuture, on: .sharedOrStalled) }
        }
        let manual = ManualNetworkPath()
        let session = session(connector, manual) { $0.retry = .transient(maximumAttempts: 3) }
        let task = Task { try await session.get("http://a.example/").text }
        #expect(await eventually { begun.count == 1 })
        await tell(session, manual, Self.wired, ["192.0.2.5", "192.0.2.6"])
        await tell(session, manual, Self.wifi, ["192.0.2.6"])
        gate.fulfill(())
        #expect(try await task.value == "x")
        #expect(begun.count == 2)
        #expect(session.diagnostics.pool.opened == 1)
    }

    @Test(
        "Addresses never present, loopback addresses and unknown addresses close nothing"
    )
    func kept() async throws {
        let (mock, _, _) = mock()
        let manual = ManualNetworkPath()
        let connector = AddressedConnector(
            mock, from: ["127.0.0.1:1000", "198.51.100.1:1000", "192.0.2.5:1"])
        let session = session(connector, manual) { $0.concurrency = ConcurrencyPolicy() }
        manual.set(Self.wired, localAddresses: ["127.0.0.1", "192.0.2.5"])
        for host in ["a", "b", "c"] { _ = try await session.get("http://\(host).example/") }
        #expect(await eventually { session.networkCondition == .unmetered })
        manual.set(Self.wifi, localAddresses: nil)
        #expect(await eventually { session.networkCondition == .wifi })
        #expect(session.diagnostics.pool.idle == 3)
        manual.set(Self.mobile, localAddresses: ["192.0.2.5"])
        #expect(await eventually { session.networkCondition == .mobile })
        manual.set(Self.wifi, localAddresses: [])
        // The third connection, whose address is now gone; then no others.
        #expect(await eventually { session.diagnostics.pool.idle == 2 })
        #expect(
            session.diagnostics.hosts.map(\.origin).sorted() == [
                "http://a.example:80", "http://b.example:80",
            ])
    }

    @Test("A session's policy follows the path and stays unchanged without one")
    func policy() async {
        let manual = ManualNetworkPath(Self.mobile)
        let session = HTTPSession.own { configuration in
            configuration.concurrency = ConcurrencyPolicy()
            configuration.networkMonitor = manual.monitor
        }
        #expect(await eventually { session.poolLimits.connectionsPerHost == 2 })
        #expect(session.segmentLimit == 1)
        manual.set(Self.wifi)
        #expect(await eventually { session.segmentLimit == nil })
        manual.set(.unsatisfied)
        manual.set(Self.mobile)
        #expect(await eventually { session.networkCondition == .mobile })
        manual.set(.unknown)
        #expect(await eventually { session.networkCondition == .unknown })
    }

    @Test("Conditions set on a session override those of the path")
    func bothSources() async {
        let manual = ManualNetworkPath(Self.mobile)
        let (conditions, condition) = AsyncStream.makeStream(of: NetworkCondition.self)
        let session = HTTPSession.own { configuration in
            configuration.networkConditions = conditions
            configuration.networkMonitor = manual.monitor
        }
        condition.yield(.wifi)
        #expect(await eventually { session.networkCondition == .wifi })
        manual.set(Self.wired)
        condition.yield(.unmetered)
        #expect(await eventually { session.networkCondition == .unmetered })
    }

    @Test(
        "A path never delays or rejects a call",
        arguments: [NetworkPath.unsatisfied, .unknown])
    func neverGates(_ path: NetworkPath) async throws {
        let manual = ManualNetworkPath(path)
        let (mock, _, _) = mock()
        let session = session(AddressedConnector(mock, from: ["192.0.2.5:1"]), manual)
        #expect(try await session.get("http://a.example/").text == "x")
    }

    @Test("Releasing a session releases the monitor")
    func sessionEnds() async throws {
        let monitor = NetworkMonitor()
        do {
            let session = HTTPSession.own { $0.networkMonitor = monitor }
            #expect(session.diagnostics.isIdle)
            _ = await monitor.path
        }
        #expect(await eventually { !monitor.isListening })
    }
}
