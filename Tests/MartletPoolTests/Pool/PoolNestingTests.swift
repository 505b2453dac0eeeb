import Testing

@testable import MartletPool

@Suite("Pool: nested requests of calls that hold connections")
struct PoolNestingTests {
    /// The limit that queues the requests.
    enum Limit: CaseIterable {
        case host
        case total
    }

    private func pool(_ limit: Limit, _ count: Int) -> PoolMachine<String> {
        var limits = PoolLimits()
        limits.connectionsPerHost = limit == .host ? count : 100
        if limit == .total { limits.totalConnections = count }
        return PoolMachine<String>(limits: limits)
    }

    private func open(_ pool: inout PoolMachine<String>, _ host: String = "a") throws -> PoolConnectionID {
        let dial = try #require(pool.request(host, now: 1).effects.dials.first?.connection)
        #expect(pool.dialSucceeded(dial, now: 1).grant?.connection == dial)
        return dial
    }

    /// Requests a connection that is not available immediately.
    private func wait(_ pool: inout PoolMachine<String>, _ now: UInt64) throws -> PoolWaiterID {
        let admission = pool.request("a", now: now)
        #expect(admission.effects.dials.isEmpty)
        return try #require(admission.waiter)
    }

    @Test(
        "A nested request gets a connection above the limit, which is closed after it",
        arguments: Limit.allCases)
    func exceedsTheLimit(_ limit: Limit) throws {
        var pool = pool(limit, 1)
        let outer = try open(&pool)
        let other = try wait(&pool, 2)
        let waiter = try wait(&pool, 3)
        let inner = try #require(pool.nest(waiter, in: [outer]).dials.first?.connection)
        #expect(pool.checkInvariants() == [])
        #expect(pool.dialSucceeded(inner, now: 4).grant?.waiter == waiter)
        #expect(pool.checkInvariants() == [])
        let effects = pool.released(inner, isReusable: true, now: 5)
        #expect(effects.closes == [inner])
        #expect(effects.grant == nil)
        #expect(effects.dials.isEmpty)
        #expect(pool.checkInvariants() == [])
        #expect(pool.released(outer, isReusable: true, now: 6).grant?.waiter == other)
        #expect(pool.checkInvariants() == [])
    }

    @Test(
        "A connection lends one slot at a time, and the next nested request gets it",
        arguments: Limit.allCases)
    func lendsOnePlace(_ limit: Limit) throws {
        var pool = pool(limit, 1)
        let outer = try open(&pool)
        let waiters = [try wait(&pool, 2), try wait(&pool, 2), try wait(&pool, 2)]
        var dials = pool.nest(waiters[0], in: [outer]).dials.map(\.connection)
        for waiter in waiters.dropFirst() { _ = pool.nest(waiter, in: [outer]) }
        for waiter in waiters {
            let dial = try #require(dials.last)
            #expect(pool.dialSucceeded(dial, now: 3).grant?.waiter == waiter)
            #expect(pool.checkInvariants() == [])
            dials = pool.released(dial, isReusable: true, now: 4).dials.map(\.connection)
        }
        #expect(dials.isEmpty)
        #expect(pool.counts == PoolCounts(leased: 1))
    }

    @Test(
        "The end of a nested request in any state returns the slot",
        arguments: ["cancel", "fail", "reject"])
    func returnsTheSlot(_ end: String) throws {
        var pool = pool(.host, 1)
        let outer = try open(&pool)
        let waiter = try wait(&pool, 2)
        let dial = try #require(pool.nest(waiter, in: [outer]).dials.first?.connection)
        switch end {
        case "cancel":
            let cancellation = pool.cancel(waiter)
            #expect(cancellation.effects.abandons == [dial])
            _ = pool.dialFailed(dial)
        case "fail":
            #expect(pool.dialFailed(dial).failures == [waiter])
        default:
            _ = pool.dialSucceeded(dial, now: 3)
            let admission = pool.checkoutRejected(dial, now: 4)
            let again = try #require(admission.waiter)
            #expect(admission.effects.dials.isEmpty)
            let other = try #require(pool.nest(again, in: [outer]).dials.first?.connection)
            #expect(pool.dialSucceeded(other, now: 5).grant?.waiter == again)
            _ = pool.released(other, isReusable: true, now: 6)
        }
        #expect(pool.checkInvariants() == [])
        #expect(pool.counts == PoolCounts(leased: 1))
        #expect(pool.request("a", now: 7).effects.dials.isEmpty)
    }

