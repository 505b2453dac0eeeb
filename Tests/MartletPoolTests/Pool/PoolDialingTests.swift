import Testing

@testable import MartletPool

@Suite("Pool: dialing")
struct PoolDialingTests {
    @Test("Each queued request has its dial until the host's limit is reached")
    func dialsUpToLimit() {
        let scene = PoolScene(PoolLimits(connectionsPerHost: 2))
        #expect(scene.request().effects.dials.count == 1)
        #expect(scene.request().effects.dials.count == 1)
        #expect(scene.request().effects.dials.isEmpty)
        #expect(scene.pool.counts == PoolCounts(dialing: 2, waiting: 3))
        #expect(scene.faults.isEmpty)
    }

    @Test(
        "A released connection goes to the first request, and the dialed one to the next")
    func freedWhileDialing() throws {
        let scene = PoolScene(PoolLimits(connectionsPerHost: 2))
        let connection = try #require(scene.open())
        let first = scene.request()
        let dial = try #require(first.effects.dials.first)
        let next = try #require(scene.wait())
        #expect(scene.release(connection).grant?.waiter == first.waiter)
        let effects = scene.succeed(dial.connection)
        #expect(effects == StringPool.Effects(grant: PoolGrant(waiter: next, connection: dial.connection)))
        #expect(scene.faults.isEmpty)
    }

    @Test("A dialed connection without a waiter becomes idle")
    func dialedBecomesIdle() throws {
        let scene = PoolScene()
        let connection = try #require(scene.open())
        let admission = scene.request()
        let dial = try #require(admission.effects.dials.first)
        #expect(scene.release(connection).grant?.waiter == admission.waiter)
        #expect(scene.succeed(dial.connection).isEmpty)
        #expect(scene.pool.counts == PoolCounts(leased: 1, idle: 1))
        #expect(scene.request().lease == dial.connection)
        #expect(scene.faults.isEmpty)
    }

    @Test("A spare dial serves the next request instead of another dial")
    func spareDialIsTaken() throws {
        let scene = PoolScene()
        let connection = try #require(scene.open())
        let dial = try #require(scene.request().effects.dials.first)
        _ = scene.release(connection)
        let admission = scene.request()
        #expect(admission.effects.isEmpty)
        #expect(scene.succeed(dial.connection).grant?.waiter == admission.waiter)
        #expect(scene.faults.isEmpty)
    }

    @Test("A more urgent request takes the connection that another one dialed, and leaves its own dial to it")
    func urgentTakesDial() throws {
        let scene = PoolScene()
        let low = scene.request("a", .low)
        let high = scene.request("a", .high)
        let lowDial = try #require(low.effects.dials.first).connection
        let highDial = try #require(high.effects.dials.first).connection
        #expect(scene.succeed(lowDial).grant?.waiter == high.waiter)
        #expect(scene.succeed(highDial).grant?.waiter == low.waiter)
        #expect(scene.faults.isEmpty)
    }

    @Test("A failed dial fails only the request that started it")
    func failureToCause() throws {
        let scene = PoolScene()
        let first = scene.request()
        let second = scene.request()
        let dial = try #require(second.effects.dials.first).connection
        #expect(scene.fail(dial) == StringPool.Effects(failures: [try #require(second.waiter)]))
        #expect(scene.pool.counts == PoolCounts(dialing: 1, waiting: 1))
        #expect(scene.cancel(try #require(first.waiter)).outcome == .withdrawn)
        #expect(scene.faults.isEmpty)
    }

    @Test("After a failed dial the next one is made for the first request without a dial")
    func failureThenNextDial() throws {
        let scene = PoolScene(PoolLimits(connectionsPerHost: 1))
        let first = scene.request()
        let waiting = try #require(scene.wait())
        let dial = try #require(first.effects.dials.first).connection
        let effects = scene.fail(dial)
        #expect(effects.failures == [try #require(first.waiter)])
        let next = try #require(effects.dials.first).connection
        #expect(scene.fail(next) == StringPool.Effects(failures: [waiting]))
        #expect(scene.pool.hostCounts.isEmpty)
        #expect(scene.faults.isEmpty)
    }

