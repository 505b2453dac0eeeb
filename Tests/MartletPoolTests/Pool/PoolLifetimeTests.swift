import Testing

@testable import MartletPool

@Suite("Pool: lifetimes")
struct PoolLifetimeTests {
    @Test("An idle connection is closed when its idle lifetime expires")
    func idleLifetime() throws {
        let scene = PoolScene()
        #expect(scene.pool.nextDeadline == nil)
        let connection = try #require(scene.open())
        #expect(scene.pool.nextDeadline == nil)
        _ = scene.release(connection)
        #expect(scene.pool.nextDeadline == scene.now + 60 * poolSecond)
        scene.now += 60 * poolSecond - 1
        #expect(scene.expire().isEmpty)
        scene.now += 1
        #expect(scene.expire() == StringPool.Effects(closes: [connection]))
        #expect(scene.pool.nextDeadline == nil)
        #expect(scene.pool.hostCounts.isEmpty)
        #expect(scene.faults.isEmpty)
    }

    @Test("After a suspend an expired connection is not reused, even if no timer fired")
    func suspended() throws {
        let scene = PoolScene()
        let first = try #require(scene.open())
        let second = try #require(scene.open())
        _ = scene.release(first)
        _ = scene.release(second)
        scene.now += 3600 * 1_000_000_000
        let admission = scene.request()
        #expect(admission.lease == nil)
        #expect(admission.effects.closes == [second, first])
        #expect(admission.effects.dials.count == 1)
        #expect(scene.faults.isEmpty)
    }

    @Test("Use of a connection renews its idle lifetime, and the old deadline closes nothing")
    func renewed() throws {
        let scene = PoolScene()
        let connection = try #require(scene.open())
        _ = scene.release(connection)
        let old = try #require(scene.pool.nextDeadline)
        scene.now += 50 * poolSecond
        #expect(scene.request().lease == connection)
        _ = scene.release(connection)
        scene.now = old
        #expect(scene.expire().isEmpty)
        #expect(scene.pool.nextDeadline == old + 50 * poolSecond)
        #expect(scene.faults.isEmpty)
    }

    @Test("The server's Keep-Alive timeout minus the margin limits the idle time")
    func keepAlive() throws {
        let scene = PoolScene()
        let connection = try #require(scene.open())
        _ = scene.release(connection, keepAlive: 5 * poolSecond)
        #expect(scene.pool.nextDeadline == scene.now + 4 * poolSecond)
        scene.now += 4 * poolSecond
        #expect(scene.expire().closes == [connection])
        #expect(scene.faults.isEmpty)
    }

    @Test("A connection that is returned unused keeps the server's Keep-Alive timeout")
    func keepAliveUnused() throws {
        let scene = PoolScene()
        let connection = try #require(scene.open())
        _ = scene.release(connection, keepAlive: 5 * poolSecond)
        let deadline = scene.now + 4 * poolSecond
        for _ in 1...2 {
            scene.now += poolSecond
            #expect(scene.request().lease == connection)
            #expect(scene.returnUnused(connection).isEmpty)
            #expect(scene.pool.nextDeadline == deadline)
        }
        #expect(scene.request().lease == connection)
        scene.now = deadline
        #expect(scene.returnUnused(connection).closes == [connection])
        #expect(scene.faults.isEmpty)
    }

    @Test("A connection that is returned unused has not been used")
    func usesUnused() throws {
        let scene = PoolScene(PoolLimits(maximumUses: 1))
        let connection = try #require(scene.open())
        #expect(scene.returnUnused(connection).isEmpty)
        #expect(scene.request().lease == connection)
        #expect(scene.release(connection).closes == [connection])
        #expect(scene.faults.isEmpty)
    }

    @Test("The margin is at most half of a short Keep-Alive timeout")
    func shortKeepAlive() throws {
        let scene = PoolScene()
        let connection = try #require(scene.open())
        _ = scene.release(connection, keepAlive: poolSecond)
        #expect(scene.pool.nextDeadline == scene.now + poolSecond / 2)
        #expect(scene.faults.isEmpty)
    }

    @Test("A Keep-Alive timeout of zero closes the connection, even if a request waits for it")
    func keepAliveZero() throws {
        let scene = PoolScene(PoolLimits(connectionsPerHost: 1))
        let connection = try #require(scene.open())
        _ = try #require(scene.wait())
        let effects = scene.release(connection, keepAlive: 0)
        #expect(effects.closes == [connection])
        #expect(effects.grant == nil)
        #expect(effects.dials.count == 1)
        #expect(scene.faults.isEmpty)
    }

    @Test("A Keep-Alive timeout longer than the idle lifetime does not prolong it")
    func longKeepAlive() throws {
        let scene = PoolScene()
        let connection = try #require(scene.open())
        _ = scene.release(connection, keepAlive: 600 * poolSecond)
        #expect(scene.pool.nextDeadline == scene.now + 60 * poolSecond)
        #expect(scene.faults.isEmpty)
    }

    @Test("A connection past its maximum age is closed on release and not reused")
    func ageOnRelease() throws {
        let scene = PoolScene(PoolLimits(connectionsPerHost: 1, maximumAge: .seconds(100)))
        let connection = try #require(scene.open())
        _ = try #require(scene.wait())
        scene.now += 100 * poolSecond
        let effects = scene.release(connection)
        #expect(effects.closes == [connection])
        #expect(effects.dials.count == 1)
        #expect(scene.faults.isEmpty)
    }

    @Test("An idle connection is closed when it reaches its maximum age")
    func ageWhileIdle() throws {
        let scene = PoolScene(PoolLimits(maximumAge: .seconds(70)))
        let connection = try #require(scene.open())
        scene.now += 30 * poolSecond
        _ = scene.release(connection)
        #expect(scene.pool.nextDeadline == scene.now + 40 * poolSecond)
        #expect(scene.faults.isEmpty)
    }

    @Test("A maximum age of zero still allows one request per connection")
    func ageZero() throws {
        let scene = PoolScene(PoolLimits(maximumAge: .zero))
        let connection = try #require(scene.open())
        #expect(scene.release(connection).closes == [connection])
        #expect(scene.faults.isEmpty)
    }

    @Test("A connection is closed after its maximum number of uses")
    func uses() throws {
        let scene = PoolScene(PoolLimits(maximumUses: 3))
        let connection = try #require(scene.open())
        _ = scene.release(connection)
        #expect(scene.request().lease == connection)
        _ = scene.release(connection)
        #expect(scene.request().lease == connection)
        #expect(scene.release(connection).closes == [connection])
        #expect(scene.faults.isEmpty)
    }

    @Test("A shorter idle lifetime immediately closes connections that were idle for longer")
    func shorterLifetime() throws {
        let scene = PoolScene()
        let old = try #require(scene.open())
        let young = try #require(scene.open())
        _ = scene.release(old)
        scene.now += 20 * poolSecond
        _ = scene.release(young)
        let effects = scene.setLimits(PoolLimits(idleLifetime: .seconds(10)))
        #expect(effects == StringPool.Effects(closes: [old]))
        #expect(scene.pool.nextDeadline == scene.now + 10 * poolSecond)
        #expect(scene.faults.isEmpty)
    }
}
