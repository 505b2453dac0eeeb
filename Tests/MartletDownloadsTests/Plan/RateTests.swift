import MartletDownloads
import MartletTransport
import Testing

@Suite("Transfer rates")
struct RateTests {
    private let start = MonotonicTime(nanoseconds: 5_000_000_000)

    private func after(_ milliseconds: Int) -> MonotonicTime {
        start.advanced(by: .milliseconds(milliseconds))
    }

    @Test("The displayed rate is the average over the last ten seconds")
    func shown() {
        var rate = ProgressRate(from: start)
        for step in 1...300 { rate.add(1_000, at: after(step * 100)) }
        let value = rate.value(at: after(30_000))
        #expect((9_000...10_500).contains(value), "\(value)")
        // After ten seconds an earlier speed has no effect.
        for step in 301...400 { rate.add(100, at: after(step * 100)) }
        #expect((900...1_100).contains(rate.value(at: after(40_000))))
    }

    @Test("The displayed rate falls to 0 within ten seconds of a stall, and the stall time grows")
    func stall() {
        var rate = ProgressRate(from: start)
        for step in 0..<50 { rate.add(1_000_000, at: after(step * 100)) }
        var last = rate.value(at: after(4_900))
        for second in 6...15 {
            let value = rate.value(at: after(second * 1_000))
            #expect(value <= last)
            last = value
            let stalled = rate.stalled(at: after(second * 1_000))
            #expect(stalled == .milliseconds(second * 1_000 - 4_900))
        }
        #expect(rate.value(at: after(14_900)) == 0)
        rate.add(500, at: after(20_000))
        #expect(rate.stalled(at: after(20_999)) == .zero)
        #expect(rate.value(at: after(20_100)) > 0)
    }

    @Test("The displayed rate of the first moments is realistic")
    func beginning() {
        var rate = ProgressRate(from: start)
        #expect(rate.value(at: start) == 0)
        rate.add(1_000, at: start)
        #expect(rate.value(at: start) == 20_000)
        #expect((990...1_010).contains(rate.value(at: after(1_000))))
    }

    @Test("Times that are equal, earlier or centuries apart do not harm the displayed rate")
    func farApart() {
        var rate = ProgressRate(from: start)
        rate.add(.max / 4, at: start)
        rate.add(1, at: MonotonicTime(nanoseconds: 0))
        #expect(rate.value(at: MonotonicTime(nanoseconds: 0)) > 0)
        #expect(rate.value(at: .distantFuture) == 0)
        rate.add(1, at: .distantFuture)
        rate.add(1, at: start)
        #expect(rate.value(at: .distantFuture) > 0)
        #expect(rate.stalled(at: .distantFuture) == .zero)
        #expect(rate.stalled(at: start) == .zero)
    }

    @Test("A transfer's rate follows a change within four seconds")
    func transfer() {
        var rate = TransferRate(from: start)
        #expect(rate.value(at: after(1_000)) == 0)
        for step in 1...50 { rate.add(100_000, at: after(step * 100)) }
        #expect((950_000...1_050_000).contains(rate.value(at: after(5_000))))
        for step in 51...90 { rate.add(1_000, at: after(step * 100)) }
        #expect(rate.value(at: after(9_000)) < 50_000)
        // The rate of a stalled transfer falls without further events.
        #expect(rate.value(at: after(60_000)) < 1_500)
    }

    @Test("Times that are equal, earlier or centuries apart do not harm a transfer's rate")
    func transferFarApart() {
        var rate = TransferRate(from: start)
        rate.add(1_000, at: start)
        #expect(rate.value(at: start) == 1_000_000)
        #expect(rate.value(at: MonotonicTime(nanoseconds: 0)) == 1_000_000)
        rate.add(1_000, at: .distantFuture)
        rate.add(1_000, at: MonotonicTime(nanoseconds: 0))
        #expect(rate.value(at: .distantFuture).isFinite)
        #expect(rate.age(at: MonotonicTime(nanoseconds: 0)) == 0)
        #expect(rate.age(at: after(1_500)) == 1.5)
    }
}
