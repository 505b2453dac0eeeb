import Testing

@testable import MartletConnections

@Suite("Waiting awake for an answer that comes at once")
struct BriefWaitTests {
    /// How many requests go by until one is due.
    private static func skipped(_ wait: BriefWait) -> Int {
        var count = 0
        while !wait.isDue(), count < 10_000 { count += 1 }
        return count
    }

    @Test("The first request tries, and so does each after one that was answered in time")
    func successes() {
        let wait = BriefWait()
        for _ in 0..<5 {
            #expect(BriefWaitTests.skipped(wait) == 0)
            wait.ended(inTime: true)
        }
    }

    @Test("Each failure doubles how many go by, up to a thousand")
    func failures() {
        let wait = BriefWait()
        for expected in [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1024] {
            wait.ended(inTime: false)
            #expect(BriefWaitTests.skipped(wait) == expected)
        }
    }

    @Test("One answer in time makes up for all failures")
    func recovery() {
        let wait = BriefWait()
        for _ in 0..<6 { wait.ended(inTime: false) }
        _ = BriefWaitTests.skipped(wait)
        wait.ended(inTime: true)
        #expect(BriefWaitTests.skipped(wait) == 0)
        wait.ended(inTime: false)
        #expect(BriefWaitTests.skipped(wait) == 2)
    }
}
