import Synchronization

/// When a lone request waits for its answer awake.
///
/// A thread that goes to sleep is woken again some ten to thirty microseconds late. Where a session has one request at a
/// time and its answers come sooner than that, as from the same machine, watching the socket for that long is quicker, and
/// costs no more processor time than sleeping and being woken does. Each wait that was in vain makes the next one rarer, so
/// that a server farther away sees one in a thousand.
package final class BriefWait: Sendable {
    /// How long a wait lasts at most.
    static let limit = Duration.microseconds(60)
    private static let mostSkipped = 1024

    /// How many requests go by before the next try.
    private let left = Atomic<Int>(0)
    /// How many go by after the next failure.
    private let skipped = Atomic<Int>(1)

    /// For one session, whose next request tries.
    package init() {}

    /// Whether this request is one to try with. Counts it.
    package func isDue() -> Bool {
        let left = left.load(ordering: .relaxed)
        if left == 0 { return true }
        self.left.store(left - 1, ordering: .relaxed)
        return false
    }

    /// Notes how a wait ended.
    func ended(inTime: Bool) {
        let skipped = inTime ? 1 : min(skipped.load(ordering: .relaxed) * 2, BriefWait.mostSkipped)
        self.skipped.store(skipped, ordering: .relaxed)
        if !inTime { left.store(skipped, ordering: .relaxed) }
    }
}
