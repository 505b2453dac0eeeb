import CLinux
import Glibc

/// An instant of the monotonic clock (`CLOCK_MONOTONIC`), in nanoseconds since an arbitrary start.
///
/// Every deadline inside Martlet is one of these: eight bytes, compared with one instruction, never set back by a
/// change of the wall clock. ``distantFuture`` stands for "no deadline".
package struct MonotonicTime: Comparable, Hashable, Sendable {
    /// Nanoseconds since the clock's start.
    package var nanoseconds: UInt64

    /// An instant given in nanoseconds.
    package init(nanoseconds: UInt64) { self.nanoseconds = nanoseconds }

    /// The instant that never comes.
    package static let distantFuture = MonotonicTime(nanoseconds: .max)

    /// The present instant.
    package static func now() -> MonotonicTime {
        var time = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return MonotonicTime(nanoseconds: UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec))
    }

    /// The present instant of the clock that also counts the time the computer was suspended (`CLOCK_BOOTTIME`).
    package static func sinceBoot() -> MonotonicTime {
        var time = timespec()
        unsafe clock_gettime(CLOCK_BOOTTIME, &time)
        return MonotonicTime(nanoseconds: UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec))
    }

    /// This instant moved by a duration; stays within the range that can be told (a negative sum is the start).
    package func advanced(by duration: Duration) -> MonotonicTime {
        if self == .distantFuture { return self }
        // Not by its components, which takes three times as long.
        let delta = duration.attoseconds / 1_000_000_000
        guard delta < 0 else {
            guard let delta = UInt64(exactly: delta) else { return .distantFuture }
            let sum = nanoseconds.addingReportingOverflow(delta)
            return sum.overflow ? .distantFuture : MonotonicTime(nanoseconds: sum.partialValue)
        }
        guard let delta = UInt64(exactly: delta.magnitude), delta < nanoseconds else {
            return MonotonicTime(nanoseconds: 0)
        }
        return MonotonicTime(nanoseconds: nanoseconds - delta)
    }

    /// The deadline that lies a duration ahead of this instant; none when there is no duration.
    package func deadline(after duration: Duration?) -> MonotonicTime {
        guard let duration else { return .distantFuture }
        return advanced(by: duration)
    }

    /// How long it is from an earlier instant to this one; zero when that one is not earlier.
    package func since(_ earlier: MonotonicTime) -> Duration {
        guard self > earlier else { return .zero }
        return .nanoseconds(Int64(clamping: nanoseconds - earlier.nanoseconds))
    }

    package static func < (left: MonotonicTime, right: MonotonicTime) -> Bool {
        left.nanoseconds < right.nanoseconds
    }
}

/// Conversions of any duration, settings at their extremes among them.
///
/// `Duration.components` and the sum, the double and the fraction of a great duration trap. Nothing outside this file
/// may take a duration apart, and a duration from a setting is ``bounded`` before it is calculated with.
extension Duration {
    /// The longest span that a setting means: a hundred years.
    package static let longest = Duration.seconds(100 * 365 * 86_400)

    /// The nearest span from zero to ``longest``.
    package var bounded: Duration { min(max(self, .zero), .longest) }

    /// The whole seconds, or the nearest number that there is.
    package var wholeSeconds: Int64 { Int64(clamping: attoseconds / 1_000_000_000_000_000_000) }

    /// The whole milliseconds, or the nearest number that there is.
    package var wholeMilliseconds: Int64 { Int64(clamping: attoseconds / 1_000_000_000_000_000) }

    /// The whole nanoseconds, or the nearest number that there is.
    package var wholeNanoseconds: Int64 { Int64(clamping: attoseconds / 1_000_000_000) }
}
