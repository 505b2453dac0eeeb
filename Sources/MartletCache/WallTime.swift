/// A moment on the wall clock, in milliseconds since 1970-01-01 00:00 UTC.
///
/// What a cache stores outlives the process, and so its moments must, too. Wall clocks are set back and forth: whoever
/// compares two of them must bear both orders.
package struct WallTime: Hashable, Comparable, Sendable {
    /// Milliseconds since 1970, negative before.
    package var milliseconds: Int64

    /// A moment by its milliseconds since 1970.
    package init(milliseconds: Int64) { self.milliseconds = milliseconds }

    /// A moment by its seconds since 1970; those out of range become the nearest in it.
    package init(seconds: Int64) {
        let (product, overflows) = seconds.multipliedReportingOverflow(by: 1000)
        milliseconds = overflows ? (seconds < 0 ? .min : .max) : product
    }

    /// Whole seconds since 1970, rounded down.
    package var seconds: Int64 {
        let (quotient, remainder) = milliseconds.quotientAndRemainder(dividingBy: 1000)
        return remainder < 0 ? quotient - 1 : quotient
    }

    /// The earlier one first.
    package static func < (left: WallTime, right: WallTime) -> Bool { left.milliseconds < right.milliseconds }

    /// Milliseconds from another moment to this one, negative where that one is later; the nearest that can be said.
    package func milliseconds(since other: WallTime) -> Int64 {
        let (difference, overflows) = milliseconds.subtractingReportingOverflow(other.milliseconds)
        return overflows ? (milliseconds < other.milliseconds ? .min : .max) : difference
    }
}
