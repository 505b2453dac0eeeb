@testable import MartletDownloads
import MartletTestSupport
import MartletTransport
import Testing

@Suite("Which bytes are asked for next")
struct SegmentPlanTests {
    private static let mebibyte: UInt64 = 1 << 20
    private let start = MonotonicTime(nanoseconds: 1_000_000_000)

    private func after(_ seconds: Double) -> MonotonicTime {
        start.advanced(by: .milliseconds(Int(seconds * 1_000)))
    }

    /// Lets bytes of a transfer come and be written.
    private func bring(
        _ plan: inout SegmentPlan, _ id: UInt64, _ count: UInt64, at now: MonotonicTime
    ) -> UInt64? {
        guard let place = plan.accept(id, count, now: now) else { return nil }
        return plan.wrote(id, place.offset..<place.offset + place.count)
    }

    @Test("A chunk is what comes in three seconds, within its bounds, and a small rest goes with it")
    func chunks() {
        var plan = SegmentPlan(total: 1 << 30)
        // Nothing is known of the speed.
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

    @Test("Each transfer that may join soon is left its share, however fast the first moments were")
    func shares() {
        var plan = SegmentPlan(total: 24 << 20)
        #expect(plan.claim(1, now: start) == 0..<4 << 20)
        _ = bring(&plan, 1, 1 << 20, at: after(0.01))
        #expect(plan.claim(2, others: 3, now: after(0.05)) == 4 << 20..<9 << 20)
        #expect(plan.claim(3, others: 2, now: after(0.1)) == 9 << 20..<14 << 20)
        #expect(plan.claim(4, others: 1, now: after(0.15)) == 14 << 20..<19 << 20)
        #expect(plan.claim(5, now: after(0.2)) == 19 << 20..<24 << 20)
        // What is missing in all counts, and nothing smaller than the smallest chunk is made of it.
        var gaps = SegmentPlan(total: 5 << 20, written: RangeSet([2 << 20..<4 << 20]))
        _ = gaps.claim(1, others: 8, now: start)
        #expect(gaps.claims[1]?.range == 0..<1 << 20)
    }

    @Test("What is there is not asked for, and what is beyond the end counts as not there")
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

    @Test("Bytes beyond what was given to a transfer are not wanted")
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

    @Test("Bytes that came and were not written are missing when their transfer ends")
    func unwritten() {
        var plan = SegmentPlan(total: 100)
        _ = plan.claim(1, now: start)
        _ = plan.accept(1, 60, now: start)
        _ = plan.wrote(1, 0..<20)
        plan.release(1, now: start)
        #expect(plan.claim(2, now: start) == 20..<100)
        // What is told late of a transfer that is off still counts: the bytes are there.
        _ = plan.wrote(1, 20..<60)
        #expect(plan.writtenCount == 60)
    }

    @Test("An idle transfer takes over the end of what takes longest, in the share of its speed")
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

    @Test("Of a transfer that stands still all but a little is taken over, and can be parted further")
    func standsStill() {
        let end = 40 * SegmentPlanTests.mebibyte
        let total = 50 * SegmentPlanTests.mebibyte
        var plan = SegmentPlan(total: total)
        plan.claim(1, 0..<end, now: start)
        plan.claim(2, end..<total, now: start)
        _ = bring(&plan, 2, total - end, at: after(1))
        plan.release(2, now: after(1))
        let taken = plan.claim(3, now: after(10))
        #expect(taken == SegmentPlan.smallestTheft / 4..<end)
        _ = bring(&plan, 3, 5_000_000, at: after(11))
        // The little that was left is raced for.
        #expect(plan.claim(4, now: after(11)) == 0..<SegmentPlan.smallestTheft / 4)
        let further = plan.claim(5, now: after(11))
        #expect(further?.upperBound == end)
        #expect(further.map { $0.byteCount > 10 * SegmentPlanTests.mebibyte } == true)
        #expect(plan.claims[3]?.rival == nil)
    }

    @Test("A transfer that stands still is left alone for as long as the settings bear with it")
    func bearing() {
        var plan = SegmentPlan(total: 4 << 20, patience: .seconds(60))
        _ = plan.claim(1, now: start)
        _ = bring(&plan, 1, 1 << 20, at: after(0.5))
        #expect(plan.claim(2, now: after(3)) == nil)
        #expect(plan.claim(2, now: after(60)) == nil)
        #expect(plan.claim(2, now: after(61)) != nil)
    }

    @Test("A transfer that has just begun is not raced for all it has")
    func justBegun() {
        let total = 10 * SegmentPlanTests.mebibyte
        var plan = SegmentPlan(total: 2 * total)
        plan.claim(1, 0..<total, now: start)
        _ = bring(&plan, 1, 5_000_000, at: after(1))
        plan.claim(2, total..<2 * total, now: after(1))
        let third = plan.claim(3, now: after(1))
        // Both are as fast as far as anybody knows: half of it.
        #expect(third == total + total / 2..<2 * total)
        #expect(plan.claims[3]?.rival == nil)
    }

    @Test("A small rest is raced for, and whoever is first ends the other")
    func raced() {
        var plan = SegmentPlan(total: 120 << 10)
        #expect(plan.claim(1, now: start) == 0..<120 << 10)
        _ = bring(&plan, 1, 20 << 10, at: after(1))
        #expect(plan.claim(2, now: after(30)) == 20 << 10..<120 << 10)
        #expect(plan.claims[1]?.rival == 2 && plan.claims[2]?.rival == 1)
        // No third one joins the race.
        #expect(plan.claim(3, now: after(60)) == nil)
        #expect(bring(&plan, 1, 10, at: after(61)) == nil)
        #expect(bring(&plan, 2, 60 << 10, at: after(61)) == nil)
        #expect(bring(&plan, 2, 40 << 10, at: after(62)) == 1)
        #expect(plan.isComplete)
        // Before the loser is called off nobody begins a race for what is there.
        plan.release(2, now: after(62))
        #expect(plan.claim(4, now: after(90)) == nil)
    }

    @Test("The one that is left of a race goes on alone")
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
        "What is done within four times the longest answer is not taken over",
        arguments: [
            ([], 6, false), ([], 4, true), ([1], 8, true), ([1], 9, false), ([50], 7, true), ([50], 8, false),
            ([50, 1], 8, false), ([1, 50], 8, false), ([60_000], 4, true), ([60_000], 6, false),
        ] as [([Int], Int, Bool)])
    func patience(_ answers: [Int], steps: Int, isTakenOver: Bool) {
        var plan = SegmentPlan(total: 10 << 20)
        plan.claim(1, 0..<10 << 20, now: start)
        for answer in answers { plan.answered(after: .milliseconds(answer)) }
        // A tenth of it in each tenth of a second.
        for step in 1...steps { _ = bring(&plan, 1, 1 << 20, at: after(Double(step) / 10)) }
        #expect((plan.claim(2, now: after(Double(steps) / 10)) != nil) == isTakenOver)
    }

