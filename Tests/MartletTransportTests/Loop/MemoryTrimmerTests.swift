import MartletTransport
import Testing

@Suite("Return of heap memory to the system")
struct MemoryTrimmerTests {
    @Test(
        "A burst ends when an eighth of its requests is left",
        arguments: [
            // The numbers of requests in flight, and the indexes at which a burst ends.
            ([Int](), [Int]()), ([255, 0], []), ([256, 33], []), ([256, 32], [1]), ([256, 0], [1]),
            ([5000, 626, 625, 624, 0], [2, 4]), ([5000, 625, 256, 78, 77, 0], [1, 3]),
            ([5000, 625, 79, 78, 0], [1, 3]),
            ([300, 0, 0, 100, 0], [1]), ([300, 0, 300, 0], [1, 3]), ([1, 2, 3, 300, 200, 100, 37, 1, 256, 1], [6, 9]),
            ([Int.max, Int.max / 8, 0], [1, 2]),
        ])
    func bursts(counts: [Int], ends: [Int]) {
        var rule = MemoryTrimRule()
        #expect(counts.indices.filter { rule.isDue(inFlight: counts[$0]) } == ends)
    }

    @Test("The heap is trimmed after a burst has settled, and every ten seconds at most")
    func times() {
        func seconds(_ seconds: Double) -> MonotonicTime {
            MonotonicTime(nanoseconds: UInt64((seconds * 1e9).rounded()))
        }
        for (last, now, expected) in [
            (nil, 50, 50.2), (10, 50, 50.2), (50, 50, 60), (49, 50, 59), (40.5, 50, 50.5), (40, 50, 50.2),
        ] as [(Double?, Double, Double)] {
            #expect(MemoryTrimRule.time(after: last.map(seconds), now: seconds(now)) == seconds(expected))
        }
    }

    @Test("Requests during the wait share one call")
    func coalesces() throws {
        let trimmer = MemoryTrimmer(loop: try EventLoop.shared.get()) {}
        let later = MonotonicTime.now().advanced(by: .seconds(3600))
        for _ in 0..<100 { trimmer.schedule(now: later) }
        #expect(trimmer.scheduledCount == 1)
    }

    @Test("A burst that ends after the call schedules another one", .timeLimit(.minutes(1)))
    func repeats() async throws {
        let (calls, call) = AsyncStream.makeStream(of: Void.self)
        let trimmer = MemoryTrimmer(loop: try EventLoop.shared.get()) { call.yield() }
        trimmer.schedule()
        for await _ in calls { break }
        trimmer.schedule()
        #expect(trimmer.scheduledCount == 2)
    }
}
