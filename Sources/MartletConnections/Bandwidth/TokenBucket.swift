package import MartletTransport

/// How many bytes may pass now, by a rate: what was not used is saved up to a bound.
///
/// Time is passed in; one that goes back counts as standing still.
package struct TokenBucket: Sendable {
    /// The rate.
    package private(set) var rate: BandwidthRate
    /// Bytes that may pass, as of `last`; never below zero, nor above the burst.
    private var level: Double
    private var last: MonotonicTime

    /// A full bucket.
    package init(_ rate: BandwidthRate, now: MonotonicTime) {
        self.rate = rate
        level = rate.effectiveBurst
        last = now
    }

    /// How many bytes may pass at an instant.
    package mutating func available(at now: MonotonicTime) -> Int {
        refill(now)
        return Int(level)
    }

    /// Whether all that can be saved up has been.
    package mutating func isFull(at now: MonotonicTime) -> Bool {
        refill(now)
        return level >= rate.effectiveBurst
    }

    /// Counts bytes that pass.
    package mutating func take(_ count: Int) {
        level = max(0, level - Double(max(0, count)))
    }

    /// Takes back what did not pass after all.
    package mutating func giveBack(_ count: Int) {
        level = min(rate.effectiveBurst, level + Double(max(0, count)))
    }

    /// When so many bytes may pass; more than can be saved up count as that.
    package func ready(_ count: Int) -> MonotonicTime {
        let missing = min(Double(max(0, count)), rate.effectiveBurst) - level
        guard missing > 0 else { return last }
        // A little later rather than a little too early, whereupon another wait would follow.
        let nanoseconds = min(missing / rate.effectiveRate * 1e9, 9e18)
        return last.advanced(by: .nanoseconds(Int64(nanoseconds) + 1))
    }

    /// Goes on with another rate; what was saved up stays, within its bound.
    package mutating func change(to rate: BandwidthRate, now: MonotonicTime) {
        refill(now)
        self.rate = rate
        level = min(level, rate.effectiveBurst)
    }

    private mutating func refill(_ now: MonotonicTime) {
        guard now > last else { return }
        let nanoseconds = Double(now.nanoseconds - last.nanoseconds)
        level = min(rate.effectiveBurst, level + nanoseconds / 1e9 * rate.effectiveRate)
        last = now
    }
}
