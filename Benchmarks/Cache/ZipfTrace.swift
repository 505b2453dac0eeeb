import Glibc

/// A reproducible sequence of Zipf-distributed numbers: the frequency of the nth number is 1/n^skew of that of the
/// first.
struct ZipfTrace {
    private let sums: [Double]
    private var state: UInt64 = 0x9E37_79B9_7F4A_7C15

    /// Creates a trace of numbers from 0 to `count - 1`.
    init(count: Int, skew: Double) {
        var sums: [Double] = []
        sums.reserveCapacity(count)
        var sum = 0.0
        for rank in 1...max(1, count) {
            sum += pow(Double(rank), -skew)
            sums.append(sum)
        }
        self.sums = sums
    }

    /// Returns the next number of the trace.
    mutating func next() -> Int {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        let wanted = Double(state >> 11) / 9_007_199_254_740_992 * (sums.last ?? 0)
        var low = 0
        var high = sums.count - 1
        while low < high {
            let middle = (low + high) / 2
            if sums[middle] < wanted { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
