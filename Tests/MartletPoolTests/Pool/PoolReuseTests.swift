import Testing

@testable import MartletPool

@Suite("Pool: reuse")
struct PoolReuseTests {
    @Test("The first request waits for its dial and receives the dialed connection")
    func firstRequest() throws {
        let scene = PoolScene()
        let admission = scene.request("a")
        let waiter = try #require(admission.waiter)
        let dial = try #require(admission.effects.dials.first)
        #expect(admission.lease == nil)
        #expect(
            admission.effects
                == StringPool.Effects(dials: [StringPool.Dial(connection: dial.connection, key: "a")]))
        #expect(scene.pool.key(of: dial.connection) == "a")
        let effects = scene.succeed(dial.connection)
        #expect(effects == StringPool.Effects(grant: PoolGrant(waiter: waiter, connection: dial.connection)))
        #expect(scene.faults.isEmpty)
    }

    @Test("A released connection is idle and serves the next request immediately")
    func reuse() throws {
        let scene = PoolScene()
        let connection = try #require(scene.open())
        #expect(scene.release(connection).isEmpty)
        #expect(scene.pool.counts == PoolCounts(idle: 1))
        #expect(scene.request("a") == StringPool.Admission(lease: connection))
        #expect(scene.pool.counts == PoolCounts(leased: 1))
        #expect(scene.faults.isEmpty)
    }

    @Test("Taking an idle connection returns what a request would get, and otherwise changes nothing")
    func takingIdle() throws {
        let scene = PoolScene()
        #expect(scene.takeIdle() == nil)
        let connection = try #require(scene.open())
        #expect(scene.takeIdle() == nil)
        _ = scene.release(connection)
        #expect(scene.takeIdle("b") == nil)
        #expect(scene.pool.counts == PoolCounts(idle: 1))
        #expect(scene.takeIdle() == connection)
        #expect(scene.pool.counts == PoolCounts(leased: 1))
        _ = scene.release(connection)
        scene.now += 3600 * poolSecond
        #expect(scene.takeIdle() == nil)
        #expect(scene.pool.counts == PoolCounts(idle: 1))
        _ = scene.shutdown()
        #expect(scene.takeIdle() == nil)
        #expect(scene.faults.isEmpty)
    }

    @Test("The most recently used idle connection is used first")
    func lastInFirstOut() throws {
        let scene = PoolScene()
        let first = try #require(scene.open())
        let second = try #require(scene.open())
        _ = scene.release(second)
        _ = scene.release(first)
        #expect(scene.request().lease == first)
        #expect(scene.request().lease == second)
        #expect(scene.faults.isEmpty)
    }

    @Test("Connections of one key never serve another")
    func keysApart() throws {
        let scene = PoolScene()
        let connection = try #require(scene.open("a"))
        _ = scene.release(connection)
        let admission = scene.request("b")
        #expect(admission.lease == nil)
        #expect(admission.effects.dials.first?.key == "b")
        #expect(scene.faults.isEmpty)
    }

    @Test("A connection that is not reusable is closed on release")
    func notReusable() throws {
        let scene = PoolScene()
        let connection = try #require(scene.open())
        #expect(scene.release(connection, isReusable: false) == StringPool.Effects(closes: [connection]))
        #expect(scene.pool.hostCounts.isEmpty)
        #expect(scene.faults.isEmpty)
    }

    @Test("A connection that is released twice is released once")
    func releasedTwice() throws {
        let scene = PoolScene()
        let connection = try #require(scene.open())
        _ = scene.release(connection)
        #expect(scene.release(connection).isEmpty)
        #expect(scene.pool.counts == PoolCounts(idle: 1))
        #expect(scene.faults.isEmpty)
    }

    @Test("A late event does not affect the connection that reuses the slot")
    func generations() throws {
        let scene = PoolScene()
        let old = try #require(scene.open())
        _ = scene.release(old, isReusable: false)
        let new = try #require(scene.open())
        #expect(new.index == old.index)
        #expect(scene.release(old, isReusable: false).isEmpty)
        #expect(scene.die(old).isEmpty)
        #expect(scene.succeed(old).isEmpty)
        #expect(scene.fail(old).isEmpty)
        #expect(scene.reject(old) == StringPool.Admission())
        #expect(scene.pool.counts == PoolCounts(leased: 1))
        #expect(scene.pool.key(of: old) == nil)
        #expect(scene.faults.isEmpty)
    }

    @Test("An idle connection that dies is closed and never reused")
    func idleDeath() throws {
        let scene = PoolScene()
        let connection = try #require(scene.open())
        _ = scene.release(connection)
        #expect(scene.die(connection) == StringPool.Effects(closes: [connection]))
        #expect(scene.request().lease == nil)
        #expect(scene.faults.isEmpty)
    }

    @Test("The death of a connection in use is handled by its request")
    func leasedDeath() throws {
        let scene = PoolScene()
        let connection = try #require(scene.open())
        #expect(scene.die(connection).isEmpty)
        #expect(scene.pool.counts == PoolCounts(leased: 1))
        #expect(scene.release(connection, isReusable: false).closes == [connection])
        #expect(scene.faults.isEmpty)
    }

    @Test("A rejected check-out closes the connection and returns the next idle one")
    func rejectedThenIdle() throws {
        let scene = PoolScene()
        let first = try #require(scene.open())
        let second = try #require(scene.open())
        _ = scene.release(first)
        _ = scene.release(second)
        #expect(scene.request().lease == second)
        let admission = scene.reject(second)
        #expect(
            admission == StringPool.Admission(lease: first, effects: StringPool.Effects(closes: [second])))
        #expect(scene.faults.isEmpty)
    }

    @Test("A rejected check-out without another idle connection starts a dial")
    func rejectedThenDial() throws {
        let scene = PoolScene(PoolLimits(connectionsPerHost: 1, totalConnections: 1))
        let dead = try #require(scene.open())
        _ = scene.release(dead)
        #expect(scene.request().lease == dead)
        let admission = scene.reject(dead)
        let dial = try #require(admission.effects.dials.first)
        #expect(admission.waiter != nil)
        #expect(admission.effects.closes == [dead])
        #expect(scene.succeed(dial.connection).grant?.waiter == admission.waiter)
        #expect(scene.faults.isEmpty)
    }

    @Test("A request whose check-out was rejected retains its position in the queue")
    func rejectedKeepsPosition() throws {
        let scene = PoolScene(PoolLimits(connectionsPerHost: 2))
        let first = try #require(scene.open())
        let other = try #require(scene.open())
        let early = try #require(scene.wait())
        let late = try #require(scene.wait())
        #expect(scene.release(first).grant?.waiter == early)
        let again = scene.reject(first)
        let waiter = try #require(again.waiter)
        #expect(scene.release(other).grant?.waiter == waiter)
        let dial = try #require(again.effects.dials.first)
        #expect(scene.succeed(dial.connection).grant?.waiter == late)
        #expect(scene.faults.isEmpty)
    }

    @Test("Two rejected check-outs are queued again in their original order")
    func rejectedKeepOrder() throws {
        let scene = PoolScene(PoolLimits(connectionsPerHost: 2))
        let one = try #require(scene.open())
        let two = try #require(scene.open())
        let early = try #require(scene.wait())
        let late = try #require(scene.wait())
        #expect(scene.release(one).grant?.waiter == early)
        #expect(scene.release(two).grant?.waiter == late)
        let lateAgain = scene.reject(two)
        let earlyAgain = scene.reject(one)
        let dial = try #require(lateAgain.effects.dials.first)
        #expect(scene.succeed(dial.connection).grant?.waiter == earlyAgain.waiter)
        #expect(scene.faults.isEmpty)
    }
}
