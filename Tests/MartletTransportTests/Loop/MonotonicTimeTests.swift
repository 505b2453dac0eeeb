import MartletTransport
import Testing

@Suite("Instants of the monotonic clock")
struct MonotonicTimeTests {
    @Test("Time does not run backwards")
    func monotonic() {
        let first = MonotonicTime.now()
        let second = MonotonicTime.now()
        #expect(second >= first)
        #expect(first.since(second) == .zero)
    }

    @Test("An instant moves by positive and negative durations with nanosecond precision")
    func moves() {
        let instant = MonotonicTime(nanoseconds: 5_000_000_000)
        #expect(instant.advanced(by: .milliseconds(1500)).nanoseconds == 6_500_000_000)
        #expect(instant.advanced(by: .nanoseconds(-1)).nanoseconds == 4_999_999_999)
        #expect(instant.advanced(by: .seconds(-6)).nanoseconds == 0)
        #expect(instant.advanced(by: .zero) == instant)
    }

    @Test(
        "An instant that cannot be represented is the distant future and does not trap",
        arguments: [Int64.max, 9_300_000_000_000])
    func overflows(seconds: Int64) {
        let instant = MonotonicTime(nanoseconds: .max - 1)
        #expect(instant.advanced(by: .seconds(seconds)) == .distantFuture)
        #expect(MonotonicTime(nanoseconds: 1).advanced(by: .seconds(-seconds)).nanoseconds == 0)
    }

    @Test("The distant future does not move, and no duration means no deadline")
    func distant() {
        #expect(MonotonicTime.distantFuture.advanced(by: .seconds(-5)) == .distantFuture)
        #expect(MonotonicTime.now().deadline(after: nil) == .distantFuture)
    }
}
