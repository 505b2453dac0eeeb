import Testing

@testable import MartletPool

@Suite("Pool: fairness between hosts")
struct PoolFairnessTests {
    /// Returns a pool at its total limit of one, with its connection to `a` in use.
    private func full() throws -> (PoolScene, PoolConnectionID) {
        let scene = PoolScene(PoolLimits(totalConnections: 1))
        return (scene, try #require(scene.open("a")))
    }

    @Test("A more urgent request to another host gets the slot of a released connection")
    func urgentElsewhere() throws {
        let (scene, connection) = try full()
        _ = try #require(scene.wait("a"))
        _ = try #require(scene.wait("b", .highest))
        let effects = scene.release(connection)
        #expect(effects.grant == nil)
        #expect(effects.closes == [connection])
        #expect(effects.dials.map(\.key) == ["b"])
        #expect(scene.faults.isEmpty)
    }

    @Test("A connection is reused for a request that is less than a second younger than one to another host")
    func reuseWithinMinimumLead() throws {
        let (scene, connection) = try full()
        _ = try #require(scene.wait("b"))
        scene.now += StringPool.minimumLead - 1
        let own = try #require(scene.wait("a"))
        #expect(scene.release(connection).grant?.waiter == own)
        #expect(scene.faults.isEmpty)
    }

    @Test("A request to another host that is a second older gets the slot of a released connection")
    func earlierElsewhere() throws {
        let (scene, connection) = try full()
        _ = try #require(scene.wait("b"))
        scene.now += StringPool.minimumLead
        _ = try #require(scene.wait("a"))
        #expect(scene.release(connection).dials.map(\.key) == ["b"])
        #expect(scene.faults.isEmpty)
    }

    @Test("An adopted dial yields to a more urgent request to another host, and an own dial does not")
    func dials() throws {
        let scene = PoolScene(PoolLimits(totalConnections: 1))
        let first = scene.request("a")
        let dial = try #require(first.effects.dials.first).connection
        let second = try #require(scene.wait("a"))
        _ = try #require(scene.wait("b", .highest))
        _ = scene.cancel(try #require(first.waiter))
        #expect(scene.pool.waiter(of: dial) == second)
        let effects = scene.succeed(dial)
        #expect(effects.closes == [dial])
        let next = try #require(effects.dials.first)
        #expect(next.key == "b")
        // During the dial a more urgent request to another host arrives, and the connection serves its own host first.
        _ = try #require(scene.wait("c", .highest))
        #expect(scene.succeed(next.connection).grant != nil)
        #expect(scene.faults.isEmpty)
    }

    /// Simulates sixteen busy hosts with continuous requests, and one request to another host.
    /// - Returns: The wait of that request in nanoseconds, or `nil` if it was not served within an hour.
    private func wait(seed: UInt64, _ priority: RequestPriority) -> (waited: UInt64?, faults: [String]) {
        var random = PoolGenerator(state: seed)
        let limits = PoolLimits(connectionsPerHost: 4, totalConnections: 32)
        var pool = PoolMachine<Int>(limits: limits)
        var now: UInt64 = 1 << 40
        var leased: [PoolConnectionID: Int] = [:]
        var dials: [PoolMachine<Int>.Dial] = []
        var other: PoolWaiterID?
        var waited: UInt64?
        var faults: [String] = []
        let begin = now + 5_000_000_000

        func apply(_ effects: PoolMachine<Int>.Effects) {
            if let grant = effects.grant {
                leased[grant.connection] = pool.key(of: grant.connection)
                if grant.waiter == other { waited = now - begin }
            }
            dials += effects.dials
        }
        func ask(_ key: Int, _ priority: RequestPriority) -> PoolWaiterID? {
            let admission = pool.request(key, priority: priority, now: now)
            if let lease = admission.lease { leased[lease] = key }
            apply(admission.effects)
            return admission.waiter
        }
        // Each host always has eight requests, so that some are always queued.
        for key in 0..<16 { for _ in 0..<8 { _ = ask(key, .normal) } }
        while waited == nil, now < begin + 3_600_000_000_000, faults.isEmpty {
            now += .random(in: 0...20_000_000, using: &random)
            if other == nil, now >= begin {
                now = begin
                other = ask(99, priority)
            }
            let held = leased.keys.sorted { $0.index < $1.index }
            if let dial = dials.first, held.isEmpty || Bool.random(using: &random) {
                dials.removeFirst()
                apply(pool.dialSucceeded(dial.connection, now: now))
            } else if let connection = held.randomElement(using: &random),
                let key = leased.removeValue(forKey: connection)
            {
                apply(pool.released(connection, isReusable: true, now: now))
                _ = ask(key, .normal)
            }
            faults += pool.checkInvariants()
        }
        return (waited, faults)
    }

    @Test(
        "A request to another host is served within a bounded time while sixteen hosts fill the pool",
        arguments: [
            (RequestPriority.highest, UInt64(2)), (.normal, 10), (.lowest, 30),
        ])
    func bound(priority: RequestPriority, seconds: UInt64) {
        for seed in UInt64(1)...10 {
            let (waited, faults) = wait(seed: seed, priority)
            #expect(faults.isEmpty, "seed \(seed)")
            #expect(waited ?? .max < seconds * poolSecond, "seed \(seed)")
        }
    }
}
