import Martlet
import MartletCore
import MartletConditions
import MartletTesting
import MartletTestSupport
import Testing

@Suite("Concurrency limits by network condition")
struct ConcurrencyTests {
    private static let policy = ConcurrencyPolicy(
        unmetered: .init(perHost: 4, total: 6), wifi: .init(perHost: 6, total: 8, hosts: ["b.example": 1]),
        mobile: .init(perHost: 2, total: 3), unknown: .init(perHost: 1, total: 1))

    private static func ceiling(_ limits: PoolLimits) -> RunningGauge.Ceiling {
        let hosts = ["a.example", "b.example"].map { name in
            (name, limits.connectionsToHosts[name] ?? limits.connectionsPerHost)
        }
        return .init(total: limits.totalConnections, hosts: Dictionary(uniqueKeysWithValues: hosts))
    }

    /// Whether the session has the expected limits and its connections are within them.
    private static func holds(_ session: HTTPSession, _ limits: PoolLimits) -> Bool {
        guard session.core.pool.limits == limits else { return false }
        let ceiling = ceiling(limits)
        let diagnostics = session.diagnostics
        return diagnostics.pool.leased + diagnostics.pool.dialing <= ceiling.total
            && ceiling.hosts.allSatisfy { name, limit in
                diagnostics.hosts.allSatisfy {
                    !$0.origin.contains(name) || $0.leased + $0.dialing <= limit
                }
            }
    }

    @Test(
        "A server never sees more concurrent requests than the changing network condition allows")
    func flapping() async throws {
        let gauge = RunningGauge(.init(total: 1, hosts: ["a.example": 1, "b.example": 1]))
        try await TestOrigin.withOrigin { request in
            let host = request.path.hasPrefix("/a") ? "a.example" : "b.example"
            gauge.enter(host)
            for _ in 0..<20 { await Task.yield() }
            gauge.leave(host)
            return .text("x")
        } run: { origin in
            let (conditions, condition) = AsyncStream.makeStream(of: NetworkCondition.self)
            let session = HTTPSession.own { configuration in
                // The limits with which `holds` compares.
                configuration.pool = PoolLimits()
                configuration.resolver = ListResolver(("127.0.0.1", origin.port))
                configuration.concurrency = ConcurrencyTests.policy
                configuration.networkConditions = conditions
            }
            let ends = Counter()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for worker in 0..<16 {
                    let url = worker.isMultiple(of: 2) ? "http://a.example/a" : "http://b.example/b"
                    group.addTask {
                        while ends.count == 0 {
                            let text = try await session.get(url).text
                            #expect(text == "x")
                        }
                    }
                }
                var random = SplitMix64(state: .random(in: .min ... .max))
                for _ in 0..<40 {
                    let next = NetworkCondition.allCases.randomElement(using: &random) ?? .unknown
                    let limits = ConcurrencyTests.policy.applied(to: PoolLimits(), under: next)
                    let ceiling = ConcurrencyTests.ceiling(limits)
                    // Running requests are not cancelled, so the old limits count until the new ones are reached.
                    gauge.allow(gauge.ceiling.joined(ceiling))
                    condition.yield(next)
                    #expect(await eventually { ConcurrencyTests.holds(session, limits) })
                    gauge.allow(ceiling)
                    let served = gauge.served
                    #expect(await eventually { gauge.served >= served + 10 })
                }
                ends.add()
                try await group.waitForAll()
            }
            #expect(gauge.faults.isEmpty)
            #expect(gauge.most > 1)
            #expect(session.diagnostics.isIdle)
        }
    }

    /// Runs a test with a session over Wi-Fi and an origin that holds all requests until the signal `go`.
    private func held(
        _ run: @Sendable (TestOrigin, HTTPSession) async throws -> Void
    ) async throws {
        let signals = SignalBox()
        try await TestOrigin.withOrigin { request in
            try await signals.wait(for: "go")
            return .text("x")
        } run: { origin in
            signals.use(origin)
            let session = HTTPSession.own { $0.concurrency = ConcurrencyPolicy() }
            session.networkConditionChanged(to: .wifi)
            try await run(origin, session)
        }
    }

    @Test("A change to a worse network cancels no running request, and queued ones run two at a time")
    func lowering() async throws {
        try await held { origin, session in
            try await withThrowingTaskGroup(of: String.self) { group in
                for number in 0..<10 {
                    group.addTask { try await session.get(origin.url("/\(number)")).text }
                }
                try await origin.waitForRequests(count: 6)
                session.networkConditionChanged(to: .mobile)
                #expect(session.poolLimits.connectionsPerHost == 2)
                #expect(session.networkCondition == .mobile)
                #expect(session.poolStatus.leased == 6)
                origin.signals.raise("go")
                for try await text in group { #expect(text == "x") }
            }
            #expect(session.poolStatus.idle <= 2)
            #expect(origin.requests.count == 10)
        }
    }

    @Test("A change to a better network starts queued requests immediately")
    func raising() async throws {
        try await held { origin, session in
            session.networkConditionChanged(to: .mobile)
            try await withThrowingTaskGroup(of: String.self) { group in
                for number in 0..<10 {
                    group.addTask { try await session.get(origin.url("/\(number)")).text }
                }
                try await origin.waitForRequests(count: 2)
                #expect(await eventually { session.poolStatus.waiting == 8 })
                session.networkConditionChanged(to: .wifi)
                try await origin.waitForRequests(count: 6)
                session.networkConditionChanged(to: .unmetered)
                try await origin.waitForRequests(count: 10)
                origin.signals.raise("go")
                for try await text in group { #expect(text == "x") }
            }
        }
    }

    @Test("Pool limits that the policy does not override stay in effect, and removing the policy restores all")
    func withPoolLimits() {
        let session = HTTPSession.own { $0.concurrency = ConcurrencyPolicy(mobile: .init(perHost: 2)) }
        session.networkConditionChanged(to: .mobile)
        session.setPoolLimits(PoolLimits(connectionsPerHost: 9, totalConnections: 20))
        #expect(session.core.pool.limits == PoolLimits(connectionsPerHost: 2, totalConnections: 20))
        session.setConcurrency(nil)
        #expect(session.core.pool.limits == PoolLimits(connectionsPerHost: 9, totalConnections: 20))
        #expect(session.poolLimits == session.core.pool.limits)
    }

    @Test("Views share the limits and the network condition of their session")
    func views() {
        let session = HTTPSession.own { $0.concurrency = ConcurrencyPolicy() }
        let view = session.with { $0.priority = .high }
        view.networkConditionChanged(to: .mobile)
        #expect(session.networkCondition == .mobile)
        #expect(session.poolLimits.connectionsPerHost == 2)
    }

    @Test("A session stops following network conditions at its end, and survives the end of their sequence")
    func ending() async throws {
        let ended = Counter()
        let (conditions, condition) = AsyncStream.makeStream(of: NetworkCondition.self)
        condition.onTermination = { _ in ended.add() }
        do {
            let session = HTTPSession.own { configuration in
                configuration.concurrency = ConcurrencyPolicy()
                configuration.networkConditions = conditions
            }
            condition.yield(.mobile)
            #expect(await eventually { session.networkCondition == .mobile })
        }
        #expect(await eventually { ended.count == 1 })

        let (others, other) = AsyncStream.makeStream(of: NetworkCondition.self)
        let session = HTTPSession.own { configuration in
            configuration.concurrency = ConcurrencyPolicy()
            configuration.networkConditions = others
        }
        other.yield(.mobile)
        other.finish()
        #expect(await eventually { session.poolLimits.connectionsPerHost == 2 })
    }
}
