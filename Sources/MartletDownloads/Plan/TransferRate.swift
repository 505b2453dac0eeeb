package import MartletTransport

/// The rate of a transfer in bytes per second, over the last two to four seconds, so that a slowdown is noticed soon.
package struct TransferRate: Sendable {
    private static let span = 2.0
    private let start: MonotonicTime
    private var begin: MonotonicTime
    private var newest: MonotonicTime
    private var current: UInt64 = 0
    /// The bytes of the previous span, and its length in seconds.
    private var last: (count: UInt64, seconds: Double) = (0, 0)

    /// Creates a rate that is measured from now on.
    package init(from now: MonotonicTime) { (start, begin, newest) = (now, now, now) }

    /// Returns the seconds since the start.
    package func age(at now: MonotonicTime) -> Double { now.seconds(since: start) }

    /// Returns the seconds since bytes last arrived.
    package func silence(at now: MonotonicTime) -> Double { now.seconds(since: newest) }

    /// Adds received bytes.
    package mutating func add(_ count: UInt64, at now: MonotonicTime) {
        let seconds = now.seconds(since: begin)
        if seconds >= TransferRate.span {
            last = (current, seconds)
            (begin, current) = (now, 0)
        }
        current += count
        newest = now
    }

    /// Returns the rate; 0 before any bytes arrived, and if none arrived for two seconds.
    package func value(at now: MonotonicTime) -> Double {
        // A short current span is not representative without the previous one.
        let count = current + last.count
        guard count > 0, silence(at: now) < TransferRate.span else { return 0 }
        return Double(count) / max(now.seconds(since: begin) + last.seconds, 0.001)
    }
}

extension MonotonicTime {
    /// Returns the seconds since another time; 0 if that is later.
    fileprivate func seconds(since other: MonotonicTime) -> Double {
        Double(self > other ? nanoseconds - other.nanoseconds : 0) / 1e9
    }
}

/// The displayed rate, in bytes per second over the last ten seconds of this run.
package struct ProgressRate: Sendable {
    private static let slotNanoseconds: UInt64 = 500_000_000
    private static let slotCount = 20
    private var slots: [UInt64]
    private var start: MonotonicTime
    private var slot: UInt64 = 0
    private var newest: MonotonicTime

    /// Creates a rate that is measured from now on.
    package init(from now: MonotonicTime) {
        slots = Array(repeating: 0, count: ProgressRate.slotCount)
        (start, newest) = (now, now)
    }

    private mutating func turn(to now: MonotonicTime) {
        let present = (now.nanoseconds &- start.nanoseconds) / ProgressRate.slotNanoseconds
        guard now > start, present > slot else { return }
        // After one full cycle all slots are empty, regardless of the elapsed time.
        for number in (slot + 1)...min(present, slot + UInt64(ProgressRate.slotCount)) {
            slots[Int(number % UInt64(ProgressRate.slotCount))] = 0
        }
        slot = present
    }

    /// Adds received bytes.
    package mutating func add(_ count: UInt64, at now: MonotonicTime) {
        turn(to: now)
        slots[Int(slot % UInt64(ProgressRate.slotCount))] += count
        newest = max(newest, now)
    }

    /// Returns the rate in bytes per second.
    package mutating func value(at now: MonotonicTime) -> Double {
        turn(to: now)
        let span = Double(ProgressRate.slotNanoseconds) / 1e9 * Double(ProgressRate.slotCount)
        return Double(slots.reduce(0, +)) / max(0.05, min(span, now.seconds(since: start)))
    }

    /// Returns the time since bytes last arrived; zero within the first second.
    package func stalled(at now: MonotonicTime) -> Duration {
        let span = now.since(newest)
        return span < .seconds(1) ? .zero : span
    }
}
