@testable import MartletDownloads
import MartletTestSupport
import MartletTransport
import Testing

@Suite("Segment plan")
struct SegmentPlanTests {
    private static let mebibyte: UInt64 = 1 << 20
    private let start = MonotonicTime(nanoseconds: 1_000_000_000)

    private func after(_ seconds: Double) -> MonotonicTime {
        start.advanced(by: .milliseconds(Int(seconds * 1_000)))
    }

    /// Receives and writes bytes of a transfer.
    private func bring(
        _ plan: inout SegmentPlan, _ id: UInt64, _ count: UInt64, at now: MonotonicTime
    ) -> UInt64? {
        guard let place = plan.accept(id, count, now: now) else { return nil }
        return plan.wrote(id, place.offset..<place.offset + place.count)
    }

    @Test("A chunk is three seconds' worth of bytes, within its limits, and includes a small rest")
    func chunks() {
        var plan = SegmentPlan(total: 1 << 30)
        // The speed is unknown.
        #expect(plan.claim(1, now: start) == 0..<4 * SegmentPlanTests.mebibyte)
        _ = bring(&plan, 1, 5_000_000, at: after(1))
        plan.release(1, now: after(1))
        let second = plan.claim(2, now: after(1))
        #expect(second?.lowerBound == 4 * SegmentPlanTests.mebibyte)
        #expect(second.map { (12_000_000...15_000_000).contains($0.byteCount) } == true)
        var slow = SegmentPlan(total: 1 << 30)
        _ = slow.claim(1, now: start)
        _ = bring(&slow, 1, 10, at: after(1))
        slow.release(1, now: after(1))
        #expect(slow.claim(2, now: after(1))?.byteCount == SegmentPlan.smallestChunk)
        var fast = SegmentPlan(total: 1 << 40)
        _ = fast.claim(1, now: start)
        _ = bring(&fast, 1, 4 << 20, at: after(0.01))
        fast.release(1, now: after(0.01))
        #expect(fast.claim(2, now: after(0.01))?.byteCount == SegmentPlan.largestChunk)
        var small = SegmentPlan(total: 4 * SegmentPlanTests.mebibyte + SegmentPlanTests.mebibyte / 2 - 1)
        #expect(small.claim(1, now: start)?.upperBound == small.total)
    }

    @Test("Each transfer that may join soon keeps its share, however fast the first moments were")
    func shares() {
        var plan = SegmentPlan(total: 24 << 20)
        #expect(plan.claim(1, now: start) == 0..<4 << 20)
        _ = bring(&plan, 1, 1 << 20, at: after(0.01))
        #expect(plan.claim(2, others: 3, now: after(0.05)) == 4 << 20..<9 << 20)
        #expect(plan.claim(3, others: 2, now: after(0.1)) == 9 << 20..<14 << 20)
        #expect(plan.claim(4, others: 1, now: after(0.15)) == 14 << 20..<19 << 20)
        #expect(plan.claim(5, now: after(0.2)) == 19 << 20..<24 << 20)
        // All missing bytes count, and no chunk is smaller than the minimum.
        var gaps = SegmentPlan(total: 5 << 20, written: RangeSet([2 << 20..<4 << 20]))
        _ = gaps.claim(1, others: 8, now: start)
        #expect(gaps.claims[1]?.range == 0..<1 << 20)
    }

    @Test("Stored bytes are not requested, and bytes beyond the end are ignored")
    func resumed() {
        var plan = SegmentPlan(total: 100, written: RangeSet([0..<10, 20..<30, 90..<200]))
        #expect(plan.writtenCount == 30 && plan.prefixCount == 10 && plan.unclaimedCount == 70)
        #expect(plan.claim(1, now: start) == 10..<20)
        #expect(plan.claim(2, now: start) == 30..<90)
        #expect(plan.claim(3, now: start) == nil)
        #expect(bring(&plan, 1, 500, at: after(1)) == nil)
        #expect(bring(&plan, 2, 60, at: after(1)) == nil)
        #expect(plan.isComplete && plan.prefixCount == 100 && plan.unclaimedCount == 0)
    }

