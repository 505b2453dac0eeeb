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
