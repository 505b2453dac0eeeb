/// The progress of all downloads of a ``DownloadManager`` together: a state, not an event.
///
/// A finished or failed download counts until it is removed; a cancelled one is removed immediately.
public struct TotalDownloadProgress: Hashable, Sendable, CustomStringConvertible {
    /// The number of received bytes of the files, including those of earlier runs.
    public fileprivate(set) var completedByteCount: UInt64 = 0
    /// The length of all files in bytes; `nil` while one is unknown. If the length of a failed download is unknown, its
    /// received bytes count.
    public fileprivate(set) var totalByteCount: UInt64?
    /// The sum of the rates of the running downloads, in bytes per second.
    public fileprivate(set) var bytesPerSecond: Double = 0
    /// The number of downloads that wait for their turn.
    public fileprivate(set) var waitingCount = 0
    /// The number of downloads that run, or are compared with their checksums.
    public fileprivate(set) var runningCount = 0
    /// The number of paused downloads.
    public fileprivate(set) var pausedCount = 0
    /// The number of complete downloads.
    public fileprivate(set) var finishedCount = 0
    /// The number of failed downloads.
    public fileprivate(set) var failedCount = 0

    /// Creates the progress of no downloads.
    public init() {}

    /// The number of all downloads.
    public var count: Int { waitingCount + runningCount + pausedCount + finishedCount + failedCount }

    /// The received part of all files, 0 to 1; `nil` while the length of one is unknown, and without downloads. If all
    /// files are empty, it is the fraction of the downloads that are finished.
    public var fractionCompleted: Double? {
        guard let totalByteCount, count > 0 else { return nil }
        guard totalByteCount > 0 else { return Double(finishedCount) / Double(count) }
        return min(1, Double(completedByteCount) / Double(totalByteCount))
    }

    /// The bytes, the rate and the numbers of downloads on one line.
    public var description: String {
        let (total, rate) = (totalByteCount.map { "\($0)" } ?? "?", UInt64(exactly: bytesPerSecond.rounded()) ?? .max)
        return "\(completedByteCount) of \(total) bytes, \(rate) bytes/s, \(finishedCount) of \(count) finished"
    }

    struct Part: Sendable {
        fileprivate var counter: any WritableKeyPath<TotalDownloadProgress, Int> & Sendable
        fileprivate var completed: UInt64
        /// The length; `nil` while it is unknown.
        fileprivate var total: UInt64?
        fileprivate var rate: UInt64

        init?(_ progress: DownloadProgress, _ state: DownloadState) {
            (completed, total) = (progress.completedByteCount, progress.totalByteCount)
            rate = UInt64(exactly: progress.bytesPerSecond.rounded()) ?? 0
            switch state {
            case .waiting: counter = \.waitingCount
            case .running, .verifying: counter = \.runningCount
            case .paused: counter = \.pausedCount
            case .finished: counter = \.finishedCount
            case .failed:
                counter = \.failedCount
                total = total ?? completed
            case .cancelled: return nil
            }
        }
    }

    /// The sums of all parts, in 128 bits, so that no announced length overflows them.
    struct Sums: Sendable {
        private(set) var progress = TotalDownloadProgress()
        private var completed: Int128 = 0
        private var total: Int128 = 0
        private var rate: Int128 = 0
        private var unknownCount = 0

        /// Replaces the part of a download.
        mutating func replace(_ old: Part?, by new: Part?) {
            if let old { add(old, -1) }
            if let new { add(new, 1) }
            progress.completedByteCount = UInt64(clamping: completed)
            progress.totalByteCount = unknownCount == 0 ? UInt64(clamping: total) : nil
            progress.bytesPerSecond = Double(rate)
        }

        private mutating func add(_ part: Part, _ sign: Int) {
            progress[keyPath: part.counter] += sign
            completed += Int128(sign) * Int128(part.completed)
            rate += Int128(sign) * Int128(part.rate)
            if let length = part.total { total += Int128(sign) * Int128(length) } else { unknownCount += sign }
        }
    }
}