    @Test("Bytes beyond the range of a transfer are discarded")
    func surplus() {
        var plan = SegmentPlan(total: 100)
        _ = plan.claim(1, now: start)
        let first = plan.accept(1, 60, now: start)
        #expect(first?.offset == 0 && first?.count == 60 && first?.wantsMore == true)
        let second = plan.accept(1, .max, now: start)
        #expect(second?.offset == 60 && second?.count == 40 && second?.wantsMore == false)
        let third = plan.accept(1, 5, now: start)
        #expect(third?.count == 0 && third?.wantsMore == false)
        #expect(plan.accept(9, 5, now: start) == nil)
    }

    @Test("Bytes that were received but not written are missing when their transfer ends")
    func unwritten() {
        var plan = SegmentPlan(total: 100)
        _ = plan.claim(1, now: start)
        _ = plan.accept(1, 60, now: start)
        _ = plan.wrote(1, 0..<20)
        plan.release(1, now: start)
        #expect(plan.claim(2, now: start) == 20..<100)
        // A late report about an ended transfer still counts: the bytes are on disk.
        _ = plan.wrote(1, 20..<60)
        #expect(plan.writtenCount == 60)
    }

    @Test("An idle transfer takes over the end of the slowest range, in proportion to its speed")
    func takenOver() {
        let total = 40 * SegmentPlanTests.mebibyte
        var plan = SegmentPlan(total: total)
        plan.claim(1, 0..<total / 2, now: start)
        plan.claim(2, total / 2..<total, now: start)
        for step in 1...20 {
            _ = bring(&plan, 1, 900_000, at: after(Double(step) / 10))
            _ = bring(&plan, 2, 100_000, at: after(Double(step) / 10))
        }
        let rest = plan.claims[2].map { $0.range.upperBound - $0.position } ?? 0
        let taken = plan.claim(3, now: after(2))
        #expect(taken?.upperBound == total)
        let share = Double(taken?.byteCount ?? 0) / Double(rest)
        #expect((0.85...0.95).contains(share), "\(share)")
        #expect(plan.claims[2]?.range.upperBound == taken?.lowerBound)
        #expect(plan.claims[2]?.rival == nil && plan.claims[3]?.rival == nil)
    }

    @Test("Almost the whole range of a stalled transfer is taken over, and can be split further")
    func standsStill() {
        let end = 40 * SegmentPlanTests.mebibyte
        let total = 50 * SegmentPlanTests.mebibyte
        var plan = SegmentPlan(total: total)
        plan.claim(1, 0..<end, now: start)
        plan.claim(2, end..<total, now: start)
        _ = bring(&plan, 2, total - end, at: after(1))
        plan.release(2, now: after(1))
        let taken = plan.claim(3, now: after(10))
        #expect(taken == SegmentPlan.minimumSplitByteCount / 4..<end)
        _ = bring(&plan, 3, 5_000_000, at: after(11))
        // Two transfers race for the small rest.
        #expect(plan.claim(4, now: after(11)) == 0..<SegmentPlan.minimumSplitByteCount / 4)
        let further = plan.claim(5, now: after(11))
        #expect(further?.upperBound == end)
        #expect(further.map { $0.byteCount > 10 * SegmentPlanTests.mebibyte } == true)
        #expect(plan.claims[3]?.rival == nil)
    }

    @Test("A stalled transfer keeps its range for the grace period of the settings")
    func bearing() {
        var plan = SegmentPlan(total: 4 << 20, takeoverThreshold: .seconds(60))
        _ = plan.claim(1, now: start)
        _ = bring(&plan, 1, 1 << 20, at: after(0.5))
        #expect(plan.claim(2, now: after(3)) == nil)
        #expect(plan.claim(2, now: after(60)) == nil)
        #expect(plan.claim(2, now: after(61)) != nil)
    }

    @Test("A transfer that has just started does not lose its whole range")
    func justBegun() {
        let total = 10 * SegmentPlanTests.mebibyte
        var plan = SegmentPlan(total: 2 * total)
        plan.claim(1, 0..<total, now: start)
        _ = bring(&plan, 1, 5_000_000, at: after(1))
        plan.claim(2, total..<2 * total, now: after(1))
        let third = plan.claim(3, now: after(1))
        // Both have the same known speed, so each gets a half.
        #expect(third == total + total / 2..<2 * total)
        #expect(plan.claims[3]?.rival == nil)
    }

