import Testing

@testable import MartletPool

@Suite("Spin waits for responses that arrive immediately")
struct AdaptiveSpinWaitTests {
    /// Returns the number of requests without a spin before the next spin.
    private static func skipped(_ wait: AdaptiveSpinWait) -> Int {
        var count = 0
        while !wait.isDue(), count < 10_000 { count += 1 }
        return count
    }

    @Test("The first request spins, and so does each request after a timely response")
    func successes() {
        let wait = AdaptiveSpinWait()
        for _ in 0..<5 {
            #expect(AdaptiveSpinWaitTests.skipped(wait) == 0)
            wait.ended(inTime: true)
        }
    }

    @Test("Each failure doubles the number of requests that do not spin, up to a thousand")
    func failures() {
        let wait = AdaptiveSpinWait()
        for expected in [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1024] {
            wait.ended(inTime: false)
            #expect(AdaptiveSpinWaitTests.skipped(wait) == expected)
        }
    }

    @Test("One timely response clears all failures")
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
