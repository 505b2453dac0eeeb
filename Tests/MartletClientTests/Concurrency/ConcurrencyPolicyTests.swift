import FoundationEssentials
import Martlet
import Testing

@Suite("Concurrency policies")
struct ConcurrencyPolicyTests {
    @Test("The default policy allows 6 connections per host on Wi-Fi and 2 on mobile networks")
    func defaults() {
        let policy = ConcurrencyPolicy()
        let pool = PoolLimits()
        #expect(policy.applied(to: pool, under: .wifi).connectionsPerHost == 6)
        #expect(policy.applied(to: pool, under: .mobile).connectionsPerHost == 2)
        #expect(policy.applied(to: pool, under: .unmetered) == pool)
        #expect(policy.applied(to: pool, under: .unknown) == pool)
    }

    @Test("The shared queue policy allows 6 connections to all hosts together, and 2 on mobile networks")
    func sharedQueue() {
        for condition in NetworkCondition.allCases {
            let limits = ConcurrencyPolicy.sharedQueue.applied(to: PoolLimits(), under: condition)
            #expect(limits.totalConnections == (condition == .mobile ? 2 : 6))
        }
    }

    @Test("A policy overrides the limits that it sets and keeps the others")
    func applied() {
        let pool = PoolLimits(
            connectionsPerHost: 16, connectionsToHosts: ["a.example": 32, "b.example": 1, "c.example": 3],
            totalConnections: 100, idleConnectionsPerHost: 9, idleLifetime: .seconds(5))
        let policy = ConcurrencyPolicy(mobile: .init(perHost: 2, hosts: ["c.example": 4]))
        var expected = pool
        expected.connectionsPerHost = 2
        expected.connectionsToHosts = ["a.example": 2, "b.example": 1, "c.example": 4]
        #expect(policy.applied(to: pool, under: .mobile) == expected)
    }

    @Test("A policy stays equal when encoded and decoded")
    func codable() throws {
        var policy = ConcurrencyPolicy(unmetered: .init(total: 9))
        policy[.wifi].hosts["a.example"] = 3
        let copy = try JSONDecoder().decode(ConcurrencyPolicy.self, from: JSONEncoder().encode(policy))
        #expect(copy == policy)
        #expect(copy[.wifi] == .init(perHost: 6, hosts: ["a.example": 3]))
    }
}
