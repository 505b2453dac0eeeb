import MartletCache
import MartletTransport
import Testing

@testable import MartletCaching
@testable import MartletCore
@testable import MartletDiagnostics

@Suite("Monotonic wall clock")
struct MonotonicWallClockTests {
    private let clock = MonotonicWallClock(
        beginning: WallTime(milliseconds: 1_000_000), instant: MonotonicTime(nanoseconds: 5_000_000_000))

    @Test("The time advances with the monotonic clock, in milliseconds")
    func passing() {
        #expect(clock.time(at: MonotonicTime(nanoseconds: 5_000_000_000)).milliseconds == 1_000_000)
        #expect(clock.time(at: MonotonicTime(nanoseconds: 5_001_999_999)).milliseconds == 1_000_001)
        #expect(clock.time(at: MonotonicTime(nanoseconds: 3_605_000_000_000)).milliseconds == 4_600_000)
    }

    @Test("The time is never before the clock's start and is clamped on overflow")
    func bounds() {
        #expect(clock.time(at: MonotonicTime(nanoseconds: 0)).milliseconds == 1_000_000)
        let late = MonotonicWallClock(
            beginning: WallTime(milliseconds: .max - 1), instant: MonotonicTime(nanoseconds: 0))
        #expect(late.time(at: MonotonicTime(nanoseconds: .max)).milliseconds == .max)
    }

    @Test("WallTime.now never goes backward")
    func order() {
        var last = WallTime.now
        for _ in 0..<1000 {
            let now = WallTime.now
            #expect(now >= last)
            last = now
        }
    }
}
