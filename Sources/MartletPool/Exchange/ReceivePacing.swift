import MartletTransport
import Synchronization

/// The state machine that decides how many bytes of a body are awaited together.
///
/// A reader that keeps up with a fast sender is woken for every packet, and waking costs more than copying the bytes.
/// If the last 256 KiB arrived fast, the socket wakes its reader only for a batch of bytes (`SO_RCVLOWAT`). A short
/// timeout ends this when bytes arrive more slowly, so that they are not delayed.
struct ReceiveLowWaterMachine: Sendable {
    /// The number of bytes that must arrive within ``longestWindow`` to start batches.
    static let windowByteCount: UInt64 = 256 * 1024
    /// The maximum time for ``windowByteCount`` in nanoseconds, which corresponds to 64 MiB/s.
    private static let longestWindow: UInt64 = 4_000_000
    /// The number of bytes in a batch.
    static let batchByteCount = 512 * 1024
    /// The maximum delay of received bytes. One such delay ends batches until a window is fast again.
    static let maximumDelay = Duration.milliseconds(10)

    private var windowStart: (bytes: UInt64, instant: MonotonicTime)?
    /// Whether batches are awaited.
    private var isBatching = false

    /// Returns the number of bytes to wait for.
    /// - Parameters:
    ///   - received: The number of received bytes of the body.
    ///   - remaining: The number of bytes that are still expected; `nil` if it is not known.
    mutating func waitBegins(received: UInt64, remaining: UInt64?, now: MonotonicTime) -> Int {
        if let start = windowStart {
            let count = received &- start.bytes
            if count >= ReceiveLowWaterMachine.windowByteCount {
                let window = now.nanoseconds &- start.instant.nanoseconds
                // In proportion, since one read may span several windows.
                isBatching =
                    window / (count / ReceiveLowWaterMachine.windowByteCount) <= ReceiveLowWaterMachine.longestWindow
                windowStart = (received, now)
            }
        } else {
            windowStart = (received, now)
        }
        // The last bytes must not wait for a batch that never fills.
        if let remaining, remaining < UInt64(2 * ReceiveLowWaterMachine.batchByteCount) { isBatching = false }
        return isBatching ? ReceiveLowWaterMachine.batchByteCount : 1
    }

    /// Records that the batch did not arrive in time.
    mutating func waitTimedOut() { self = ReceiveLowWaterMachine() }
}

/// The state of a session that decides which requests poll the socket (spin) while they wait for the response.
///
/// A sleeping thread wakes ten to thirty microseconds late. If a session has one request at a time and responses arrive
/// sooner (for example from the same machine), polling is faster, and costs no more processor time than sleeping and
/// waking. After each failed poll fewer requests poll, down to one in a thousand for a distant server.
package final class AdaptiveSpinWait: Sendable {
    /// The maximum duration of polling.
    fileprivate static let limit = Duration.microseconds(60)
    private static let mostSkipped = 1024
    /// The number of next requests that do not spin.
    private let left = Atomic<Int>(0)
    /// The number of requests to skip after a failure. Each failure doubles it, and a success resets it to 1.
    private let skipped = Atomic<Int>(1)

    /// Creates the state of one session, whose next request spins.
    package init() {}

    /// Whether this request spins. Counts the request.
    package func isDue() -> Bool {
        let left = left.load(ordering: .relaxed)
        if left == 0 { return true }
        self.left.store(left - 1, ordering: .relaxed)
        return false
    }

    func ended(inTime: Bool) {
        let skipped = inTime ? 1 : min(skipped.load(ordering: .relaxed) * 2, AdaptiveSpinWait.mostSkipped)
        self.skipped.store(skipped, ordering: .relaxed)
        if !inTime { left.store(skipped, ordering: .relaxed) }
    }
}

extension Exchange {
    /// Polls the socket for up to 60 µs, without releasing the thread.
    /// - Returns: Whether bytes have arrived.
    package func arrives(within wait: AdaptiveSpinWait) -> Bool {
        let end = MonotonicTime.now().advanced(by: AdaptiveSpinWait.limit)
        var hasArrived = false
        repeat { hasArrived = connection.stream.looksReadable() } while !hasArrived && MonotonicTime.now() < end
        wait.ended(inTime: hasArrived)
        return hasArrived
    }
}
