import Testing

@testable import MartletPool

@Suite("Pool: priorities")
struct PoolPriorityTests {
    /// Returns a pool whose only connection is in use.
    private func busy(_ limits: PoolLimits = PoolLimits(connectionsPerHost: 1)) throws -> (
        PoolScene, PoolConnectionID
    ) {
        let scene = PoolScene(limits)
        let connection = try #require(scene.open())
        return (scene, connection)
    }

    /// Returns the wait of a thumbnail. A hundred uploads of one second each are queued, and the running upload needs
    /// half a second more.
    private func waitOfThumbnail(_ uploads: RequestPriority, _ thumbnail: RequestPriority) throws -> UInt64 {
        let (scene, connection) = try busy()
        for _ in 0..<100 { _ = try #require(scene.wait("a", uploads)) }
        scene.now += poolSecond / 2
        let asked = scene.now
        let waiter = try #require(scene.wait("a", thumbnail))
        scene.now += poolSecond / 2
        while scene.release(connection).grant?.waiter != waiter { scene.now += poolSecond }
        #expect(scene.faults.isEmpty)
        return scene.now - asked
    }

    @Test(
        "A request that is queued again with its original arrival precedes later ones"
    )
    func oldArrival() throws {
        let (scene, connection) = try busy()
        let first = try #require(scene.wait())
        let arrival = try #require(scene.pool.arrival(of: first))
        scene.now += poolSecond
        let second = try #require(scene.wait())
        #expect(scene.cancel(first).outcome == .withdrawn)
        #expect(scene.pool.arrival(of: first) == nil)
        scene.now += poolSecond
        let again = try #require(scene.pool.request("a", arrival: arrival, now: scene.now).waiter)
        let early = try #require(scene.pool.request("a", arrival: .max, now: scene.now).waiter)
        #expect(scene.release(connection).grant?.waiter == again)
        #expect(scene.release(connection).grant?.waiter == second)
        #expect(scene.release(connection).grant?.waiter == early)
        #expect(scene.faults.isEmpty)
    }

    @Test("A thumbnail waits for the running upload, but not for the hundred queued ones")
    func thumbnailWaits() throws {
        #expect(try waitOfThumbnail(.low, .high) == poolSecond / 2)
        #expect(try waitOfThumbnail(.normal, .high) == poolSecond / 2)
        // The wait at the same priority as the uploads.
        #expect(try waitOfThumbnail(.low, .low) == 100 * poolSecond + poolSecond / 2)
    }

    @Test("An upload of the lowest priority is served although a thumbnail arrives every second")
    func uploadIsServed() throws {
        let (scene, connection) = try busy()
        let asked = scene.now
        let upload = try #require(scene.wait("a", .lowest))
        for _ in 0..<100 {
            scene.now += poolSecond
            _ = try #require(scene.wait("a", .high))
            if scene.release(connection).grant?.waiter == upload { break }
        }
        // Three levels of five seconds, and then the first thumbnail.
        #expect(scene.now - asked == 16 * poolSecond)
        #expect(scene.faults.isEmpty)
    }

    @Test("A queued request with a raised priority precedes requests of lower priority")
    func raised() throws {
        let (scene, connection) = try busy()
        let first = try #require(scene.wait())
        let second = try #require(scene.wait())
        let third = try #require(scene.wait("a", .low))
        scene.setPriority(.high, of: third)
        for waiter in [third, first, second] {
            #expect(scene.release(connection).grant?.waiter == waiter)
        }
        #expect(scene.faults.isEmpty)
    }

    @Test("A queued request with a lowered priority follows requests of higher priority")
    func lowered() throws {
        let (scene, connection) = try busy()
        let first = try #require(scene.wait())
        let second = try #require(scene.wait())
        scene.setPriority(.lowest, of: first)
        for waiter in [second, first] {
            #expect(scene.release(connection).grant?.waiter == waiter)
        }
        #expect(scene.faults.isEmpty)
    }

    @Test("A raised request moves its host to the front of the queue for the total limit")
    func raisedAcrossHosts() throws {
        let scene = PoolScene(PoolLimits(totalConnections: 1))
        let connection = try #require(scene.open("a"))
        _ = try #require(scene.wait("b"))
        let waiter = try #require(scene.wait("c"))
        scene.setPriority(.high, of: waiter)
        #expect(scene.release(connection).dials.map(\.key) == ["c"])
        #expect(scene.faults.isEmpty)
    }

    @Test(
        "A request that was raised after its grant is queued with the new priority if the connection is dead")
    func raisedWhileGranted() throws {
        let (scene, connection) = try busy()
        let waiter = try #require(scene.wait("a", .low))
        #expect(scene.release(connection).grant?.waiter == waiter)
        let other = try #require(scene.wait())
        scene.setPriority(.high, of: waiter)
        let admission = scene.reject(connection)
        let again = try #require(admission.waiter)
        let dial = try #require(admission.effects.dials.first).connection
        let granted = try #require(scene.succeed(dial).grant)
        #expect(granted.waiter == again)
        #expect(scene.release(granted.connection).grant?.waiter == other)
        #expect(scene.faults.isEmpty)
    }

    @Test("A priority change for an ended request has no effect")
    func raisedTooLate() throws {
        let (scene, connection) = try busy()
        let waiter = try #require(scene.wait())
        #expect(scene.cancel(waiter).outcome == .withdrawn)
        let other = try #require(scene.wait("a", .low))
        scene.setPriority(.highest, of: waiter)
        let normal = try #require(scene.wait())
        #expect(scene.release(connection).grant?.waiter == normal)
        #expect(scene.release(connection).grant?.waiter == other)
        #expect(scene.faults.isEmpty)
    }

    // MARK: LIFO order

    @Test("Requests with LIFO order are served last come, first served")
    func lastFirst() throws {
        let (scene, connection) = try busy()
        let waiters = try (0..<5).map { _ in
            scene.now += 1
            return try #require(scene.wait(order: .lastComeFirstServed))
        }
        for waiter in waiters.reversed() {
            #expect(scene.release(connection).grant?.waiter == waiter)
        }
        #expect(scene.faults.isEmpty)
    }

    @Test(
        "LIFO order yields to requests that waited an aging interval, so no request starves"
    )
    func lastFirstIsBounded() throws {
        let (scene, connection) = try busy()
        let patient = try #require(scene.wait(order: .lastComeFirstServed))
        var rounds = 0
        repeat {
            rounds += 1
            scene.now += poolSecond
            _ = try #require(scene.wait(order: .lastComeFirstServed))
            try #require(rounds < 100)
        } while scene.release(connection).grant?.waiter != patient
        // The request arrived at the start of an interval of five seconds, and the first round of the next interval
        // serves it.
        #expect(rounds == 5)
        #expect(scene.faults.isEmpty)
    }

    @Test("Without aging the last request is always first within its priority")
    func lastFirstWithoutAging() throws {
        let (scene, connection) = try busy(PoolLimits(connectionsPerHost: 1, agingInterval: nil))
        let old = try #require(scene.wait(order: .lastComeFirstServed))
        scene.now += 86_400 * poolSecond
        let young = try #require(scene.wait(order: .lastComeFirstServed))
        let urgent = try #require(scene.wait("a", .high))
        for waiter in [urgent, young, old] {
            #expect(scene.release(connection).grant?.waiter == waiter)
        }
        #expect(scene.faults.isEmpty)
    }

    @Test("With an aging interval of zero all requests are served in FIFO order")
    func lastFirstWithZeroAging() throws {
        let (scene, connection) = try busy(PoolLimits(connectionsPerHost: 1, agingInterval: .zero))
        let first = try #require(scene.wait(order: .lastComeFirstServed))
        scene.now += 1
        let second = try #require(scene.wait(order: .lastComeFirstServed))
        for waiter in [first, second] {
            #expect(scene.release(connection).grant?.waiter == waiter)
        }
        #expect(scene.faults.isEmpty)
    }

    @Test("A change of the aging interval reorders the queue")
    func agingChanges() throws {
        let (scene, connection) = try busy()
        let low = try #require(scene.wait("a", .low))
        scene.now += 8 * poolSecond
        let high = try #require(scene.wait("a", .high))
        _ = scene.setLimits(PoolLimits(connectionsPerHost: 1, agingInterval: .seconds(1)))
        #expect(scene.release(connection).grant?.waiter == low)
        #expect(scene.release(connection).grant?.waiter == high)
        #expect(scene.faults.isEmpty)
    }

    // MARK: Limits of individual hosts

    @Test("A host's own limit can be above or below that of the others")
    func hostLimits() throws {
        let scene = PoolScene(PoolLimits(connectionsPerHost: 2, connectionsToHosts: ["a": 3, "b": 1]))
        for (key, limit) in [("a", 3), ("b", 1), ("c", 2)] {
            for _ in 0..<5 { _ = try #require(scene.wait(key)) }
            #expect(scene.pool.hostCounts[key] == PoolCounts(dialing: limit, waiting: 5))
        }
        #expect(scene.faults.isEmpty)
    }

    @Test("A changed host limit applies immediately to queued requests and idle connections")
    func hostLimitChanges() throws {
        let scene = PoolScene(PoolLimits(connectionsPerHost: 1))
        let connection = try #require(scene.open())
        for _ in 0..<3 { _ = try #require(scene.wait()) }
        let effects = scene.setLimits(PoolLimits(connectionsPerHost: 1, connectionsToHosts: ["a": 3]))
        #expect(effects.dials.count == 2)
        for dial in effects.dials { #expect(scene.succeed(dial.connection).grant != nil) }
        let lowered = scene.setLimits(PoolLimits(connectionsPerHost: 1), isDraining: true)
        #expect(lowered.isEmpty)
        #expect(scene.release(connection).closes == [connection])
        #expect(scene.faults.isEmpty)
    }

    @Test("A limit for a name and port precedes a limit for the name")
    func hostNames() {
        let limits = PoolLimits(connectionsToHosts: ["a.example": 3, "a.example:8443": 1, "[::1]": 2])
        #expect(limits.connections(to: "a.example", port: 443) == 3)
        #expect(limits.connections(to: "a.example", port: 8443) == 1)
        #expect(limits.connections(to: "::1", port: 80) == 2)
        #expect(limits.connections(to: "b.example", port: 443) == nil)
        #expect(PoolLimits().connections(to: "a.example", port: 443) == nil)
    }
}
