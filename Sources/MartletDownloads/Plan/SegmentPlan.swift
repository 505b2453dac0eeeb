package import MartletTransport

/// The received bytes of a file, the bytes that transfers fetch, and the bytes to request next. Time is passed in.
/// Every byte of the file is written, claimed by a transfer, or missing. Two transfers claim the same bytes only when
/// they race for the end of the file; the faster one ends the other.
package struct SegmentPlan: Sendable {
    /// The range of a transfer.
    package struct Claim: Sendable {
        /// The claimed bytes; other transfers may have taken over some of the original ones.
        package var range: Range<UInt64>
        /// The first byte that ``accept(_:_:now:)`` has not recorded as received.
        package var position: UInt64
        /// The first byte that has not been written.
        package var writtenEnd: UInt64
        /// The transfer that races for the same bytes.
        package var rival: UInt64?
        package var rate: TransferRate

        /// The number of bytes from ``position`` to the end of the range.
        var rest: UInt64 { range.upperBound - min(position, range.upperBound) }
    }

    /// The minimum size of a chunk, unless fewer bytes are missing: 1 MiB.
    package static let smallestChunk: UInt64 = 1 << 20
    /// The maximum size of a chunk: 64 MiB.
    package static let largestChunk: UInt64 = 64 << 20
    /// The intended duration of a chunk.
    package static let chunkSeconds = 3.0
    /// The minimum size of a range that is taken over: 64 KiB. Two transfers race for a rest of less than twice that.
    package static let minimumSplitByteCount: UInt64 = 64 << 10
    /// The bounds of the remaining time below which a transfer keeps its range. It is four response times; before the
    /// first response, the upper bound.
    package static let takeoverThresholds = Duration.milliseconds(100)...Duration.milliseconds(500)

    /// The length of the file; `nil` while it is unknown.
    package private(set) var total: UInt64?
    package private(set) var written: RangeSet<UInt64>
    /// The active transfers by number.
    package private(set) var claims: [UInt64: Claim] = [:]
    /// The maximum number of bytes requested ahead of the first missing one; `nil` for no limit.
    private let window: UInt64?
    /// A fixed threshold in seconds, which response times do not change.
    private let givenThreshold: Double?
    /// The server's longest response time in seconds; `nil` before the first response.
    private var responseTime: Double?

    /// The remaining time below which a transfer keeps its range, in seconds.
    private var takeoverThreshold: Double {
        guard givenThreshold == nil, let responseTime else { return maximumThreshold }
        return min(max(4 * responseTime, SegmentPlan.takeoverThresholds.lowerBound / .seconds(1)), maximumThreshold)
    }

    /// The upper bound of ``takeoverThreshold``, which is also the maximum time without a byte that is not a stall. In
    /// seconds.
    private var maximumThreshold: Double { givenThreshold ?? SegmentPlan.takeoverThresholds.upperBound / .seconds(1) }

    /// Creates a plan of a file that may have written bytes.
    /// - Parameter takeoverThreshold: A fixed threshold; `nil` to derive it from response times.
    package init(
        total: UInt64?, written: RangeSet<UInt64> = RangeSet(), window: UInt64? = nil,
        takeoverThreshold: Duration? = nil
    ) {
        self.total = total
        givenThreshold = takeoverThreshold.map { $0 / .seconds(1) }
        self.window = window.map { max($0, SegmentPlan.smallestChunk) }
        self.written = written
        if let total, let last = written.ranges.last, last.upperBound > total {
            self.written.remove(contentsOf: total..<UInt64.max)
        }
    }

    // MARK: Inspection

    package var writtenCount: UInt64 { written.ranges.reduce(0) { $0 + $1.byteCount } }

    /// Returns the number of received bytes: the written ones, and those of the transfers that are not written yet.
    /// - Parameter waiting: The number of bytes of each transfer that have arrived and are not recorded yet.
    package func receivedCount(waiting: [UInt64: UInt64]) -> UInt64 {
        var received = written
        for (id, claim) in claims {
            let end = claim.position + min(waiting[id] ?? 0, claim.rest)
            if claim.writtenEnd < end { received.insert(contentsOf: claim.writtenEnd..<end) }
        }
        return received.ranges.reduce(0) { $0 + $1.byteCount }
    }

    /// The number of bytes written from the first one on without a gap.
    package var prefixCount: UInt64 {
        guard let first = written.ranges.first, first.lowerBound == 0 else { return 0 }
        return first.upperBound
    }

    /// Whether all bytes are written.
    package var isComplete: Bool { total.map { $0 == prefixCount } ?? false }

    /// Returns the ranges that are neither written nor claimed, in order.
    func missing() -> [Range<UInt64>] {
        guard let total else { return claims.isEmpty ? [prefixCount..<UInt64.max] : [] }
        var missing = RangeSet(0..<total).subtracting(written)
        for claim in claims.values where claim.writtenEnd < claim.range.upperBound {
            missing.remove(contentsOf: claim.writtenEnd..<claim.range.upperBound)
        }
        return Array(missing.ranges)
    }

    /// Returns the number of bytes written just before an offset without a gap.
    package func writtenCount(before offset: UInt64) -> UInt64 {
        guard let range = written.ranges.last(where: { $0.lowerBound < offset }), range.upperBound >= offset else {
            return 0
        }
        return offset - range.lowerBound
    }

    // MARK: Claiming

    /// Assigns bytes to a transfer.
    /// - Parameters:
    ///   - id: The number of the transfer, which must be new.
    ///   - takesOver: Whether it may take over bytes that another transfer has claimed and not received.
    ///   - inOnePiece: Whether it gets all of the first gap.
    ///   - others: The number of transfers that may join soon. Each is reserved a share, because initial rates are
    ///     often too high.
    /// - Returns: The bytes; `nil` if there are no bytes to assign.
    package mutating func claim(
        _ id: UInt64, takesOver: Bool = true, inOnePiece: Bool = false, others: Int = 0, now: MonotonicTime
    ) -> Range<UInt64>? {
        let gaps = missing()
        // Without a gap in the window, bytes of the slowest transfer are taken over.
        guard let gap = gaps.first, gap.lowerBound < windowEnd else {
            return takesOver ? splitSlowest(id, now: now) : nil
        }
        // If the length is unknown, one transfer fetches all of the rest.
        let isWhole = total == nil || inOnePiece
        let share = others > 0 ? gaps.reduce(0) { $0 + $1.byteCount } / UInt64(others + 1) : .max
        let chunk = min(chunk(at: now), max(share, SegmentPlan.smallestChunk))
        var end = isWhole ? gap.upperBound : gap.lowerBound + min(gap.byteCount, chunk)
        // A rest that is too small for its own request is included.
        if gap.upperBound - end < SegmentPlan.smallestChunk / 2 { end = gap.upperBound }
        if total != nil { end = min(end, windowEnd) }
        return claim(id, gap.lowerBound..<end, now: now)
    }

    /// The first byte that may not be requested yet.
    private var windowEnd: UInt64 {
        guard let window else { return .max }
        let (end, isBeyond) = prefixCount.addingReportingOverflow(window)
        return isBeyond ? .max : end
    }

    /// Assigns these bytes to a transfer.
    @discardableResult package mutating func claim(
        _ id: UInt64, _ range: Range<UInt64>, rival: UInt64? = nil, now: MonotonicTime
    ) -> Range<UInt64> {
        claims[id] = Claim(
            range: range, position: range.lowerBound, writtenEnd: range.lowerBound, rival: rival,
            rate: TransferRate(from: now))
        return range
    }

    /// Returns the size of a chunk: the bytes that a transfer receives in ``chunkSeconds``.
    private func chunk(at now: MonotonicTime) -> UInt64 {
        let rates = claims.values.map { $0.rate.value(at: now) }.filter { $0 > 0 }
        let mean = rates.isEmpty ? lastRate : rates.reduce(0, +) / Double(rates.count)
        guard mean > 0 else { return 4 * SegmentPlan.smallestChunk }
        let chunk = UInt64(min(mean * SegmentPlan.chunkSeconds, Double(SegmentPlan.largestChunk)))
        return max(SegmentPlan.smallestChunk, chunk)
    }

    /// The rate of the transfer that ended last.
    private var lastRate = 0.0

    /// Takes over a share of the range that will take longest, in proportion to the rates. Races for it if it is small.
    private mutating func splitSlowest(_ id: UInt64, now: MonotonicTime) -> Range<UInt64>? {
        // A range without an end cannot be divided.
        guard total != nil else { return nil }
        var rates = claims.mapValues { $0.rate.value(at: now) }
        let ownRate = max(lastRate, rates.values.max() ?? 0)
        // A transfer that has just started is assumed to be as fast as the others.
        for (number, claim) in claims where claim.position == claim.range.lowerBound {
            if claim.rate.age(at: now) < maximumThreshold { rates[number] = ownRate > 0 ? ownRate : .infinity }
        }
        var victim: (id: UInt64, claim: Claim, seconds: Double)?
        for (number, claim) in claims where claim.rest > 0 && claim.rival == nil {
            // A transfer whose range a rival has written completely is about to end.
            if written.contains(wholly: claim.position..<claim.range.upperBound) { continue }
            let rate = rates[number] ?? 0
            if rate == 0, claim.rate.silence(at: now) <= maximumThreshold { continue }
            // A transfer that receives in bursts does not finish before its next burst.
            let seconds = Double(claim.rest) / max(rate, 1) + claim.rate.silence(at: now)
            if seconds > takeoverThreshold, seconds > victim?.seconds ?? 0 { victim = (number, claim, seconds) }
        }
        guard let victim else { return nil }
        let victimRate = rates[victim.id] ?? 0
        // Both finish at the same time, if their rates stay the same.
        let share = ownRate + victimRate > 0 ? ownRate / (ownRate + victimRate) : 0.5
        let rest = victim.claim.rest
        if rest >= 2 * SegmentPlan.minimumSplitByteCount {
            // Even a stalled transfer keeps a small range, for which others race. The taken bytes can be split again.
            let most = rest - SegmentPlan.minimumSplitByteCount / 4
            let fair = UInt64(min(Double(rest) * share, Double(most)))
            let taken = min(most, max(SegmentPlan.minimumSplitByteCount, fair))
            let middle = victim.claim.range.upperBound - taken
            claims[victim.id]?.range = victim.claim.range.lowerBound..<middle
            return claim(id, middle..<victim.claim.range.upperBound, now: now)
        }
        claims[victim.id]?.rival = id
        return claim(id, victim.claim.position..<victim.claim.range.upperBound, rival: victim.id, now: now)
    }

    // MARK: Events

    /// Records the response time of a request.
    package mutating func responseReceived(after time: Duration) {
        responseTime = max(responseTime ?? 0, time / .seconds(1))
    }

    /// Records received bytes of a transfer.
    /// - Returns: The offset and number of wanted bytes, and whether more are wanted; `nil` for an inactive transfer.
    package mutating func accept(_ id: UInt64, _ count: UInt64, now: MonotonicTime) -> (
        offset: UInt64, count: UInt64, wantsMore: Bool
    )? {
        guard var claim = claims[id] else { return nil }
        let offset = claim.position
        let taken = min(count, claim.rest)
        claim.position += taken
        claim.rate.add(taken, at: now)
        claims[id] = claim
        return (offset, taken, claim.rest > 0)
    }

    /// Records written bytes of a transfer.
    /// - Returns: The rival that this transfer has overtaken, and that has nothing left to do.
    package mutating func wrote(_ id: UInt64, _ range: Range<UInt64>) -> UInt64? {
        if !range.isEmpty { written.insert(contentsOf: range) }
        guard var claim = claims[id] else { return nil }
        claim.writtenEnd = max(claim.writtenEnd, range.upperBound)
        claims[id] = claim
        guard let rival = claim.rival, let other = claims[rival] else { return nil }
        let left = other.writtenEnd..<max(other.writtenEnd, other.range.upperBound)
        return written.contains(wholly: left) ? rival : nil
    }

    /// Records the end of a transfer: the bytes that it has not received are missing again.
    package mutating func release(_ id: UInt64, now: MonotonicTime) {
        guard let claim = claims.removeValue(forKey: id) else { return }
        let rate = claim.rate.value(at: now)
        if rate > 0 { lastRate = rate }
        if let rival = claim.rival { claims[rival]?.rival = nil }
    }

    /// Shortens the range of a transfer: a response may have fewer bytes than requested.
    package mutating func shorten(_ id: UInt64, to end: UInt64) {
        guard let claim = claims[id], end < claim.range.upperBound, end >= claim.position else { return }
        claims[id]?.range = claim.range.lowerBound..<end
    }

    /// Records the length of the file. Claims past it are truncated.
    package mutating func end(at total: UInt64) {
        self.total = total
        for (id, claim) in claims where claim.range.upperBound > total {
            let end = max(total, claim.position)
            claims[id]?.range = min(claim.range.lowerBound, end)..<end
        }
    }
}

extension Range<UInt64> {
    package var byteCount: UInt64 { upperBound - lowerBound }
}

extension RangeSet where Bound == UInt64 {
    /// Whether all of a range is in the set; true for an empty range.
    package func contains(wholly range: Range<UInt64>) -> Bool {
        if range.isEmpty { return true }
        return ranges.contains { $0.lowerBound <= range.lowerBound && $0.upperBound >= range.upperBound }
    }
}
