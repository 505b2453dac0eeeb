import Testing

@testable import MartletCLI

@Suite("Detection of slow transfers")
struct LowSpeedDetectorTests {
    private let start = ContinuousClock.now

    /// A low-speed detector whose results a test can query.
    private final class Asked {
        var watch: LowSpeedDetector

        init(_ watch: LowSpeedDetector) { self.watch = watch }

        func begin(at now: ContinuousClock.Instant) { watch.begin(at: now) }
        func rest() { watch.rest() }
        func isTooSlow(_ bytes: UInt64, at now: ContinuousClock.Instant) -> Bool {
            watch.isTooSlow(bytes, at: now)
        }
    }

    private func watch(_ limit: Int, _ time: Duration) throws -> Asked {
        var options = TransferOptions()
        options.speedLimit = limit
        options.speedTime = time
        return Asked(try #require(LowSpeedDetector(options)))
    }

    private func seconds(_ count: Double) -> ContinuousClock.Instant { start + .seconds(count) }

    @Test("There is no detector without both a limit and a time")
    func none() {
        var options = TransferOptions()
        #expect(LowSpeedDetector(options) == nil)
        options.speedLimit = 1
        #expect(LowSpeedDetector(options) == nil)
        options.speedLimit = 0
        options.speedTime = .seconds(1)
        #expect(LowSpeedDetector(options) == nil)
    }

    @Test("A stalled transfer is too slow when the time is over, and not before")
    func silence() throws {
        let watch = try watch(1, .seconds(10))
        watch.begin(at: start)
        #expect(!watch.isTooSlow(0, at: seconds(0.5)))
        #expect(!watch.isTooSlow(0, at: seconds(9.9)))
        #expect(watch.isTooSlow(0, at: seconds(10)))
    }

    @Test("The wait for a connection does not count, not even after a redirect")
    func connecting() throws {
        let watch = try watch(1, .seconds(10))
        #expect(!watch.isTooSlow(0, at: seconds(100)))
        watch.begin(at: seconds(100))
        #expect(!watch.isTooSlow(0, at: seconds(109)))
        watch.rest()
        #expect(!watch.isTooSlow(0, at: seconds(200)))
        watch.begin(at: seconds(200))
        #expect(!watch.isTooSlow(0, at: seconds(209)))
        #expect(watch.isTooSlow(0, at: seconds(210)))
    }

    @Test("The average over the last period counts, so an earlier burst does not help")
    func average() throws {
        let watch = try watch(100, .seconds(10))
        watch.begin(at: start)
        for second in 1...10 { #expect(!watch.isTooSlow(5_000, at: seconds(Double(second)))) }
        // At 11 s the last 10 s start after the burst.
        #expect(watch.isTooSlow(5_000, at: seconds(11)))
    }

    @Test("A rate at the limit is fast enough, one byte less is not")
    func edge() throws {
        for (bytes, isTooSlow) in [(UInt64(1_000), false), (999, true)] {
            let watch = try watch(100, .seconds(10))
            watch.begin(at: start)
            #expect(watch.isTooSlow(bytes, at: seconds(10)) == isTooSlow)
        }
    }

    @Test("A steady transfer is never too slow, and a later stall is detected after the time")
    func steady() throws {
        let watch = try watch(100, .seconds(4))
        watch.begin(at: start)
        var bytes: UInt64 = 0
        for tick in 1...200 {
            bytes += 20
            #expect(!watch.isTooSlow(bytes, at: start + .milliseconds(200 * tick)))
        }
        #expect(!watch.isTooSlow(bytes, at: seconds(40)))
        #expect(watch.isTooSlow(bytes, at: seconds(44)))
    }

    @Test("A request that is retried starts a new measurement")
    func again() throws {
        let watch = try watch(1, .seconds(10))
        watch.begin(at: start)
        #expect(!watch.isTooSlow(500, at: seconds(9)))
        #expect(!watch.isTooSlow(0, at: seconds(11)))
        #expect(!watch.isTooSlow(0, at: seconds(20.9)))
        #expect(watch.isTooSlow(0, at: seconds(21)))
    }

    @Test("The message has the words of curl")
    func message() throws {
        #expect(
            try watch(1_000, .seconds(30)).watch.message
                == "Operation too slow. Less than 1000 bytes/sec transferred the last 30 seconds")
    }
}
