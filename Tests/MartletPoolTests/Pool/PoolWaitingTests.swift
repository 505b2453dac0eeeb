import Testing

@testable import MartletPool

@Suite("Pool: queueing")
struct PoolWaitingTests {
    /// Returns a pool whose only connection is in use.
    private func busy(_ limits: PoolLimits = PoolLimits(connectionsPerHost: 1)) throws -> (
        PoolScene, PoolConnectionID
    ) {
        let scene = PoolScene(limits)
        let connection = try #require(scene.open())
        return (scene, connection)
    }

    @Test("Requests of one priority are served in FIFO order")
    func firstComeFirstServed() throws {
        let (scene, connection) = try busy()
        var waiters: [PoolWaiterID] = []
        for _ in 0..<5 {
            let admission = scene.request()
            #expect(admission.effects.isEmpty)
            waiters.append(try #require(admission.waiter))
        }
        for waiter in waiters {
            let effects = scene.release(connection)
            #expect(effects == StringPool.Effects(grant: PoolGrant(waiter: waiter, connection: connection)))
        }
        #expect(scene.release(connection).isEmpty)
        #expect(scene.faults.isEmpty)
    }

    @Test("The more urgent of two requests that arrived together is served first")
    func priorities() throws {
        let (scene, connection) = try busy()
        let levels: [RequestPriority] = [.low, .highest, .normal, .lowest, .high]
        var waiters: [RequestPriority: PoolWaiterID] = [:]
        for level in levels { waiters[level] = scene.wait("a", level) }
        for level in levels.sorted(by: >) {
            #expect(scene.release(connection).grant?.waiter == waiters[level])
        }
        #expect(scene.faults.isEmpty)
    }

    @Test("A thumbnail overtakes uploads that were queued before it")
    func thumbnailsBeforeUploads() throws {
        let (scene, connection) = try busy()
        let upload = try #require(scene.wait("a", .low))
        scene.now += 4 * poolSecond
        let thumbnail = try #require(scene.wait("a", .high))
        #expect(scene.release(connection).grant?.waiter == thumbnail)
        #expect(scene.release(connection).grant?.waiter == upload)
        #expect(scene.faults.isEmpty)
    }

    @Test("A request gains a level for each aging interval in the queue")
    func aging() throws {
        let (scene, connection) = try busy()
        let low = try #require(scene.wait("a", .low))
        scene.now += 5 * poolSecond + 1
        let normal = try #require(scene.wait("a", .normal))
        #expect(scene.release(connection).grant?.waiter == low)
        #expect(scene.release(connection).grant?.waiter == normal)
        #expect(scene.faults.isEmpty)
    }

    @Test("At equal levels after aging the request with the higher priority is served first")
    func agingTie() throws {
        let (scene, connection) = try busy()
        _ = try #require(scene.wait("a", .low))
        scene.now += 5 * poolSecond
        let normal = try #require(scene.wait("a", .normal))
        #expect(scene.release(connection).grant?.waiter == normal)
        #expect(scene.faults.isEmpty)
    }

    @Test("The lowest priority is served although urgent requests keep arriving")
    func noStarvation() throws {
        let (scene, connection) = try busy()
        let lowest = try #require(scene.wait("a", .lowest))
        var served = 0
        for round in 1...30 {
            _ = try #require(scene.wait("a", .highest))
            if scene.release(connection).grant?.waiter == lowest {
                served = round
                break
            }
            scene.now += poolSecond
        }
        #expect(served == 22)  // The first request that arrived more than four intervals of 5 s later.
        #expect(scene.faults.isEmpty)
    }

    @Test("Without aging the order follows the priority strictly")
    func noAging() throws {
        let (scene, connection) = try busy(PoolLimits(connectionsPerHost: 1, agingInterval: nil))
        _ = try #require(scene.wait("a", .lowest))
        scene.now += 86_400 * poolSecond
        let highest = try #require(scene.wait("a", .highest))
        #expect(scene.release(connection).grant?.waiter == highest)
        #expect(scene.faults.isEmpty)
    }

    @Test("An aging interval of zero serves all requests in FIFO order")
    func noPriorities() throws {
        let (scene, connection) = try busy(PoolLimits(connectionsPerHost: 1, agingInterval: .zero))
        let lowest = try #require(scene.wait("a", .lowest))
        scene.now += 1
        _ = try #require(scene.wait("a", .highest))
        #expect(scene.release(connection).grant?.waiter == lowest)
        #expect(scene.faults.isEmpty)
    }

    @Test("A cancelled request is skipped")
    func cancelWaiting() throws {
        let (scene, connection) = try busy()
        let first = try #require(scene.wait())
        let second = try #require(scene.wait())
        let third = try #require(scene.wait())
        #expect(scene.cancel(second) == StringPool.Cancellation(outcome: .withdrawn))
        #expect(scene.release(connection).grant?.waiter == first)
        #expect(scene.release(connection).grant?.waiter == third)
        #expect(scene.faults.isEmpty)
    }

    @Test("Cancelling twice has the effect of cancelling once")
    func cancelTwice() throws {
        let (scene, _) = try busy()
        let waiter = try #require(scene.wait())
        #expect(scene.cancel(waiter).outcome == .withdrawn)
        #expect(scene.cancel(waiter).outcome == .unknown)
        #expect(scene.faults.isEmpty)
    }

    @Test("Cancelling between grant and check-out returns the granted connection and leaks no slot")
    func cancelAfterGrant() throws {
        let (scene, connection) = try busy()
        let first = try #require(scene.wait())
        let second = try #require(scene.wait())
        #expect(scene.release(connection).grant?.waiter == first)
        #expect(scene.cancel(first) == StringPool.Cancellation(outcome: .alreadyGranted(connection)))
        #expect(scene.cancel(first).outcome == .alreadyGranted(connection))
        #expect(scene.release(connection).grant == PoolGrant(waiter: second, connection: connection))
        #expect(scene.cancel(first).outcome == .unknown)
        _ = scene.release(connection)
        #expect(scene.pool.counts == PoolCounts(idle: 1))
        #expect(scene.faults.isEmpty)
    }

    @Test("Cancelling while a granted connection is being rejected does not cancel the new wait")
    func cancelOldNameAfterRejection() throws {
        let (scene, connection) = try busy()
        let waiter = try #require(scene.wait())
        _ = scene.release(connection)
        let again = scene.reject(connection)
        let name = try #require(again.waiter)
        #expect(name != waiter)
        #expect(scene.cancel(waiter).outcome == .unknown)
        #expect(scene.cancel(name).outcome == .withdrawn)
        #expect(scene.pool.counts.waiting == 0)
        #expect(scene.faults.isEmpty)
    }
}