    @Test("A rest whose bytes come in bursts is taken over between them, and a small one raced for")
    func bursts() {
        var plan = SegmentPlan(total: 4 << 20)
        plan.claim(1, 0..<4 << 20, now: start)
        plan.answered(after: .milliseconds(1))
        for step in 1...5 { _ = bring(&plan, 1, 800_000, at: after(Double(step) / 5)) }
        // 194,304 bytes are left, which come within 50 ms by the rate: not between two bursts, though.
        #expect(plan.claim(2, now: after(1.02)) == nil)
        let half = plan.claim(2, now: after(1.08))
        #expect(half?.upperBound == 4 << 20 && half?.byteCount == 97_152)
        _ = bring(&plan, 2, 97_152, at: after(1.09))
        plan.release(2, now: after(1.09))
        // What is left then is too little to be parted.
        #expect(plan.claim(3, now: after(1.1)) == 4_000_000..<4_097_152)
        #expect(plan.claims[1]?.rival == 3)
    }

    @Test("Patience that was given stays, whatever the server takes")
    func givenPatience() {
        var plan = SegmentPlan(total: 10 << 20, patience: .milliseconds(250))
        plan.claim(1, 0..<10 << 20, now: start)
        plan.answered(after: .milliseconds(1))
        for step in 1...8 { _ = bring(&plan, 1, 1 << 20, at: after(Double(step) / 10)) }
        #expect(plan.claim(2, now: after(0.8)) == nil)
    }

    @Test("An answer with fewer bytes than asked for leaves the others missing")
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

    @Test("A file of unknown length is one transfer's, to its end, and cannot be parted")
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

    @Test("An end that is told before what has come takes nothing back")
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

    @Test("In order nothing is asked for beyond the window, which moves with the first missing byte")
    func window() {
        let window = 2 * SegmentPlanTests.mebibyte
        var plan = SegmentPlan(total: 1 << 30, window: window)
        #expect(plan.claim(1, now: start) == 0..<window)
        // All that may be asked for is on its way: the one who fetches it is helped, when it takes long.
        #expect(plan.claim(2, now: after(0.1)).map { $0.upperBound <= window } != false)
        plan.release(2, now: after(0.1))
        _ = bring(&plan, 1, 1 << 20, at: after(0.2))
        let next = plan.claim(3, now: after(0.2))
        #expect(next.map { $0.upperBound <= (1 << 20) + window } == true)
    }

    @Test("In order a transfer that stands still does not hold up the others for ever")
    func windowStalled() {
        let window = 2 * SegmentPlanTests.mebibyte
        var plan = SegmentPlan(total: 1 << 30, window: window)
        #expect(plan.claim(1, now: start) == 0..<window)
        let helper = plan.claim(2, now: after(20))
        #expect(helper?.upperBound == window)
        let racer = plan.claim(3, now: after(20))
        #expect(racer != nil)
    }

    @Test("A window as large as numbers go is no window")
    func widestWindow() {
        var plan = SegmentPlan(total: .max, written: RangeSet([0..<1 << 40]), window: .max)
        #expect(plan.claim(1, now: start)?.lowerBound == 1 << 40)
        var small = SegmentPlan(total: 1 << 30, window: 0)
        #expect(small.claim(1, now: start) == 0..<SegmentPlan.smallestChunk)
    }

    @Test("The bytes right before an offset are counted up to the next gap")
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
    /// How many bytes nobody has been asked for; nil where the end is not known.
    fileprivate var unclaimedCount: UInt64? {
        total == nil ? nil : missing().reduce(0) { $0 + $1.byteCount }
    }
}
