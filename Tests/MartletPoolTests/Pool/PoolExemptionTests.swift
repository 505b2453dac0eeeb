import Testing

@testable import MartletPool

@Suite("Connections that do not count against the limits")
struct PoolExemptionTests {
    @Test(
        "An exempt connection frees its slot for a waiter, and acquires it again later", arguments: [true, false])
    func exemption(_ isTotal: Bool) throws {
        var limits = PoolLimits()
        limits.connectionsPerHost = isTotal ? 16 : 1
        if isTotal { limits.totalConnections = 1 }
        var pool = PoolMachine<String>(limits: limits)
        let first = try #require(pool.request("a", now: 1).effects.dials.first?.connection)
        #expect(pool.dialSucceeded(first, now: 2).grant?.connection == first)
        #expect(pool.request("a", now: 3).effects.dials.isEmpty)
        let second = try #require(pool.exempt(first).dials.first?.connection)
        #expect(pool.exempt(first).isEmpty)
        #expect(pool.checkInvariants() == [])
        #expect(pool.dialSucceeded(second, now: 4).grant?.connection == second)
        #expect(pool.request("a", now: 5).effects.dials.isEmpty)
        pool.endExemption(first)
        pool.endExemption(first)
        #expect(pool.checkInvariants(isDraining: true) == [])
        // The pool is above its limit, so a released connection is closed.
        #expect(pool.released(first, isReusable: true, now: 6).closes == [first])
        #expect(pool.checkInvariants() == [])
        #expect(pool.released(second, isReusable: true, now: 7).grant?.connection == second)
        #expect(pool.checkInvariants() == [])
    }

    @Test("The release of an exempt connection ends its exemption")
    func release() throws {
        var limits = PoolLimits()
        limits.connectionsPerHost = 1
        var pool = PoolMachine<String>(limits: limits)
        let first = try #require(pool.request("a", now: 1).effects.dials.first?.connection)
        _ = pool.dialSucceeded(first, now: 2)
        _ = pool.exempt(first)
        #expect(pool.released(first, isReusable: true, now: 3).closes.isEmpty)
        #expect(pool.checkInvariants() == [])
        #expect(pool.exempt(first).isEmpty)
        #expect(pool.request("a", now: 4).lease == first)
        #expect(pool.request("a", now: 5).effects.dials.isEmpty)
        #expect(pool.checkInvariants() == [])
    }
}
