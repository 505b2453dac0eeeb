import Testing

@testable import MartletPool

@Suite("Pool: shutdown")
struct PoolShutdownTests {
    @Test("Shutdown fails waiters, closes idle connections, cancels dials and drains connections in use")
    func shutdown() throws {
        let scene = PoolScene(PoolLimits(connectionsPerHost: 2, totalConnections: 4))
        let leased = try #require(scene.open("a"))
        let idle = try #require(scene.open("b"))
        _ = scene.release(idle)
        let first = scene.request("c", .low)
        let second = try #require(scene.wait("c", .high))
        let dials = [try #require(first.effects.dials.first).connection]
        let effects = scene.shutdown()
        #expect(effects.closes == [idle])
        #expect(effects.failures == [try #require(first.waiter), second])
        #expect(effects.abandons.count == 2)
        #expect(effects.abandons.first == dials[0])
        #expect(!scene.pool.isDrained)
        for dial in effects.abandons { #expect(scene.fail(dial).isEmpty) }
        #expect(scene.release(leased) == StringPool.Effects(closes: [leased]))
        #expect(scene.pool.isDrained)
        #expect(scene.pool.hostCounts.isEmpty)
        #expect(scene.faults.isEmpty)
    }

    @Test("After shutdown requests are rejected")
    func rejectsRequests() {
        let scene = PoolScene()
        _ = scene.shutdown()
        #expect(scene.request() == StringPool.Admission())
        #expect(scene.request().isRejected)
        #expect(scene.pool.isDrained)
        #expect(scene.shutdown().isEmpty)
        #expect(scene.faults.isEmpty)
    }

    @Test("A dial that succeeds after shutdown is closed")
    func lateDial() throws {
        let scene = PoolScene()
        let dial = try #require(scene.request().effects.dials.first).connection
        _ = scene.shutdown()
        #expect(scene.succeed(dial) == StringPool.Effects(closes: [dial]))
        #expect(scene.pool.isDrained)
        #expect(scene.faults.isEmpty)
    }

    @Test("A check-out that is rejected after shutdown closes the connection and rejects the request")
    func lateRejection() throws {
        let scene = PoolScene()
        let connection = try #require(scene.open())
        _ = scene.shutdown()
        let admission = scene.reject(connection)
        #expect(admission.isRejected)
        #expect(admission.effects.closes == [connection])
        #expect(scene.pool.isDrained)
        #expect(scene.faults.isEmpty)
    }

    @Test("A cancellation after shutdown finds no request")
    func lateCancel() throws {
        let scene = PoolScene()
        let waiter = try #require(scene.wait())
        #expect(scene.shutdown().failures == [waiter])
        #expect(scene.cancel(waiter).outcome == .unknown)
        #expect(scene.faults.isEmpty)
    }
}
