import Testing

@testable import MartletConnections

@Suite("Pool: priorities")
struct PoolPriorityTests {
    /// A pool whose only connection is in use.
    private func busy(_ limits: PoolLimits = PoolLimits(connectionsPerHost: 1)) throws -> (
        PoolScene, PoolConnectionID
    ) {
        let scene = PoolScene(limits)
        let connection = try #require(scene.open())
        return (scene, connection)
    }

    /// A hundred uploads wait that take a second each, and one that runs has half a second to go, as a thumbnail is asked for:
    /// how long it waits.
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
        "A request that left the line, and comes again with its arrival, is served before those that came after it"
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

    @Test("A thumbnail waits for the upload that runs, not for the hundred behind it")
    func thumbnailWaits() throws {
        #expect(try waitOfThumbnail(.low, .high) == poolSecond / 2)
        #expect(try waitOfThumbnail(.normal, .high) == poolSecond / 2)
        // What it would wait were it no more urgent than they.
        #expect(try waitOfThumbnail(.low, .low) == 100 * poolSecond + poolSecond / 2)
    }

    @Test("An upload of the lowest priority is served although a thumbnail comes every second")
    func uploadIsServed() throws {
        let (scene, connection) = try busy()
        let asked = scene.now
        let upload = try #require(scene.wait("a", .lowest))
        for _ in 0..<100 {
            scene.now += poolSecond
            _ = try #require(scene.wait("a", .high))
            if scene.release(connection).grant?.waiter == upload { break }
        }
        // Three levels of five seconds, and the first thumbnail after them.
        #expect(scene.now - asked == 16 * poolSecond)
        #expect(scene.faults.isEmpty)
    }

    @Test("A waiting request whose priority is raised goes before those that it is above now")
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

    @Test("A waiting request whose priority is lowered falls behind those that it is below now")
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

    @Test("A raised request brings its host to the front of those that wait for the total limit")
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
        "A request that was raised after it had its connection waits with the new priority when that is dead")
    func raisedWhileGranted() throws {
        let (scene, connection) = try busy()
        let waiter = try #require(scene.wait("a", .low))
        #expect(scene.release(connection).grant?.waiter == waiter)
        let other = try #require(scene.wait())
        scene.setPriority(.high, of: waiter)
        let admission = scene.refuse(connection)
        let again = try #require(admission.waiter)
        let dial = try #require(admission.effects.dials.first).connection
        let granted = try #require(scene.succeed(dial).grant)
        #expect(granted.waiter == again)
        #expect(scene.release(granted.connection).grant?.waiter == other)
        #expect(scene.faults.isEmpty)
    }

    @Test("The priority of a request that is gone changes nothing")
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

    // MARK: Last come, first served

    @Test("Requests that ask for it are served last come, first served")
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
        "Last come, first served goes after those that have waited an ageing interval, so nobody starves"
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
        // It came at the beginning of an interval of five seconds; the first of the next one serves it.
        #expect(rounds == 5)
        #expect(scene.faults.isEmpty)
    }

    @Test("Without ageing the last one always goes first, within its priority")
    func lastFirstWithoutAgeing() throws {
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

    @Test("With an ageing interval of zero all are served in the order they came")
    func lastFirstWithZeroAgeing() throws {
        let (scene, connection) = try busy(PoolLimits(connectionsPerHost: 1, agingInterval: .zero))
        let first = try #require(scene.wait(order: .lastComeFirstServed))
        scene.now += 1
        let second = try #require(scene.wait(order: .lastComeFirstServed))
        for waiter in [first, second] {
            #expect(scene.release(connection).grant?.waiter == waiter)
        }
        #expect(scene.faults.isEmpty)
    }

    @Test("A change of the ageing interval orders anew who waits already")
    func ageingChanges() throws {
        let (scene, connection) = try busy()
        let low = try #require(scene.wait("a", .low))
        scene.now += 8 * poolSecond
        let high = try #require(scene.wait("a", .high))
        _ = scene.setLimits(PoolLimits(connectionsPerHost: 1, agingInterval: .seconds(1)))
        #expect(scene.release(connection).grant?.waiter == low)
        #expect(scene.release(connection).grant?.waiter == high)
        #expect(scene.faults.isEmpty)
    }

    // MARK: Hosts with limits of their own

    @Test("A host has the limit that is set for it, above or below that of the others")
    func hostLimits() throws {
        let scene = PoolScene(PoolLimits(connectionsPerHost: 2, connectionsToHosts: ["a": 3, "b": 1]))
        for (key, limit) in [("a", 3), ("b", 1), ("c", 2)] {
            for _ in 0..<5 { _ = try #require(scene.wait(key)) }
            #expect(scene.pool.hostCounts[key] == PoolCounts(dialing: limit, waiting: 5))
        }
        #expect(scene.faults.isEmpty)
    }

    @Test("A host's limit that changes acts at once on who waits, and on idle connections")
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

    @Test("A host is found by its name, and its name and port before")
    func hostNames() {
        let limits = PoolLimits(connectionsToHosts: ["a.example": 3, "a.example:8443": 1, "[::1]": 2])
        #expect(limits.connections(to: "a.example", port: 443) == 3)
        #expect(limits.connections(to: "a.example", port: 8443) == 1)
        #expect(limits.connections(to: "::1", port: 80) == 2)
        #expect(limits.connections(to: "b.example", port: 443) == nil)
        #expect(PoolLimits().connections(to: "a.example", port: 443) == nil)
    }
}
