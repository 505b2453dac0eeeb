import MartletTransport
import Synchronization

/// The number of bytes of a fast body that are awaited together.
///
/// A reader that keeps up with a fast sender is woken for every packet, and waking costs more than copying the bytes.
/// If the last quarter of a megabyte came fast, the socket is asked to wake its reader only for so many bytes
/// (`SO_RCVLOWAT`). A short clock beside it ends that when bytes come more slowly, so that they are not held back.
struct ReceiveLowWaterMachine: Sendable {
    /// The number of bytes that must come in ``longestWindow`` to be awaited together.
    static let windowByteCount: UInt64 = 256 * 1024
    /// In nanoseconds: 64 MiB/s and more count as fast.
    private static let longestWindow: UInt64 = 4_000_000
    /// The number of bytes that are awaited together.
    static let batchByteCount = 512 * 1024
    /// The maximum time for which bytes are held back: one such wait ends batches until a window was fast again.
    static let maximumDelay = Duration.milliseconds(10)

    private var windowStart: (bytes: UInt64, instant: MonotonicTime)?
    /// Whether batches are awaited.
    private var isBatching = false

    /// Returns the number of bytes to wait for.
    /// - Parameters:
    ///   - received: The number of bytes of the body that have come.
    ///   - remaining: The number of bytes that must still come; `nil` if it is not known.
    mutating func waitBegins(received: UInt64, remaining: UInt64?, now: MonotonicTime) -> Int {
        if let start = windowStart {
            let count = received &- start.bytes
            if count >= ReceiveLowWaterMachine.windowByteCount {
                let window = now.nanoseconds &- start.instant.nanoseconds
                // In proportion: one reading may take in several windows.
                isBatching =
                    window / (count / ReceiveLowWaterMachine.windowByteCount)
                    <= ReceiveLowWaterMachine.longestWindow
                windowStart = (received, now)
            }
        } else {
            windowStart = (received, now)
        }
        // The last bytes must not be waited for as part of a batch that never fills.
        if let remaining, remaining < UInt64(2 * ReceiveLowWaterMachine.batchByteCount) { isBatching = false }
        return isBatching ? ReceiveLowWaterMachine.batchByteCount : 1
    }

    /// Notes that the batch did not come in time.
    mutating func waitTimedOut() { self = ReceiveLowWaterMachine() }
}

/// Decides when a lone request waits for its response awake.
///
/// A thread that goes to sleep is woken again some ten to thirty microseconds late. If a session has one request at a time
/// and its responses come sooner than that, as from the same machine, watching the socket for that long is quicker, and
/// costs no more processor time than sleeping and being woken does. Each wait that was in vain makes the next one rarer, so
/// that a server farther away sees one in a thousand.
package final class AdaptiveSpinWait: Sendable {
    /// The maximum duration of a wait.
    fileprivate static let limit = Duration.microseconds(60)
    private static let mostSkipped = 1024

    /// The number of requests until the next try.
    private let left = Atomic<Int>(0)
    /// The number of requests that are skipped after the next failure.
    private let skipped = Atomic<Int>(1)

    /// Creates the rule of one session, whose next request tries.
    package init() {}

    /// Whether this request is one to try with. Counts it.
    package func isDue() -> Bool {
        let left = left.load(ordering: .relaxed)
        if left == 0 { return true }
        self.left.store(left - 1, ordering: .relaxed)
        return false
    }

    /// Notes the result of a wait.
    func ended(inTime: Bool) {
        let skipped = inTime ? 1 : min(skipped.load(ordering: .relaxed) * 2, AdaptiveSpinWait.mostSkipped)
        self.skipped.store(skipped, ordering: .relaxed)
        if !inTime { left.store(skipped, ordering: .relaxed) }
    }
}

extension Exchange {
    /// Waits a few microseconds for bytes, without giving up its thread.
    /// - Returns: Whether bytes have come.
    package func arrives(within wait: AdaptiveSpinWait) -> Bool {
        let end = MonotonicTime.now().advanced(by: AdaptiveSpinWait.limit)
        var hasArrived = false
        repeat {
            hasArrived = connection.stream.looksReadable()
        } while !hasArrived && MonotonicTime.now() < end
        wait.ended(inTime: hasArrived)
        return hasArrived
    }
}
