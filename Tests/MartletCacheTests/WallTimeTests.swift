import Testing

@testable import MartletCache

@Suite("Wall-clock times")
struct WallTimeTests {
    @Test("Seconds are rounded down, also before 1970")
    func seconds() {
        #expect(WallTime(milliseconds: 1_999).seconds == 1)
        #expect(WallTime(milliseconds: -1).seconds == -1)
        #expect(WallTime(milliseconds: -2_000).seconds == -2)
    }

    @Test("A time out of range is clamped and does not trap")
    func extremes() {
        #expect(WallTime(seconds: .max).milliseconds == .max)
        #expect(WallTime(seconds: .min).milliseconds == .min)
        #expect(WallTime(milliseconds: .max).milliseconds(since: WallTime(milliseconds: .min)) == .max)
        #expect(WallTime(milliseconds: .min).milliseconds(since: WallTime(milliseconds: .max)) == .min)
    }
}
