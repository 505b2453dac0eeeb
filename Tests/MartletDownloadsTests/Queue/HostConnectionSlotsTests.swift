import Martlet
import MartletTesting
import MartletTestSupport
import MartletTransport
import Synchronization
import Testing

@testable import MartletDownloads

@Suite("Connection slots per host", .timeLimit(.minutes(10)))
struct HostConnectionSlotsTests {
    private func origin(_ text: String = "http://a.example") throws -> HTTPURL.Origin {
        try HTTPURL(text).origin
    }

    /// Waits until a number of waiters is queued.
    private func line(_ slots: HostConnectionSlots, _ count: Int) async {
        while slots.waitingCount != count { await Task.yield() }
    }

    @Test("Slots are assigned up to the limit, separately for each host and port")
    func limits() throws {
        let slots = HostConnectionSlots(limit: 2)
        let (one, other) = (try origin(), try origin("http://a.example:8080"))
        #expect(slots.tryAcquire(one) && slots.tryAcquire(one) && !slots.tryAcquire(one))
        #expect(slots.tryAcquire(other))
        slots.release(one)
        #expect(slots.tryAcquire(one))
        #expect(slots.count(one) == 2 && slots.count(other) == 1)
    }

    @Test("Waiters are served in FIFO order, before callers that do not wait")
    func order() async throws {
        let slots = HostConnectionSlots(limit: 1)
        let place = try origin()
        try await slots.acquire(place)
        let served = Shared<[Int]>([])
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<5 {
                group.addTask {
                    try await slots.acquire(place)
                    served.withLock { $0.append(number) }
                    slots.release(place)
                }
                await line(slots, number + 1)
            }
            slots.release(place)
            try await group.waitForAll()
        }
        #expect(served.withLock { $0 } == [0, 1, 2, 3, 4])
        #expect(slots.hostCount == 0)
    }

    @Test("No caller overtakes a waiter")
    func overtaking() async throws {
        let slots = HostConnectionSlots(limit: 1)
        let place = try origin()
        try await slots.acquire(place)
        let waiting = Task { try await slots.acquire(place) }
        await line(slots, 1)
        slots.setLimit(1)
        #expect(!slots.tryAcquire(place))
        slots.release(place)
        #expect(!slots.tryAcquire(place))
        try await waiting.value
        slots.release(place)
        #expect(slots.tryAcquire(place))
    }

    @Test("A cancelled waiter takes no slot")
    func cancelling() async throws {
        let slots = HostConnectionSlots(limit: 1)
        let place = try origin()
        try await slots.acquire(place)
        let waiting = Task { try await slots.acquire(place) }
        await line(slots, 1)
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        #expect(slots.waitingCount == 0 && slots.count(place) == 1)
        slots.release(place)
        #expect(slots.hostCount == 0)
        let gate = CurrentValue(false)
        let late = Task {
            _ = await gate.next(after: 1)
            try await slots.acquire(place)
        }
        late.cancel()
        await #expect(throws: CancellationError.self) { try await late.value }
        #expect(slots.hostCount == 0)
    }

    @Test("A raised limit serves waiters immediately; a lowered one revokes no slot")
    func changing() async throws {
        let slots = HostConnectionSlots(limit: 1)
        let place = try origin()
        try await slots.acquire(place)
        let waiting = (0..<2).map { _ in Task { try await slots.acquire(place) } }
        await line(slots, 2)
        slots.setLimit(3)
        for task in waiting { try await task.value }
        slots.setLimit(0)
        #expect(slots.count(place) == 3)
        slots.release(place)
        slots.release(place)
        #expect(!slots.tryAcquire(place))
        slots.release(place)
        #expect(slots.tryAcquire(place))
    }

    @Test("A transfer waits for a slot of the redirect's target without a slot, and then has that slot only")
    func redirected() async throws {
        let conduct = RangeBehavior(Samples.one, acts: [.hold(request: 1, after: Samples.cut, "middle")])
        try await RangeScene.with(conduct) { scene in
            try await TestOrigin.withOrigin { _ in
                .redirect(to: scene.url)
            } run: { front in
                let slots = HostConnectionSlots(limit: 1)
                let (first, target) = (try origin(front.url("/")), try origin(scene.url))
                // Another download has the slot.
                #expect(slots.tryAcquire(target))
                let plan = DownloadJob.Plan(
                    url: try HTTPURL(front.url("/file")), target: .file(scene.path), options: RangeScene.options)
                let job = DownloadJob(plan, session: scene.session, slots: slots, status: DownloadStatus())
                let run = Task { try await job.run() }
                #expect(await eventually { slots.waitingCount == 1 || !scene.ranges.requests.isEmpty })
                #expect(slots.waitingCount == 1 && slots.count(first) == 0 && scene.ranges.requests.isEmpty)
                slots.release(target)
                try await scene.ranges.signals.wait(for: "middle")
                #expect(slots.count(first) == 0 && slots.count(target) == 1)
                scene.ranges.signals.raise("middle go")
                #expect(try await run.value.byteCount == Samples.one.byteCount)
                #expect(slots.hostCount == 0)
            }
        }
    }

    @Test("A transfer that must not wait ends without a slot if the redirect's target has none")
    func moved() async throws {
        let slots = HostConnectionSlots(limit: 1)
        let (first, target) = (try origin(), try origin("http://b.example"))
        #expect(slots.tryAcquire(target))
        let slot = ConnectionSlot(slots, mayWait: false)
        try await slot.move(to: first)
        #expect(slots.count(first) == 1)
        await #expect(throws: ConnectionSlot.NoneFree.self) { try await slot.move(to: target) }
        #expect(slots.count(first) == 0 && slots.count(target) == 1)
        slots.release(target)
        try await slot.move(to: target)
        slot.end()
        await #expect(throws: CancellationError.self) { try await slot.move(to: first) }
        #expect(slots.hostCount == 0)
    }

    @Test("A slot that was not acquired cannot be released")
    func strangers() throws {
        let slots = HostConnectionSlots(limit: 1)
        let place = try origin()
        slots.release(place)
        #expect(slots.tryAcquire(place) && !slots.tryAcquire(place))
    }

    @Test(
        "A thousand tasks, some cancelled, never exceed the limit, and hold no slot at the end"
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
                    try await slots.acquire(places[host])
                    let count = counts.withLock { counts in
                        counts[host] += 1
                        return counts[host]
                    }
                    most.withLock { $0 = max($0, count) }
                    for _ in 0..<yields { await Task.yield() }
                    served.withLock { $0 += 1 }
                    counts.withLock { $0[host] -= 1 }
                    slots.release(places[host])
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
