import Martlet
import MartletDownloads
import MartletTesting
import MartletTestSupport
import MartletTransport
import Synchronization
import Testing

@Suite("Places for connections", .timeLimit(.minutes(10)))
struct HostConnectionSlotsTests {
    private func origin(_ text: String = "http://a.example") throws -> HTTPURL.Origin {
        try HTTPURL(text).origin
    }

    /// Waits until so many are in line.
    private func line(_ slots: HostConnectionSlots, _ count: Int) async {
        while slots.waitingCount != count { await Task.yield() }
    }

    @Test("Places are given up to the limit, each host and port by itself")
    func limits() throws {
        let slots = HostConnectionSlots(limit: 2)
        let (one, other) = (try origin(), try origin("http://a.example:8080"))
        #expect(slots.tryAcquire(one) && slots.tryAcquire(one) && !slots.tryAcquire(one))
        #expect(slots.tryAcquire(other))
        slots.giveBack(one)
        #expect(slots.tryAcquire(one))
        #expect(slots.count(one) == 2 && slots.count(other) == 1)
    }

    @Test("Those that wait are served in the order in which they came, and before those who do not wait")
    func order() async throws {
        let slots = HostConnectionSlots(limit: 1)
        let place = try origin()
        try await slots.take(place)
        let served = Shared<[Int]>([])
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<5 {
                group.addTask {
                    try await slots.take(place)
                    served.withLock { $0.append(number) }
                    slots.giveBack(place)
                }
                await line(slots, number + 1)
            }
            slots.giveBack(place)
            try await group.waitForAll()
        }
        #expect(served.withLock { $0 } == [0, 1, 2, 3, 4])
        #expect(slots.hostCount == 0)
    }

    @Test("Nobody overtakes who waits")
    func overtaking() async throws {
        let slots = HostConnectionSlots(limit: 1)
        let place = try origin()
        try await slots.take(place)
        let waiting = Task { try await slots.take(place) }
        await line(slots, 1)
        slots.setLimit(1)
        #expect(!slots.tryAcquire(place))
        slots.giveBack(place)
        #expect(!slots.tryAcquire(place))
        try await waiting.value
        slots.giveBack(place)
        #expect(slots.tryAcquire(place))
    }

    @Test("Who is cancelled while waiting takes nothing")
    func cancelling() async throws {
        let slots = HostConnectionSlots(limit: 1)
        let place = try origin()
        try await slots.take(place)
        let waiting = Task { try await slots.take(place) }
        await line(slots, 1)
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        #expect(slots.waitingCount == 0 && slots.count(place) == 1)
        slots.giveBack(place)
        #expect(slots.hostCount == 0)
        let gate = CurrentValue(false)
        let late = Task {
            _ = await gate.next(after: 1)
            try await slots.take(place)
        }
        late.cancel()
        await #expect(throws: CancellationError.self) { try await late.value }
        #expect(slots.hostCount == 0)
    }

    @Test("A raised limit serves those that wait at once; a lowered one takes nothing away")
    func changing() async throws {
        let slots = HostConnectionSlots(limit: 1)
        let place = try origin()
        try await slots.take(place)
        let waiting = (0..<2).map { _ in Task { try await slots.take(place) } }
        await line(slots, 2)
        slots.setLimit(3)
        for task in waiting { try await task.value }
        slots.setLimit(0)
        #expect(slots.count(place) == 3)
        slots.giveBack(place)
        slots.giveBack(place)
        #expect(!slots.tryAcquire(place))
        slots.giveBack(place)
        #expect(slots.tryAcquire(place))
    }

    @Test("What was not taken cannot be given back")
    func strangers() throws {
        let slots = HostConnectionSlots(limit: 1)
        let place = try origin()
        slots.giveBack(place)
        #expect(slots.tryAcquire(place) && !slots.tryAcquire(place))
    }

    @Test(
        "Of a thousand tasks, some of which are cancelled, never more than may have a place, and at the end none"
    )
    func storm() async throws {
        let slots = HostConnectionSlots(limit: 6)
        let places = try (0..<3).map { try origin("https://h\($0).example") }
        let counts = Shared([0, 0, 0])
        let most = Shared(0)
        let served = Shared(0)
        var random = SeededGenerator(seed: 11)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<1000 {
                let host = Int.random(in: 0..<3, using: &random)
                let yields = Int.random(in: 0..<8, using: &random)
                let task = Task {
                    try await slots.take(places[host])
                    let count = counts.withLock { counts in
                        counts[host] += 1
                        return counts[host]
                    }
                    most.withLock { $0 = max($0, count) }
                    for _ in 0..<yields { await Task.yield() }
                    served.withLock { $0 += 1 }
                    counts.withLock { $0[host] -= 1 }
                    slots.giveBack(places[host])
                }
                let isCancelled = Int.random(in: 0..<3, using: &random) == 0
                group.addTask {
                    if isCancelled {
                        for _ in 0..<yields { await Task.yield() }
                        task.cancel()
                    }
                    _ = await task.result
                }
            }
        }
        #expect(most.withLock { $0 } <= 6)
        #expect(served.withLock { $0 } >= 500)
        #expect(slots.hostCount == 0 && slots.waitingCount == 0)
    }
}