    @Test("Transfers race for a small rest, and the first one ends the other")
    func raced() {
        var plan = SegmentPlan(total: 120 << 10)
        #expect(plan.claim(1, now: start) == 0..<120 << 10)
        _ = bring(&plan, 1, 20 << 10, at: after(1))
        #expect(plan.claim(2, now: after(30)) == 20 << 10..<120 << 10)
        #expect(plan.claims[1]?.rival == 2 && plan.claims[2]?.rival == 1)
        // No third transfer joins the race.
        #expect(plan.claim(3, now: after(60)) == nil)
        #expect(bring(&plan, 1, 10, at: after(61)) == nil)
        #expect(bring(&plan, 2, 60 << 10, at: after(61)) == nil)
        #expect(bring(&plan, 2, 40 << 10, at: after(62)) == 1)
        #expect(plan.isComplete)
        // Until the loser is cancelled, no transfer starts a race for stored bytes.
        plan.release(2, now: after(62))
        #expect(plan.claim(4, now: after(90)) == nil)
    }

    @Test("The transfer that is left of a race continues alone")
    func raceLost() {
        var plan = SegmentPlan(total: 120 << 10)
        _ = plan.claim(1, now: start)
        _ = plan.claim(2, now: after(30))
        plan.release(1, now: after(31))
        #expect(plan.claims[2]?.rival == nil)
        #expect(plan.unclaimedCount == 0)
        #expect(plan.claim(3, now: after(60)) == 0..<120 << 10)
    }

    @Test(
        "A range that ends within four times the longest response time is not taken over",
        arguments: [
            ([], 6, false), ([], 4, true), ([1], 8, true), ([1], 9, false), ([50], 7, true), ([50], 8, false),
            ([50, 1], 8, false), ([1, 50], 8, false), ([60_000], 4, true), ([60_000], 6, false),
        ] as [([Int], Int, Bool)])
    func takeoverThreshold(_ answers: [Int], steps: Int, isTakenOver: Bool) {
        var plan = SegmentPlan(total: 10 << 20)
        plan.claim(1, 0..<10 << 20, now: start)
        for answer in answers { plan.responseReceived(after: .milliseconds(answer)) }
        // A tenth of it arrives in each tenth of a second.
        for step in 1...steps { _ = bring(&plan, 1, 1 << 20, at: after(Double(step) / 10)) }
        #expect((plan.claim(2, now: after(Double(steps) / 10)) != nil) == isTakenOver)
    }

    @Test("A rest that arrives in bursts is taken over between them, and a small one is raced for")
    func bursts() {
        var plan = SegmentPlan(total: 4 << 20)
        plan.claim(1, 0..<4 << 20, now: start)
        plan.responseReceived(after: .milliseconds(1))
        for step in 1...5 { _ = bring(&plan, 1, 800_000, at: after(Double(step) / 5)) }
        // At this rate the remaining 194,304 bytes arrive within 50 ms, but not between two bursts.
        #expect(plan.claim(2, now: after(1.02)) == nil)
        let half = plan.claim(2, now: after(1.08))
        #expect(half?.upperBound == 4 << 20 && half?.byteCount == 97_152)
        _ = bring(&plan, 2, 97_152, at: after(1.09))
        plan.release(2, now: after(1.09))
        // The rest is then too small to be split.
        #expect(plan.claim(3, now: after(1.1)) == 4_000_000..<4_097_152)
        #expect(plan.claims[1]?.rival == 3)
    }

    @Test("A configured grace period applies, whatever the server's response time")
    func givenThreshold() {
        var plan = SegmentPlan(total: 10 << 20, takeoverThreshold: .milliseconds(250))
        plan.claim(1, 0..<10 << 20, now: start)
        plan.responseReceived(after: .milliseconds(1))
        for step in 1...8 { _ = bring(&plan, 1, 1 << 20, at: after(Double(step) / 10)) }
        #expect(plan.claim(2, now: after(0.8)) == nil)
    }

