import MartletTransport
import Synchronization
import Testing

@Suite("Thread pool for blocking calls")
struct BlockingThreadPoolTests {
    /// The number of concurrent calls and its maximum.
    private final class Gauge: Sendable {
        let running = Atomic(0)
        let most = Atomic(0)

        func pass() {
            let now = running.wrappingAdd(1, ordering: .relaxed).newValue
            most.max(now, ordering: .relaxed)
            running.wrappingSubtract(1, ordering: .relaxed)
        }
    }

    @Test("Concurrent calls stay within the thread limit, and all of them run")
    func bounded() async {
        let workers = BlockingThreadPool(threadLimit: 3)
        let gauge = Gauge()
        let sum = await withTaskGroup(of: Int.self) { group in
            for number in 0..<200 {
                group.addTask {
                    await workers.run {
                        gauge.pass()
                        return number
                    }
                }
            }
            return await group.reduce(0, +)
        }
        #expect(sum == 199 * 200 / 2)
        #expect(gauge.most.load(ordering: .relaxed) <= 3)
    }

    @Test(
        "All calls run if the system starts no thread, including calls that are queued while a start fails",
        .timeLimit(.minutes(1)), arguments: [1, 4])
    func withoutThreads(threadLimit: Int) async {
        // No address space has room for a stack of this size.
        let workers = BlockingThreadPool(threadLimit: threadLimit, stackByteCount: 1 << 62)
        let gauge = Gauge()
        for _ in 0..<200 {
            let sum = await withTaskGroup(of: Int.self) { group in
                for number in 0..<20 {
                    group.addTask {
                        await workers.run {
                            gauge.pass()
                            return number
                        }
                    }
                }
                return await group.reduce(0, +)
            }
            #expect(sum == 190)
        }
        #expect(gauge.most.load(ordering: .relaxed) <= threadLimit)
        #expect(workers.threadCount == 0)
    }
}
