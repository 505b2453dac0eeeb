public import FoundationEssentials
import MartletTransport

extension HTTPMetrics {
    /// When the call began, by the wall clock; `nil` for metrics that were not measured.
    ///
    /// It is reckoned back from now by the monotonic clock, and so moves with the wall clock when that is set.
    public var startedAt: Date? {
        start.map { start in
            let elapsed = MonotonicTime.now().since(start)
            return Date().addingTimeInterval(-Double(elapsed.wholeNanoseconds) / 1e9)
        }
    }
}