    @Test("A response with fewer bytes than requested leaves the others missing")
    func shortened() {
        var plan = SegmentPlan(total: 100)
        _ = plan.claim(1, now: start)
        _ = plan.accept(1, 10, now: start)
        plan.shorten(1, to: 5)
        #expect(plan.claims[1]?.range.upperBound == 100)
        plan.shorten(1, to: 150)
        #expect(plan.claims[1]?.range.upperBound == 100)
        plan.shorten(1, to: 40)
        #expect(plan.unclaimedCount == 60)
        #expect(plan.claim(2, now: start) == 40..<100)
        plan.shorten(7, to: 1)
    }

    @Test("A file of unknown length uses one transfer and cannot be split")
    func unknownTotal() {
        var plan = SegmentPlan(total: nil, written: RangeSet([0..<50]))
        #expect(plan.unclaimedCount == nil && !plan.isComplete)
        #expect(plan.claim(1, now: start) == 50..<UInt64.max)
        _ = bring(&plan, 1, 1_000_000, at: after(1))
        #expect(plan.claim(2, now: after(1)) == nil)
        #expect(plan.claim(2, now: after(3_600)) == nil)
        plan.end(at: 1_000_050)
        #expect(plan.isComplete && plan.total == 1_000_050)
        #expect(plan.claims[1]?.range == 50..<1_000_050)
    }

    @Test("A length below the received bytes removes none of them")
    func earlyEnd() {
        var plan = SegmentPlan(total: nil)
        _ = plan.claim(1, now: start)
        _ = bring(&plan, 1, 100, at: start)
        plan.end(at: 40)
        #expect(plan.claims[1]?.range == 0..<100)
        #expect(plan.accept(1, 5, now: start)?.count == 0)
    }

    @Test("An empty file is complete without a byte")
    func empty() {
        var plan = SegmentPlan(total: 0)
        #expect(plan.isComplete && plan.writtenCount == 0)
        #expect(plan.claim(1, now: start) == nil)
    }

    @Test("In order, no bytes are requested beyond the window, which moves with the first missing byte")
    func window() {
        let window = 2 * SegmentPlanTests.mebibyte
        var plan = SegmentPlan(total: 1 << 30, window: window)
        #expect(plan.claim(1, now: start) == 0..<window)
        // The whole window is requested: the transfer that fetches it is helped if it is slow.
        #expect(plan.claim(2, now: after(0.1)).map { $0.upperBound <= window } != false)
        plan.release(2, now: after(0.1))
        _ = bring(&plan, 1, 1 << 20, at: after(0.2))
        let next = plan.claim(3, now: after(0.2))
        #expect(next.map { $0.upperBound <= (1 << 20) + window } == true)
    }

    @Test("In order, a stalled transfer does not block the others forever")
    func windowStalled() {
        let window = 2 * SegmentPlanTests.mebibyte
        var plan = SegmentPlan(total: 1 << 30, window: window)
        #expect(plan.claim(1, now: start) == 0..<window)
        let helper = plan.claim(2, now: after(20))
        #expect(helper?.upperBound == window)
        let racer = plan.claim(3, now: after(20))
        #expect(racer != nil)
    }

    @Test("A window of the maximum integer has no effect")
    func widestWindow() {
        var plan = SegmentPlan(total: .max, written: RangeSet([0..<1 << 40]), window: .max)
        #expect(plan.claim(1, now: start)?.lowerBound == 1 << 40)
        var small = SegmentPlan(total: 1 << 30, window: 0)
        #expect(small.claim(1, now: start) == 0..<SegmentPlan.smallestChunk)
    }

    @Test("The contiguous bytes before an offset are counted back to the previous gap")
    func writtenBefore() {
        let plan = SegmentPlan(total: 100, written: RangeSet([0..<10, 20..<30]))
        #expect(plan.writtenCount(before: 30) == 10)
        #expect(plan.writtenCount(before: 25) == 5)
        #expect(plan.writtenCount(before: 10) == 10)
        #expect(plan.writtenCount(before: 15) == 0)
        #expect(plan.writtenCount(before: 0) == 0)
    }
}

extension SegmentPlan {
    /// The number of bytes that no transfer has requested; `nil` if the end is not known.
    fileprivate var unclaimedCount: UInt64? {
        total == nil ? nil : missing().reduce(0) { $0 + $1.byteCount }
    }
}
