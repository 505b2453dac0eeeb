import Glibc
import Martlet
import MartletTesting

/// A scenario with a hundred thousand queued requests and a gigabyte of bodies in a directory. Opening it must take
/// less than a second per ten thousand requests, without loading the bodies into memory.
struct QueueLoad: SoakScenario {
    let name = "queue-load"

    func run(_ options: SoakOptions, _ report: inout SoakReport) async throws {
        let count = options.count ?? 100_000
        let directory = try CacheDirectory()
        defer { directory.remove() }
        let large = [UInt8](repeating: 0x61, count: 10_000_000)
        let start = ContinuousClock.now
        let filling = try await SoakQueue.open(directory.path, sends: false)
        let request = try HTTPRequest(method: .post, url: "http://127.0.0.1:9/")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for worker in 0..<16 {
                group.addTask {
                    for number in stride(from: worker, to: count, by: 16) {
                        try await filling.submit(request, body: .text("\(number)"), lane: "\(number % 100)")
                    }
                }
            }
            try await group.waitForAll()
        }
        for _ in 0..<100 { try await filling.submit(request, body: .bytes(large), lane: "large") }
        await filling.close()
        report.note("submitted in seconds", SoakReport.short((ContinuousClock.now - start).seconds))
        let opening = ContinuousClock.now
        let queue = try await SoakQueue.open(directory.path, sends: false)
        let seconds = (ContinuousClock.now - opening).seconds
        report.add("queued requests", await queue.pendingCount, exactly: count + 100)
        report.add(
            "opening time per 10,000 requests", seconds / Double(count) * 10_000, atMost: 1, unit: "s")
        report.add(
            "peak resident memory", Double(ProcessFigures.peakResidentBytes) / 1e6, atMost: 500,
            unit: "MB")
        await queue.close()
    }
}
