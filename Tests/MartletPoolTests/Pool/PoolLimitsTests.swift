import Testing

@testable import MartletPool

@Suite("Pool: limits")
struct PoolLimitsTests {
    @Test("A dial that the total limit blocks closes the longest idle connection of another host")
    func evictsLongestIdle() throws {
        let scene = PoolScene(PoolLimits(totalConnections: 3))
        let a = try #require(scene.open("a"))
        let b = try #require(scene.open("b"))
        let c = try #require(scene.open("c"))
        _ = scene.release(b)
        _ = scene.release(a)
        _ = scene.release(c)
        let admission = scene.request("d")
        #expect(admission.effects.closes == [b])
        #expect(admission.effects.dials.map(\.key) == ["d"])
        #expect(scene.pool.hostCounts["b"] == nil)
        #expect(scene.faults.isEmpty)
    }

    @Test("A host without connections gets the slot that another host frees")
    func totalLimitAcrossHosts() throws {
        let scene = PoolScene(PoolLimits(totalConnections: 1))
        let a = try #require(scene.open("a"))
        let admission = scene.request("b")
        #expect(admission.effects.isEmpty)
        let effects = scene.release(a, isReusable: false)
        #expect(effects.closes == [a])
        let dial = try #require(effects.dials.first)
        #expect(dial.key == "b")
        #expect(scene.succeed(dial.connection).grant?.waiter == admission.waiter)
        #expect(scene.faults.isEmpty)
    }

    @Test("A connection without a waiter of its host is closed on release if another host is blocked")
    func releaseMakesRoomForOthers() throws {
        let scene = PoolScene(PoolLimits(totalConnections: 1))
        let a = try #require(scene.open("a"))
        _ = try #require(scene.wait("b"))
        let effects = scene.release(a)
        #expect(effects.closes == [a])
        #expect(effects.dials.map(\.key) == ["b"])
        #expect(scene.faults.isEmpty)
    }

