import Testing

@testable import MartletCache

@Suite("Eviction order")
struct EvictionPolicyTests {
    private func drain(_ policy: inout EvictionPolicy) -> [Int] {
        var order: [Int] = []
        while let victim = policy.victim(), order.count < 100 {
            order.append(victim)
            policy.remove(victim)
        }
        return order
    }

    @Test("LRU evicts the least recently used entry")
    func leastRecentlyUsed() {
        var policy = EvictionPolicy(.leastRecentlyUsed)
        for entry in [3, 0, 1, 2] { policy.insert(entry) }
        policy.touch(3)
        policy.touch(1)
        policy.remove(2)
        #expect(drain(&policy) == [0, 3, 1])
    }

    @Test("SIEVE spares an entry that was used since its hand passed, once")
    func sieve() {
        var policy = EvictionPolicy(.sieve)
        for entry in 0..<5 { policy.insert(entry) }
        policy.touch(0)
        policy.touch(2)
        #expect(policy.victim() == 1)
        policy.remove(1)
        policy.insert(5)
        #expect(policy.isMarked(2))
        // The hand moves to 2, spares it and finds 3, then 4 and 5, and restarts at the oldest.
        #expect(drain(&policy) == [3, 4, 5, 0, 2])
    }

    @Test("One pass over many entries evicts the used ones from LRU but not from SIEVE")
    func scans() {
        for (order, survivors) in [(EvictionOrder.leastRecentlyUsed, 0), (.sieve, 10)] {
            var policy = EvictionPolicy(order)
            var held = Set<Int>()
            for entry in 0..<1000 {
                if held.count == 20, let victim = policy.victim() {
                    policy.remove(victim)
                    held.remove(victim)
                }
                policy.insert(entry)
                held.insert(entry)
                let areUsed = entry < 20 || entry % 30 == 0
                for used in 0..<10 where areUsed && held.contains(used) { policy.touch(used) }
            }
            #expect(held.filter { $0 < 10 }.count == survivors)
        }
    }

    @Test(
        "Missing, duplicate and negative entries change nothing",
        arguments: EvictionOrder.allCases)
    func strangers(_ order: EvictionOrder) {
        var policy = EvictionPolicy(order)
        #expect(policy.victim() == nil)
        policy.touch(9)
        policy.remove(9)
        policy.insert(-1)
        policy.insert(1)
        policy.insert(1)
        #expect(drain(&policy) == [1])
        #expect(policy.victim() == nil)
    }
}
