/// Decides whether a call of the kernel's is borne out by the time that it counted itself.
///
/// On virtual machines kernels were seen to call for a stall of 100 ms in a second while the total of the same file had
/// grown by 4 ms since they were asked: whoever believes that gives up all that is in memory for nothing.
struct StallGrowth: Sendable {
    /// The time in which tasks waited that a call means at least, in microseconds.
    let limit: UInt64
    /// The total when it was looked at last.
    private var total: UInt64?

    /// - Parameter total: The present total in microseconds; `nil` where it is not known, and calls are believed.
    init(limit: UInt64, total: UInt64?) {
        self.limit = limit
        self.total = total
    }

    /// The kernel called: whether that counts.
    /// - Parameter total: The present total, in microseconds.
    mutating func counts(_ total: UInt64?) -> Bool {
        defer { self.total = total ?? self.total }
        guard let total, let last = self.total, total >= last else { return true }
        return total - last >= limit
    }
}