    @Test("A failed dial frees a slot for the next blocked host")
    func failureMakesRoomForOthers() throws {
        let scene = PoolScene(PoolLimits(totalConnections: 1))
        let a = scene.request("a")
        _ = try #require(scene.wait("b"))
        let effects = scene.fail(try #require(a.effects.dials.first).connection)
        #expect(effects.failures == [try #require(a.waiter)])
        #expect(effects.dials.map(\.key) == ["b"])
        #expect(scene.faults.isEmpty)
    }

    @Test("Blocked hosts get slots in the order of their first requests, urgent ones first")
    func blockedOrder() throws {
        let scene = PoolScene(PoolLimits(totalConnections: 1))
        var connection = try #require(scene.open("a"))
        let keys: [(String, RequestPriority)] = [
            ("b", .normal), ("c", .low), ("d", .highest), ("e", .normal), ("f", .high),
        ]
        for (key, priority) in keys { _ = try #require(scene.wait(key, priority)) }
        var order: [String] = []
        for _ in keys {
            let dial = try #require(scene.release(connection).dials.first)
            order.append(dial.key)
            connection = try #require(scene.succeed(dial.connection).grant).connection
        }
        #expect(order == ["d", "f", "b", "e", "c"])
        #expect(scene.faults.isEmpty)
    }

    @Test("A blocked host whose urgent request is cancelled moves back in the queue")
    func blockedOrderAfterCancel() throws {
        let scene = PoolScene(PoolLimits(totalConnections: 1))
        let connection = try #require(scene.open("a"))
        _ = try #require(scene.wait("b", .low))
        let urgent = try #require(scene.wait("b", .highest))
        _ = try #require(scene.wait("c", .normal))
        #expect(scene.cancel(urgent).outcome == .withdrawn)
        #expect(scene.release(connection).dials.map(\.key) == ["c"])
        #expect(scene.faults.isEmpty)
    }

    @Test("A host whose last blocked request is cancelled is removed")
    func blockedCancelForgets() throws {
        let scene = PoolScene(PoolLimits(totalConnections: 1))
        let connection = try #require(scene.open("a"))
        let waiter = try #require(scene.wait("b"))
        #expect(scene.cancel(waiter).outcome == .withdrawn)
        #expect(scene.pool.hostCounts["b"] == nil)
        #expect(scene.release(connection).isEmpty)
        #expect(scene.faults.isEmpty)
    }

    @Test("A dead host uses no slots beyond its own limit")
    func deadHostIsBounded() throws {
        let scene = PoolScene(PoolLimits(connectionsPerHost: 4, totalConnections: 8))
        for _ in 0..<100 { _ = try #require(scene.wait("dead")) }
        #expect(scene.pool.hostCounts["dead"] == PoolCounts(dialing: 4, waiting: 100))
        #expect(scene.open("alive") != nil)
        #expect(scene.faults.isEmpty)
    }

    @Test("A connection beyond the idle limit of its host closes the host's longest idle one")
    func idlePerHost() throws {
        let scene = PoolScene(PoolLimits(idleConnectionsPerHost: 1))
        let first = try #require(scene.open())
        let second = try #require(scene.open())
        _ = scene.release(first)
        #expect(scene.release(second) == StringPool.Effects(closes: [first]))
        #expect(scene.faults.isEmpty)
    }

    @Test("A connection beyond the idle limit of the pool closes the longest idle one of all hosts")
    func idleInTotal() throws {
        let scene = PoolScene(PoolLimits(idleConnections: 1))
        let a = try #require(scene.open("a"))
        let b = try #require(scene.open("b"))
        _ = scene.release(a)
        #expect(scene.release(b) == StringPool.Effects(closes: [a]))
        #expect(scene.pool.hostCounts == ["b": PoolCounts(idle: 1)])
        #expect(scene.faults.isEmpty)
    }

    @Test("A pool without idle connections closes a released one unless a request waits for it")
    func noIdle() throws {
        let scene = PoolScene(PoolLimits(connectionsPerHost: 1, idleConnectionsPerHost: 0))
        let connection = try #require(scene.open())
        let waiter = try #require(scene.wait())
        #expect(scene.release(connection).grant?.waiter == waiter)
        #expect(scene.release(connection) == StringPool.Effects(closes: [connection]))
        #expect(scene.pool.hostCounts.isEmpty)
        #expect(scene.faults.isEmpty)
    }

    @Test("Higher limits start dials for queued requests in order")
    func raise() throws {
        let scene = PoolScene(PoolLimits(connectionsPerHost: 1))
        let connection = try #require(scene.open())
        for _ in 0..<4 { _ = try #require(scene.wait()) }
        let effects = scene.setLimits(PoolLimits(connectionsPerHost: 3))
        #expect(effects.dials.count == 2)
        #expect(effects.closes.isEmpty)
        #expect(scene.pool.counts == PoolCounts(leased: 1, dialing: 2, waiting: 4))
        _ = scene.release(connection)
        #expect(scene.faults.isEmpty)
    }

    @Test("Lower limits close idle connections, and then connections in use as they are released")
    func lower() throws {
        let scene = PoolScene()
        let all = try (0..<4).map { _ in try #require(scene.open()) }
        _ = scene.release(all[0])
        let effects = scene.setLimits(PoolLimits(connectionsPerHost: 1), isDraining: true)
        #expect(effects == StringPool.Effects(closes: [all[0]]))
        #expect(scene.release(all[1]).closes == [all[1]])
        let waiter = try #require(scene.wait())
        #expect(scene.release(all[2]).closes == [all[2]])
        #expect(scene.release(all[3]).grant == PoolGrant(waiter: waiter, connection: all[3]))
        #expect(scene.faults.isEmpty)
    }

    @Test("A lower total limit closes the connections that were idle the longest")
    func lowerTotal() throws {
        let scene = PoolScene()
        let a = try #require(scene.open("a"))
        let b = try #require(scene.open("b"))
        let c = try #require(scene.open("c"))
        _ = scene.release(b)
        _ = scene.release(c)
        let effects = scene.setLimits(PoolLimits(totalConnections: 2))
        #expect(effects == StringPool.Effects(closes: [b]))
        #expect(scene.release(a).isEmpty)
        #expect(scene.faults.isEmpty)
    }

    @Test("A dial that succeeds above a lowered limit is closed")
    func lowerWhileDialing() throws {
        let scene = PoolScene()
        let first = scene.request()
        let second = scene.request()
        _ = scene.setLimits(PoolLimits(connectionsPerHost: 1), isDraining: true)
        let dial = try #require(first.effects.dials.first).connection
        let waiter = try #require(first.waiter)
        #expect(scene.succeed(dial) == StringPool.Effects(closes: [dial], dialAssignmentChanges: [waiter]))
        let other = try #require(second.effects.dials.first).connection
        #expect(scene.succeed(other).grant?.waiter == waiter)
        #expect(scene.release(other).grant?.waiter == second.waiter)
        #expect(scene.faults.isEmpty)
    }

    @Test("Limits below their range are clamped")
    func clamped() throws {
        let nothing = PoolLimits(
            connectionsPerHost: 0, totalConnections: -3, idleConnectionsPerHost: -1, idleConnections: -1,
            idleLifetime: .seconds(-1), maximumAge: .seconds(-1), maximumUses: 0,
            keepAliveMargin: .seconds(-1),
            agingInterval: .seconds(-1))
        let scene = PoolScene(nothing)
        let connection = try #require(scene.open())
        #expect(scene.release(connection).closes == [connection])
        #expect(scene.faults.isEmpty)
    }

    @Test("The largest limits do not overflow")
    func extremes() throws {
        let huge = PoolLimits(
            connectionsPerHost: .max, totalConnections: .max, idleConnectionsPerHost: .max,
            idleConnections: .max, idleLifetime: .seconds(Int64.max), maximumAge: .seconds(Int64.max),
            maximumUses: .max, keepAliveMargin: .seconds(Int64.max), agingInterval: .seconds(Int64.max))
        let scene = PoolScene(huge)
        scene.now = .max - 1
        let connection = try #require(scene.open())
        _ = try #require(scene.wait("a", .lowest))
        _ = scene.release(connection, keepAlive: .max)
        #expect(scene.faults.isEmpty)
    }
}
