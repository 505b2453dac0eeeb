/// A histogram of durations with buckets of at most 0.8 % of their value, as in an HDR histogram.
///
/// Each nanosecond below 256 has a bucket; above, each doubling has 128.
struct Histogram: Sendable {
    private(set) var counts: [Int: Int] = [:]

    /// Counts a duration once.
    mutating func record(_ duration: Duration) {
        let (seconds, attoseconds) = duration.components
        let nanoseconds = max(0, Int(seconds) * 1_000_000_000 + Int(attoseconds / 1_000_000_000))
        counts[Histogram.bucket(nanoseconds), default: 0] += 1
    }

    /// Adds the counts of another histogram.
    mutating func add(_ other: Histogram) {
        counts.merge(other.counts, uniquingKeysWith: +)
    }

    /// Returns the index of the bucket: the shift that brings the value below 256, times 128, plus the shifted value.
    static func bucket(_ value: Int) -> Int {
        let shift = max(0, Int.bitWidth - value.leadingZeroBitCount - 8)
        return shift * 128 + (value >> shift)
    }
}
