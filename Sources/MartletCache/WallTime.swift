/// A moment on the wall clock, in milliseconds since 1970-01-01 00:00 UTC.
///
/// Stored times outlive the process, and wall clocks can be changed, so a stored time may be in the future.
package struct WallTime: Hashable, Comparable, Sendable {
    /// Milliseconds since 1970, negative before.
    package var milliseconds: Int64

    package init(milliseconds: Int64) { self.milliseconds = milliseconds }

    /// Creates a moment from seconds since 1970, clamped to the range of the type.
    package init(seconds: Int64) { milliseconds = seconds.secondsInMilliseconds }

    /// Whole seconds since 1970, rounded down.
    package var seconds: Int64 {
        let (quotient, remainder) = milliseconds.quotientAndRemainder(dividingBy: 1000)
        return remainder < 0 ? quotient - 1 : quotient
    }

    package static func < (left: WallTime, right: WallTime) -> Bool { left.milliseconds < right.milliseconds }

    /// Returns the milliseconds since another moment, negative if that is later; clamped to the range of the type.
    package func milliseconds(since other: WallTime) -> Int64 { milliseconds.clampedDifference(other.milliseconds) }
}

// Dates and clocks can hold any number: a result out of range is clamped instead of trapping.
extension Int64 {
    /// Returns the sum, clamped to the range of the type.
    package func clampedSum(_ other: Int64) -> Int64 {
        let (sum, overflows) = addingReportingOverflow(other)
        return overflows ? (other < 0 ? .min : .max) : sum
    }

    /// Returns the difference, clamped to the range of the type.
    func clampedDifference(_ other: Int64) -> Int64 {
        let (difference, overflows) = subtractingReportingOverflow(other)
        return overflows ? (other < 0 ? .max : .min) : difference
    }

    /// This number of seconds in milliseconds, clamped to the range of the type.
    var secondsInMilliseconds: Int64 {
        let (product, overflows) = multipliedReportingOverflow(by: 1000)
        return overflows ? (self < 0 ? .min : .max) : product
    }
}
