import Testing

@testable import MartletConnections

@Suite("Waiting awake for an answer that comes at once")
struct AdaptiveSpinWaitTests {
    /// How many requests go by until one is due.
    private static func skipped(_ wait: AdaptiveSpinWait) -> Int {
        var count = 0
        while !wait.isDue(), count < 10_000 { count += 1 }
        return count
    }

    @Test("The first request tries, and so does each after one that was answered in time")
    func successes() {
        let wait = AdaptiveSpinWait()
        for _ in 0..<5 {
            #expect(AdaptiveSpinWaitTests.skipped(wait) == 0)
            wait.ended(inTime: true)
        }
    }

    @Test("Each failure doubles how many go by, up to a thousand")
    func failures() {
        let wait = AdaptiveSpinWait()
        for expected in [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1024] {
            wait.ended(inTime: false)
            #expect(AdaptiveSpinWaitTests.skipped(wait) == expected)
        }
    }

    @Test("One answer in time makes up for all failures")
    func recovery() {
        let wait = AdaptiveSpinWait()
        for _ in 0..<6 { wait.ended(inTime: false) }
        _ = AdaptiveSpinWaitTests.skipped(wait)
        wait.ended(inTime: true)
        #expect(AdaptiveSpinWaitTests.skipped(wait) == 0)
        wait.ended(inTime: false)
        #expect(AdaptiveSpinWaitTests.skipped(wait) == 2)
    }
}
