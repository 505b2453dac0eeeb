import Testing

@testable import MartletPool

@Suite("Pool: queries between events")
struct PoolQueriesTests {
    @Test("A dial and its request refer to each other until the dial ends")
    func dialAndWaiter() throws {
        let scene = PoolScene()
        let admission = scene.request()
        let waiter = try #require(admission.waiter)
        let dial = try #require(admission.effects.dials.first).connection
        #expect(scene.pool.isDialing(dial))
        #expect(scene.pool.isDialing(for: waiter))
        #expect(scene.pool.waiter(of: dial) == waiter)
        _ = scene.succeed(dial)
        #expect(!scene.pool.isDialing(dial))
        #expect(!scene.pool.isDialing(for: waiter))
        #expect(scene.pool.waiter(of: dial) == nil)
        #expect(scene.faults.isEmpty)
    }

    @Test("A request that waits for other connections has no dial")
    func withoutDial() throws {
        let scene = PoolScene(PoolLimits(connectionsPerHost: 1))
        _ = try #require(scene.open())
        let waiter = try #require(scene.wait())
        #expect(!scene.pool.isDialing(for: waiter))
        #expect(scene.faults.isEmpty)
    }

    @Test("A cancelled dial is still ending, for no request")
    func abandoned() throws {
        let scene = PoolScene()
        let admission = scene.request()
        let dial = try #require(admission.effects.dials.first).connection
        _ = scene.cancel(try #require(admission.waiter))
        #expect(scene.pool.isDialing(dial))
        #expect(scene.pool.waiter(of: dial) == nil)
        #expect(scene.faults.isEmpty)
    }

    @Test("A connection is idle only while it is open and not leased")
    func idle() throws {
        let scene = PoolScene()
        let connection = try #require(scene.open("a"))
        #expect(!scene.pool.isIdle(connection))
        _ = scene.release(connection)
        #expect(scene.pool.isIdle(connection))
        _ = scene.closeIdle("a")
        #expect(!scene.pool.isIdle(connection))
    }

    @Test("Closing the idle connections of one key retains those in use and those of others")
    func closeIdle() throws {
        let scene = PoolScene()
        let all = try ["a", "a", "a", "b"].map { try #require(scene.open($0)) }
        _ = scene.release(all[0])
        _ = scene.release(all[1])
        _ = scene.release(all[3])
        #expect(scene.closeIdle("a") == StringPool.Effects(closes: [all[1], all[0]]))
        #expect(scene.pool.counts == PoolCounts(leased: 1, idle: 1))
        #expect(scene.closeIdle("b").closes == [all[3]])
        #expect(scene.pool.hostCounts["b"] == nil)
        #expect(scene.closeIdle("unknown").isEmpty)
        #expect(scene.faults.isEmpty)
    }
}