    @Test("A holder that has released its connection lends no slot")
    func endedHolder() throws {
        var pool = pool(.host, 2)
        let (first, second) = (try open(&pool), try open(&pool))
        let waiter = try wait(&pool, 2)
        let dial = try #require(pool.nest(waiter, in: [first]).dials.first?.connection)
        // The slot is no longer lent, so the released connection makes room for the one that is being dialed.
        #expect(pool.released(first, isReusable: true, now: 3).closes == [first])
        #expect(pool.checkInvariants() == [])
        #expect(pool.dialSucceeded(dial, now: 4).grant?.waiter == waiter)
        let late = try wait(&pool, 5)
        #expect(pool.nest(late, in: [first]).isEmpty)
        #expect(pool.released(second, isReusable: true, now: 6).grant?.waiter == late)
        #expect(pool.checkInvariants() == [])
    }

    /// A call of the random test, which holds a connection until its nested calls have ended.
    private struct Caller {
        var host: String
        var depth: Int
        var parent: Int?
        var waiter: PoolWaiterID?
        var connection: PoolConnectionID?
        /// The number of nested calls that remain.
        var rest: Int
        /// The number of nested calls that it makes concurrently.
        var width: Int
        var isOver = false
    }

    @Test("Nested calls always end, whatever the limits are", arguments: 0..<20, [1, 3])
    func alwaysEnds(_ run: Int, width: Int) throws {
        let seed = UInt64.random(in: .min ... .max)
        var random = PoolGenerator(state: seed)
        var limits = PoolLimits()
        limits.connectionsPerHost = Int.random(in: 1...3, using: &random)
        limits.totalConnections = Int.random(in: 1...5, using: &random)
        var pool = PoolMachine<String>(limits: limits)
        let hosts = ["a", "b", "c"]
        var callers: [Caller] = []
        var dials: [PoolConnectionID] = []
        var most = 0

        func note(_ effects: PoolMachine<String>.Effects) {
            dials += effects.dials.map(\.connection)
            if !effects.dials.isEmpty {
                let holders = callers.indices.count { callers[$0].connection != nil && running($0) > 0 }
                #expect(pool.counts.connections <= limits.totalConnections + holders, "seed \(seed)")
            }
            guard let grant = effects.grant,
                let index = callers.firstIndex(where: { $0.waiter == grant.waiter })
            else { return }
            callers[index].connection = grant.connection
        }
        /// The number of calls within a call.
        func running(_ index: Int) -> Int { callers.count { $0.parent == index && !$0.isOver } }
        func begin(_ depth: Int, in parent: Int?) {
            let host = hosts.randomElement(using: &random) ?? "a"
            var caller = Caller(
                host: host, depth: depth, parent: parent,
                rest: depth == 0 ? 0 : Int.random(in: 0...4, using: &random),
                width: Int.random(in: 1...width, using: &random))
            let admission = pool.request(host, now: UInt64(callers.count))
            (caller.waiter, caller.connection) = (admission.waiter, admission.lease)
            callers.append(caller)
            note(admission.effects)
            guard let waiter = admission.waiter else { return }
            var holders: [PoolConnectionID] = []
            var next = parent
            while let index = next {
                if let connection = callers[index].connection { holders.insert(connection, at: 0) }
                next = callers[index].parent
            }
            note(pool.nest(waiter, in: holders))
        }

        for _ in 0..<30 { begin(2, in: nil) }
        for step in 0..<100_000 {
            let ready = callers.indices.filter {
                callers[$0].connection != nil && !callers[$0].isOver
                    && running($0) < (callers[$0].rest > 0 ? callers[$0].width : 1)
            }
            if let dial = dials.randomElement(using: &random), ready.isEmpty || Bool.random(using: &random) {
                dials.removeAll { $0 == dial }
                note(pool.dialSucceeded(dial, now: UInt64(step)))
            } else if let index = ready.randomElement(using: &random) {
                if callers[index].rest > 0 {
                    callers[index].rest -= 1
                    begin(callers[index].depth - 1, in: index)
                } else if let connection = callers[index].connection {
                    callers[index].isOver = true
                    note(pool.released(connection, isReusable: true, now: UInt64(step)))
                }
            } else {
                break
            }
            most = max(most, pool.counts.connections)
            let faults = pool.checkInvariants(isDraining: true)
            guard faults == [] else {
                Issue.record("\(faults), seed \(seed)")
                return
            }
        }
        let allEnded = callers.allSatisfy(\.isOver)
        #expect(allEnded, "seed \(seed)")
        if width == 1 { #expect(most <= 3 * limits.totalConnections, "\(most) connections, seed \(seed)") }
        #expect(pool.counts.waiting == 0)
        #expect(pool.counts.leased == 0)
    }
}
