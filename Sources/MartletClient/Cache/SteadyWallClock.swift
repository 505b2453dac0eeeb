import FoundationEssentials
import MartletCache
import MartletTransport

/// A wall clock that nobody sets: it begins at what the machine's says, and goes on as time passes.
///
/// What a process stored it knows the age of, whatever becomes of the machine's clock meanwhile: a clock that is set forward
/// makes nothing stale, and one that is set back keeps nothing fresh. Other processes see its stamps and compare them with
/// clocks of their own: what comes from their future is validated.
struct SteadyWallClock: Sendable {
    /// What the wall clock said when it began.
    let beginning: WallTime
    /// The same instant, by a clock that goes on while the computer is suspended.
    let instant: MonotonicTime

    /// The moment at an instant; one before the beginning is the beginning.
    func time(at now: MonotonicTime) -> WallTime {
        let passed = now > instant ? (now.nanoseconds - instant.nanoseconds) / 1_000_000 : 0
        let (sum, overflows) = beginning.milliseconds.addingReportingOverflow(Int64(passed))
        return WallTime(milliseconds: overflows ? .max : sum)
    }

    /// That of this process, which begins when it is first asked.
    static let ofProcess = SteadyWallClock(
        beginning: WallTime(milliseconds: Int64(Date().timeIntervalSince1970 * 1000)), instant: .sinceBoot())
}
