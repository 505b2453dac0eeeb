import Testing

@testable import MartletPool

@Suite("Pool: random events")
struct PoolRandomTests {
    #if DEBUG
        private static let eventCount = 3_000
    #else
        private static let eventCount = 50_000
    #endif

    /// Performs `count` events and yields in between. Without the yields, this test would block a shared thread for
    /// minutes on a slow machine.
    private static func play(_ count: Int, _ model: inout PoolModel) async {
        for number in 0..<count {
            model.step()
            guard model.faults.isEmpty else { break }
            if number % 16 == 0 { await Task.yield() }
        }
    }

    @Test("Random events in any order leave the counts consistent and nothing open", arguments: 0..<4)
    func anything(run: Int) async {
        let seed = UInt64.random(in: .min ... .max)
        var model = PoolModel(seed: seed)
        await Self.play(Self.eventCount, &model)
        if model.faults.isEmpty { model.finish() }
        #expect(model.faults.isEmpty, "seed \(seed), run \(run)")
    }

    @Test("Limits that change continuously hold for random events", arguments: 0..<4)
    func changingLimits(run: Int) async {
        let seed = UInt64.random(in: .min ... .max)
        var model = PoolModel(seed: seed, limitChanges: 200)
        await Self.play(Self.eventCount, &model)
        if model.faults.isEmpty { model.finish() }
        #expect(model.faults.isEmpty, "seed \(seed), run \(run)")
    }

    @Test("Shutdown during random events drains the pool", arguments: 0..<20)
    func shutdown(run: Int) async {
        let seed = UInt64.random(in: .min ... .max)
        var model = PoolModel(seed: seed)
        await Self.play(20 + 10 * run, &model)
        if model.faults.isEmpty { model.shutdown() }
        #expect(model.faults.isEmpty, "seed \(seed), run \(run)")
    }

    @Test(
        "10,000 concurrent requests with cancellations are each served or withdrawn, and counters return to zero"
    )
    func tenThousand() async {
        let seed = UInt64.random(in: .min ... .max)
        var random = PoolGenerator(state: seed)
        var pool = PoolMachine<Int>()
        var waiting: Set<PoolWaiterID> = []
        var ready: [PoolConnectionID] = []
        var dials: [PoolConnectionID] = []
        for number in 0..<10_000 {
            if number % 16 == 0 { await Task.yield() }
            let admission = pool.request(number % 50, now: UInt64(number))
            if let waiter = admission.waiter { waiting.insert(waiter) }
            if let lease = admission.lease { ready.append(lease) }
            dials += admission.effects.dials.map(\.connection)
            let isCancelled = UInt8.random(in: 0..<4, using: &random) == 0
            if isCancelled, let waiter = admission.waiter, pool.cancel(waiter).outcome == .withdrawn {
                waiting.remove(waiter)
            }
        }
        #expect(pool.counts.dialing == 256)
        #expect(pool.counts.waiting == waiting.count)
        while !dials.isEmpty || !ready.isEmpty {
            var effects: PoolMachine<Int>.Effects
            if let dial = dials.popLast() {
                effects = pool.dialSucceeded(dial, now: 10_000)
            } else {
                effects = pool.released(ready.removeLast(), isReusable: true, now: 10_000)
            }
            if let grant = effects.grant {
                if waiting.remove(grant.waiter) == nil { Issue.record("granted to nobody, seed \(seed)") }
                ready.append(grant.connection)
            }
            dials += effects.dials.map(\.connection)
        }
        #expect(waiting.isEmpty, "seed \(seed)")
        let idleCount = pool.counts.idle
        #expect(pool.counts == PoolCounts(idle: idleCount))
        #expect(pool.checkInvariants().isEmpty)
        #expect(pool.expire(now: 61 * poolSecond).closes.count == idleCount)
        #expect(pool.counts == PoolCounts())
    }
}
