import MartletTransport

/// How many bytes of a fast body are awaited together.
///
/// A reader that keeps up with a fast sender is woken for every packet, and waking costs more than copying what came.
/// Where the last quarter of a megabyte came fast, the socket is asked to wake its reader only for so many bytes
/// (`SO_RCVLOWAT`); a short clock beside it sees to it that what comes more slowly is not held back, and ends the asking.
struct ReadBatchRule: Sendable {
    /// How many bytes must have come in ``longestWindow`` for them to be awaited together.
    static let windowByteCount: UInt64 = 256 * 1024
    /// In nanoseconds: 64 MiB/s and more count as fast.
    static let longestWindow: UInt64 = 4_000_000
    /// How many bytes are awaited together.
    static let batchByteCount = 512 * 1024
    /// How long bytes may be held back, at most: one such wait, and batches are over until a window was fast again.
    static let longestDelay = Duration.milliseconds(10)

    private var windowStart: (bytes: UInt64, instant: MonotonicTime)?
    /// Whether batches are awaited.
    private(set) var isBatching = false

    init() {}

    /// Before a wait: how many bytes to wait for.
    /// - Parameters:
    ///   - received: How many bytes of the body have come.
    ///   - remaining: How many must still come; `nil` where that is not known.
    mutating func waitBegins(received: UInt64, remaining: UInt64?, now: MonotonicTime) -> Int {
        if let start = windowStart {
            let count = received &- start.bytes
            if count >= ReadBatchRule.windowByteCount {
                let window = now.nanoseconds &- start.instant.nanoseconds
                // In proportion: one reading may take in several windows.
                isBatching = window / (count / ReadBatchRule.windowByteCount) <= ReadBatchRule.longestWindow
                windowStart = (received, now)
            }
        } else {
            windowStart = (received, now)
        }
        // The last bytes must not be waited for as part of a batch that never fills.
        if isBatching, let remaining, remaining < UInt64(2 * ReadBatchRule.batchByteCount) {
            isBatching = false
        }
        return isBatching ? ReadBatchRule.batchByteCount : 1
    }

    /// The batch did not come in time.
    mutating func waitTimedOut() {
        isBatching = false
        windowStart = nil
    }
}
