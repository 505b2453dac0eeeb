import Testing

@testable import MartletCLI

@Suite("The watch over a transfer's speed")
struct LowSpeedDetectorTests {
    private let start = ContinuousClock.now

    /// A watch that expectations can ask.
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

    @Test("There is none without a limit or without a time")
    func none() {
        var options = TransferOptions()
        #expect(LowSpeedDetector(options) == nil)
        options.speedLimit = 1
        #expect(LowSpeedDetector(options) == nil)
        options.speedLimit = 0
        options.speedTime = .seconds(1)
        #expect(LowSpeedDetector(options) == nil)
    }

    @Test("A transfer that moves nothing is too slow when the time is over, and not before")
    func silence() throws {
        let watch = try watch(1, .seconds(10))
        watch.begin(at: start)
        #expect(!watch.isTooSlow(0, at: seconds(0.5)))
        #expect(!watch.isTooSlow(0, at: seconds(9.9)))
        #expect(watch.isTooSlow(0, at: seconds(10)))
    }

    @Test("The wait for a connection does not count, be it the first or that of a redirect")
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

    @Test("What counts is the average over the last time: a burst before it helps no more")
    func average() throws {
        let watch = try watch(100, .seconds(10))
        watch.begin(at: start)
        for second in 1...10 { #expect(!watch.isTooSlow(5_000, at: seconds(Double(second)))) }
        // At 11 s the 10 s behind it are those after the burst.
        #expect(watch.isTooSlow(5_000, at: seconds(11)))
    }

    @Test("Exactly the limit is fast enough, one byte less is not")
    func edge() throws {
        for (bytes, isTooSlow) in [(UInt64(1_000), false), (999, true)] {
            let watch = try watch(100, .seconds(10))
            watch.begin(at: start)
            #expect(watch.isTooSlow(bytes, at: seconds(10)) == isTooSlow)
        }
    }

    @Test("A steady transfer is never too slow, and a stall behind it is noticed after the time")
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

    @Test("A request that is sent again counts anew")
    func again() throws {
        let watch = try watch(1, .seconds(10))
        watch.begin(at: start)
        #expect(!watch.isTooSlow(500, at: seconds(9)))
        #expect(!watch.isTooSlow(0, at: seconds(11)))
        #expect(!watch.isTooSlow(0, at: seconds(20.9)))
        #expect(watch.isTooSlow(0, at: seconds(21)))
    }

    @Test("What is said has curl's words")
    func message() throws {
        #expect(
            try watch(1_000, .seconds(30)).watch.message
                == "Operation too slow. Less than 1000 bytes/sec transferred the last 30 seconds")
    }
}
