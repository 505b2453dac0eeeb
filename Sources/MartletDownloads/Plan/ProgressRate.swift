package import MartletTransport

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
