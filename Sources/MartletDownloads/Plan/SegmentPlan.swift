package import MartletTransport

/// Which bytes of a file are there, which are on their way, and what is asked for next.
///
/// A pure machine: time is passed in. Every byte of the file is written, claimed by a transfer, or missing. Two transfers
/// claim the same bytes only in the race for the file's tail, where whoever is first ends the other.
package struct SegmentPlan: Sendable {
    /// What a transfer is to fetch.
    package struct Claim: Sendable {
        /// The bytes it was given, as they are now: others may have taken over some of them.
        package var range: Range<UInt64>
        /// The first byte that has not come yet.
        package var position: UInt64
        /// The first byte that is not written yet.
        package var writtenEnd: UInt64
        /// The transfer with which it races for the same bytes.
        package var rival: UInt64?
        /// Its rate.
        package var rate: TransferRate

        /// The bytes that have not come.
        var rest: UInt64 { range.upperBound - min(position, range.upperBound) }
    }

    /// The smallest range that is asked for where there is more: 1 MiB.
    package static let smallestChunk: UInt64 = 1 << 20
    /// The largest: 64 MiB.
    package static let largestChunk: UInt64 = 64 << 20
    /// How long a chunk is meant to take.
    package static let chunkSeconds = 3.0
    /// Nothing smaller is taken over from a transfer: 64 KiB. What is left then is raced for.
    package static let smallestTheft: UInt64 = 64 << 10
    /// What is done sooner than this is neither taken over nor raced for: four times as long as the server took at most to
    /// answer, within these bounds. The longer one before it has answered.
    package static let patience = Duration.milliseconds(100)...Duration.milliseconds(500)

    /// How many bytes there are in all; nil while that is not known.
    package private(set) var total: UInt64?
    /// What is written.
    package private(set) var written: RangeSet<UInt64>
    /// The transfers that are on, by their numbers.
    package private(set) var claims: [UInt64: Claim] = [:]
    /// How many bytes ahead of the first missing one may be asked for; nil for any number.
    private let window: UInt64?
    /// The patience that was given, in seconds, which answers do not change.
    private let givenPatience: Double?
    /// The longest time that the server took to answer, in seconds; nil before it has.
    private var answerTime: Double?

    /// What is done sooner is left alone, in seconds.
    private var patience: Double {
        guard givenPatience == nil, let answerTime else { return longestPatience }
        return min(max(4 * answerTime, SegmentPlan.patience.lowerBound / .seconds(1)), longestPatience)
    }

    /// How long a transfer may be without a byte before that says something about it, in seconds.
    private var longestPatience: Double { givenPatience ?? SegmentPlan.patience.upperBound / .seconds(1) }

    /// A plan of a file, of which some bytes are there.
    /// - Parameter patience: What is done sooner is left alone; `nil` for what the server's answers bring.
    package init(
        total: UInt64?, written: RangeSet<UInt64> = RangeSet(), window: UInt64? = nil,
        patience: Duration? = nil
    ) {
        self.total = total
        givenPatience = patience.map { $0 / .seconds(1) }
        self.window = window.map { max($0, SegmentPlan.smallestChunk) }
        self.written = written
        if let total, let last = written.ranges.last, last.upperBound > total {
            self.written.remove(contentsOf: total..<UInt64.max)
        }
    }

    // MARK: Questions

    /// How many bytes are written.
    package var writtenCount: UInt64 { written.ranges.reduce(0) { $0 + $1.byteCount } }

    /// How many bytes from the first are written without a gap.
    package var prefixCount: UInt64 {
        guard let first = written.ranges.first, first.lowerBound == 0 else { return 0 }
        return first.upperBound
    }

    /// Whether all is written.
    package var isComplete: Bool { total.map { $0 == prefixCount } ?? false }

    /// Bytes a second, of all transfers.
    package func rate(at now: MonotonicTime) -> Double {
        claims.values.reduce(0) { $0 + $1.rate.value(at: now) }
    }

    /// The ranges that are neither written nor claimed, in order.
    func missing() -> [Range<UInt64>] {
        guard let total else { return claims.isEmpty ? [prefixCount..<UInt64.max] : [] }
        var taken = written
        for claim in claims.values where claim.writtenEnd < claim.range.upperBound {
            taken.insert(contentsOf: claim.writtenEnd..<claim.range.upperBound)
        }
        var gaps: [Range<UInt64>] = []
        var position: UInt64 = 0
        for range in taken.ranges {
            if position < range.lowerBound { gaps.append(position..<range.lowerBound) }
            position = range.upperBound
        }
        if position < total { gaps.append(position..<total) }
        return gaps
    }

    /// How many bytes right before an offset are written without a gap.
    package func writtenCount(before offset: UInt64) -> UInt64 {
        guard let range = written.ranges.last(where: { $0.lowerBound < offset }), range.upperBound >= offset
        else { return 0 }
        return offset - range.lowerBound
    }

    // MARK: Asking

    /// Gives a transfer bytes to fetch; nil where there are none for it.
    /// - Parameters:
    ///   - id: The number of the transfer, new.
    ///   - takesOver: Whether it may be given what another one was given and has not fetched.
    ///   - inOnePiece: Whether it is given all of the first gap.
    ///   - others: How many transfers may join soon: each is left its share, since the rates of the first moments promise too
    ///     much.
    package mutating func claim(
        _ id: UInt64, takesOver: Bool = true, inOnePiece: Bool = false, others: Int = 0, now: MonotonicTime
    ) -> Range<UInt64>? {
        let gaps = missing()
        if let gap = gaps.first {
            // The first missing byte is on its way: what holds the others up is whoever fetches it.
            if gap.lowerBound >= windowEnd { return takesOver ? takeOver(id, now: now) : nil }
            // Where the end is not known, one transfer goes on to it.
            let isWhole = total == nil || inOnePiece
            let share = others > 0 ? gaps.reduce(0) { $0 + $1.byteCount } / UInt64(others + 1) : .max
            let chunk = min(chunk(at: now), max(share, SegmentPlan.smallestChunk))
            var end = isWhole ? gap.upperBound : gap.lowerBound + min(gap.byteCount, chunk)
            // A rest that would not be worth a request is asked for at once.
            if gap.upperBound - end < SegmentPlan.smallestChunk / 2 { end = gap.upperBound }
            if total != nil { end = min(end, windowEnd) }
            return enter(id, gap.lowerBound..<end, now)
        }
        return takesOver ? takeOver(id, now: now) : nil
    }

    /// The first byte that may not be asked for yet.
    private var windowEnd: UInt64 {
        guard let window else { return .max }
        let (end, isBeyond) = prefixCount.addingReportingOverflow(window)
        return isBeyond ? .max : end
    }

    /// Gives a transfer these bytes, which it has asked for already.
    package mutating func claim(_ id: UInt64, _ range: Range<UInt64>, now: MonotonicTime) {
        _ = enter(id, range, now)
    }

    private mutating func enter(
        _ id: UInt64, _ range: Range<UInt64>, rival: UInt64? = nil, _ now: MonotonicTime
    ) -> Range<UInt64> {
        claims[id] = Claim(
            range: range, position: range.lowerBound, writtenEnd: range.lowerBound, rival: rival,
            rate: TransferRate(from: now))
        return range
    }

    /// How much is asked for at once: what comes in three seconds.
    private func chunk(at now: MonotonicTime) -> UInt64 {
        let rates = claims.values.map { $0.rate.value(at: now) }.filter { $0 > 0 }
        let mean = rates.isEmpty ? lastRate : rates.reduce(0, +) / Double(rates.count)
        guard mean > 0 else { return 4 * SegmentPlan.smallestChunk }
        let chunk = UInt64(min(mean * SegmentPlan.chunkSeconds, Double(SegmentPlan.largestChunk)))
        return max(SegmentPlan.smallestChunk, chunk)
    }

    /// The rate of the transfer that ended last.
    private var lastRate = 0.0

    /// Takes over the end of what the transfer that will be busy for longest has to fetch, as much as is fair by their
    /// speeds; or races for all of it, where it is little.
    private mutating func takeOver(_ id: UInt64, now: MonotonicTime) -> Range<UInt64>? {
        // Where the end is not known, there is nothing to part.
        guard total != nil else { return nil }
        var rates = claims.mapValues { $0.rate.value(at: now) }
        let mine = max(lastRate, rates.values.max() ?? 0)
        // Of a transfer that has just begun nothing is known yet: it counts as fast as the others.
        for (number, claim) in claims where claim.position == claim.range.lowerBound {
            if claim.rate.age(at: now) < longestPatience { rates[number] = mine > 0 ? mine : .infinity }
        }
        var victim: (id: UInt64, claim: Claim, seconds: Double)?
        for (number, claim) in claims where claim.rest > 0 && claim.rival == nil {
            // Whose rival has written all of it has only not heard of it yet.
            if written.contains(wholly: claim.position..<claim.range.upperBound) { continue }
            let rate = rates[number] ?? 0
            if rate == 0, claim.rate.silence(at: now) <= longestPatience { continue }
            // Whose bytes come in bursts is not done before the next one.
            let seconds = Double(claim.rest) / max(rate, 1) + claim.rate.silence(at: now)
            if seconds > patience, seconds > victim?.seconds ?? 0 { victim = (number, claim, seconds) }
        }
        guard let victim else { return nil }
        let theirs = rates[victim.id] ?? 0
        // Both are done at the same time, if their speeds stay what they are.
        let share = mine + theirs > 0 ? mine / (mine + theirs) : 0.5
        let rest = victim.claim.rest
        if rest >= 2 * SegmentPlan.smallestTheft {
            // A little is left to whoever stands still, too: the race for that leaves the rest free to be parted further.
            let most = rest - SegmentPlan.smallestTheft / 4
            let fair = UInt64(min(Double(rest) * share, Double(most)))
            let theft = min(most, max(SegmentPlan.smallestTheft, fair))
            let middle = victim.claim.range.upperBound - theft
            claims[victim.id]?.range = victim.claim.range.lowerBound..<middle
            return enter(id, middle..<victim.claim.range.upperBound, now)
        }
        claims[victim.id]?.rival = id
        return enter(id, victim.claim.position..<victim.claim.range.upperBound, rival: victim.id, now)
    }

    // MARK: Coming

    /// The server has answered a request, after so long.
    package mutating func answered(after time: Duration) {
        answerTime = max(answerTime ?? 0, time / .seconds(1))
    }

    /// Bytes of a transfer have come.
    /// - Returns: Where they belong, how many of them are wanted, and whether more are; nil for a transfer that is not on.
    package mutating func accept(
        _ id: UInt64, _ count: UInt64, now: MonotonicTime
    ) -> (offset: UInt64, count: UInt64, wantsMore: Bool)? {
        guard var claim = claims[id] else { return nil }
        let offset = claim.position
        let taken = min(count, claim.rest)
        claim.position += taken
        claim.rate.add(taken, at: now)
        claims[id] = claim
        return (offset, taken, claim.rest > 0)
    }

    /// Bytes of a transfer are written.
    /// - Returns: A transfer that has nothing left to do by that: its rival was faster.
    package mutating func wrote(_ id: UInt64, _ range: Range<UInt64>) -> UInt64? {
        if !range.isEmpty { written.insert(contentsOf: range) }
        guard var claim = claims[id] else { return nil }
        claim.writtenEnd = max(claim.writtenEnd, range.upperBound)
        claims[id] = claim
        guard let rival = claim.rival, let other = claims[rival] else { return nil }
        let left = other.writtenEnd..<max(other.writtenEnd, other.range.upperBound)
        return written.contains(wholly: left) ? rival : nil
    }

    /// A transfer has ended, whatever it has fetched: what it has not is missing again.
    package mutating func release(_ id: UInt64, now: MonotonicTime) {
        guard let claim = claims.removeValue(forKey: id) else { return }
        let rate = claim.rate.value(at: now)
        if rate > 0 { lastRate = rate }
        if let rival = claim.rival { claims[rival]?.rival = nil }
    }

    /// A transfer has less to fetch than it was given: an answer may have fewer bytes than were asked for.
    package mutating func shorten(_ id: UInt64, to end: UInt64) {
        guard let claim = claims[id], end < claim.range.upperBound, end >= claim.position else { return }
        claims[id]?.range = claim.range.lowerBound..<end
    }

    /// The length of the file is known now: what is claimed beyond it is not there to be had.
    package mutating func end(at total: UInt64) {
        self.total = total
        for (id, claim) in claims where claim.range.upperBound > total {
            let end = max(total, claim.position)
            claims[id]?.range = min(claim.range.lowerBound, end)..<end
        }
    }
}

extension Range<UInt64> {
    /// How many bytes it has.
    package var byteCount: UInt64 { upperBound - lowerBound }
}

extension RangeSet where Bound == UInt64 {
    /// Whether all of a range is in the set; of an empty one it is.
    package func contains(wholly range: Range<UInt64>) -> Bool {
        if range.isEmpty { return true }
        return ranges.contains { $0.lowerBound <= range.lowerBound && $0.upperBound >= range.upperBound }
    }
}
