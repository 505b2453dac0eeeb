package import MartletTransport

/// How fast bytes come, in bytes a second: over the last two to four seconds, so that a transfer that slows down is known
/// for it soon.
package struct TransferRate: Sendable {
    private static let span = 2.0
    private let start: MonotonicTime
    private var begin: MonotonicTime
    private var newest: MonotonicTime
    private var current: UInt64 = 0
    /// How many came in the span before, and how long that was in seconds.
    private var last: (count: UInt64, seconds: Double)?

    /// A rate that is measured from now on.
    package init(from now: MonotonicTime) {
        start = now
        begin = now
        newest = now
    }

    /// For how long it has been measured, in seconds.
    package func age(at now: MonotonicTime) -> Double { TransferRate.seconds(from: start, to: now) }

    /// For how long nothing has come, in seconds.
    package func silence(at now: MonotonicTime) -> Double { TransferRate.seconds(from: newest, to: now) }

    /// Bytes came.
    package mutating func add(_ count: UInt64, at now: MonotonicTime) {
        turn(at: now)
        current += count
        newest = now
    }

    private mutating func turn(at now: MonotonicTime) {
        let seconds = TransferRate.seconds(from: begin, to: now)
        guard seconds >= TransferRate.span else { return }
        last = (current, seconds)
        (begin, current) = (now, 0)
    }

    /// The rate; 0 before anything came, and where nothing has come for two seconds.
    package func value(at now: MonotonicTime) -> Double {
        let seconds = TransferRate.seconds(from: begin, to: now)
        // What came when the present span is still short says little without the one before.
        let count = current + (last?.count ?? 0)
        let span = seconds + (last?.seconds ?? 0)
        guard count > 0, TransferRate.seconds(from: newest, to: now) < TransferRate.span else { return 0 }
        return Double(count) / max(span, 0.001)
    }

    private static func seconds(from begin: MonotonicTime, to end: MonotonicTime) -> Double {
        Double(end > begin ? end.nanoseconds - begin.nanoseconds : 0) / 1e9
    }
}

/// The rate that people are shown: bytes a second over the last ten seconds of this run, falling to 0 when nothing comes.
package struct ProgressRate: Sendable {
    private static let slotNanoseconds: UInt64 = 500_000_000
    private static let slotCount = 20
    private var slots: [UInt64]
    private var start: MonotonicTime
    private var slot: UInt64 = 0
    private var newest: MonotonicTime

    /// A rate that is measured from now on.
    package init(from now: MonotonicTime) {
        slots = Array(repeating: 0, count: ProgressRate.slotCount)
        start = now
        newest = now
    }

    private mutating func turn(to now: MonotonicTime) {
        let present = (now.nanoseconds &- start.nanoseconds) / ProgressRate.slotNanoseconds
        guard now > start, present > slot else { return }
        // All are empty after as many as there are, however long ago the last one was.
        for number in (slot + 1)...min(present, slot + UInt64(ProgressRate.slotCount)) {
            slots[Int(number % UInt64(ProgressRate.slotCount))] = 0
        }
        slot = present
    }

    /// Bytes came.
    package mutating func add(_ count: UInt64, at now: MonotonicTime) {
        turn(to: now)
        slots[Int(slot % UInt64(ProgressRate.slotCount))] += count
        newest = max(newest, now)
    }

    /// Bytes a second.
    package mutating func value(at now: MonotonicTime) -> Double {
        turn(to: now)
        let span = Double(ProgressRate.slotNanoseconds) / 1e9 * Double(ProgressRate.slotCount)
        let age = Double(now > start ? now.nanoseconds - start.nanoseconds : 0) / 1e9
        return Double(slots.reduce(0, +)) / max(0.05, min(span, age))
    }

    /// How long nothing has come; zero within the first second of it.
    package func stalled(at now: MonotonicTime) -> Duration {
        let span = now.since(newest)
        return span < .seconds(1) ? .zero : span
    }
}