    @Test("Each of several waiters receives the failure of a dead host once")
    func deadHost() throws {
        let scene = PoolScene(PoolLimits(connectionsPerHost: 2))
        var waiters: Set<PoolWaiterID> = []
        var dials: [PoolConnectionID] = []
        for _ in 0..<7 {
            let admission = scene.request()
            waiters.insert(try #require(admission.waiter))
            dials += admission.effects.dials.map(\.connection)
        }
        var failureCount = 0
        while let dial = dials.popLast() {
            let effects = scene.fail(dial)
            for waiter in effects.failures { #expect(waiters.remove(waiter) != nil) }
            failureCount += effects.failures.count
            dials += effects.dials.map(\.connection)
        }
        #expect(failureCount == 7)
        #expect(waiters.isEmpty)
        #expect(scene.pool.hostCounts.isEmpty)
        #expect(scene.faults.isEmpty)
    }

    @Test("A failed dial whose request was served by another connection is reported to no request")
    func failureToNobody() throws {
        let scene = PoolScene()
        let connection = try #require(scene.open())
        let admission = scene.request()
        let dial = try #require(admission.effects.dials.first).connection
        _ = scene.release(connection)
        #expect(scene.fail(dial).isEmpty)
        #expect(scene.pool.counts == PoolCounts(leased: 1))
        #expect(scene.faults.isEmpty)
    }

    @Test("A request that adopted a dial does not receive its failure but gets a dial of its own")
    func failureOfAdoptedDial() throws {
        let scene = PoolScene(PoolLimits(connectionsPerHost: 1))
        let first = scene.request()
        let waiter = try #require(scene.wait())
        let dial = try #require(first.effects.dials.first).connection
        let cancelled = scene.cancel(try #require(first.waiter))
        #expect(
            cancelled
                == StringPool.Cancellation(
                    outcome: .withdrawn, effects: StringPool.Effects(dialAssignmentChanges: [waiter])))
        let effects = scene.fail(dial)
        #expect(effects.failures.isEmpty)
        let own = try #require(effects.dials.first).connection
        #expect(scene.fail(own).failures == [waiter])
        #expect(scene.faults.isEmpty)
    }

    @Test("The dial of a cancelled request is cancelled if there is no other waiter")
    func cancelAbandonsDial() throws {
        let scene = PoolScene()
        let admission = scene.request()
        let dial = try #require(admission.effects.dials.first).connection
        let answer = scene.cancel(try #require(admission.waiter))
        #expect(
            answer
                == StringPool.Cancellation(outcome: .withdrawn, effects: StringPool.Effects(abandons: [dial]))
        )
        #expect(scene.pool.counts == PoolCounts(dialing: 1))
        #expect(scene.fail(dial).isEmpty)
        #expect(scene.pool.hostCounts.isEmpty)
        #expect(scene.faults.isEmpty)
    }

    @Test("An adopted dial is cancelled if its new request is cancelled too")
    func cancelAdoptedDial() throws {
        let scene = PoolScene(PoolLimits(connectionsPerHost: 1))
        let first = scene.request()
        let waiter = try #require(scene.wait())
        let dial = try #require(first.effects.dials.first).connection
        #expect(
            scene.cancel(try #require(first.waiter)).effects
                == StringPool.Effects(dialAssignmentChanges: [waiter]))
        #expect(scene.cancel(waiter).effects == StringPool.Effects(abandons: [dial]))
        #expect(scene.faults.isEmpty)
    }

    @Test("A cancelled dial that succeeds serves the current waiter")
    func abandonedSucceeds() throws {
        let scene = PoolScene(PoolLimits(connectionsPerHost: 1))
        let admission = scene.request()
        let dial = try #require(admission.effects.dials.first).connection
        _ = scene.cancel(try #require(admission.waiter))
        let waiter = try #require(scene.wait())
        #expect(scene.succeed(dial).grant == PoolGrant(waiter: waiter, connection: dial))
        #expect(scene.faults.isEmpty)
    }

    @Test("The end of a cancelled dial frees a slot for the dial of a new request")
    func abandonedFails() throws {
        let scene = PoolScene(PoolLimits(connectionsPerHost: 1))
        let admission = scene.request()
        let dial = try #require(admission.effects.dials.first).connection
        _ = scene.cancel(try #require(admission.waiter))
        let next = scene.request()
        #expect(next.effects.isEmpty)
        let effects = scene.fail(dial)
        #expect(effects.failures.isEmpty)
        #expect(effects.dials.count == 1)
        #expect(scene.faults.isEmpty)
    }

    @Test("A closed connection frees a slot for the dial of a queued request")
    func closeMakesRoom() throws {
        let scene = PoolScene(PoolLimits(connectionsPerHost: 1))
        let connection = try #require(scene.open())
        let waiter = try #require(scene.wait())
        let effects = scene.release(connection, isReusable: false)
        let dial = try #require(effects.dials.first).connection
        #expect(effects.closes == [connection])
        #expect(scene.succeed(dial).grant?.waiter == waiter)
        #expect(scene.faults.isEmpty)
    }
}
