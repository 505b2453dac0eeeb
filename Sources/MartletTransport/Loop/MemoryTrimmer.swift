import CMartletLinux
import Synchronization

/// Returns unused heap memory to the system after a burst of requests, and under memory pressure.
///
/// A request in flight uses 10 to 40 KB. The C library keeps freed memory for later allocations, so without this a
/// process would stay as large as in its busiest moment. The call runs on a worker thread. It locks the heap for about
/// 0.1 ms per MB of the whole program, so after a long call the next one is delayed in proportion.
package final class MemoryTrimmer: TimerTarget {
    /// The trimmer of the process, to which the heap belongs.
    package static let shared = MemoryTrimmer(loop: .sharedOrStalled) { _ = malloc_trim(0) }

    /// Guards the time of the last call, whether the next one is scheduled, and the number of scheduled calls.
    private let state = Mutex((last: MonotonicTime?.none, isScheduled: false, count: 0))
    private let loop: EventLoop
    private let trim: @Sendable () -> Void

    /// Creates a trimmer with a replacement for `malloc_trim`, which is called on a worker.
    package init(loop: EventLoop, trim: @escaping @Sendable () -> Void) { (self.loop, self.trim) = (loop, trim) }

    /// The number of calls that were scheduled so far.
    package var scheduledCount: Int { state.withLock { $0.count } }

    /// Schedules a call, if none is scheduled.
    package func schedule(now: MonotonicTime = .now()) {
        let time = state.withLock { state -> MonotonicTime? in
            guard !state.isScheduled else { return nil }
            state.isScheduled = true
            state.count += 1
            return MemoryTrimRule.time(after: state.last, now: now)
        }
        if let time { loop.schedule(self, token: 0, at: time, isRetained: true) }
    }

    package func timerFired(token: UInt64, now: MonotonicTime) -> MonotonicTime? {
        BlockingThreadPool.shared.submit { [self] in
            // A burst that ends from now on needs another call.
            state.withLock { ($0.last, $0.isScheduled) = (now, false) }
            let start = MonotonicTime.now()
            trim()
            // Other threads may have to wait for memory, so at most a thousandth of the time is spent here.
            let pause = min(MonotonicTime.now().since(start) * 1000, .seconds(3600))
            state.withLock { $0.last = now.advanced(by: pause) }
        }
        return nil
    }
}

/// Detects the end of a burst: the number of requests in flight has fallen far below its recent maximum.
package struct MemoryTrimRule: Sendable {
    /// The minimum number of requests in flight in a burst. Fewer requests leave less than 10 MB.
    private static let burstSize = 256
    /// The minimum time between two calls of a ``MemoryTrimmer``.
    private static let interval = Duration.seconds(10)
    /// The time after the end of a burst in which its last requests complete.
    private static let settlingTime = Duration.milliseconds(200)

    /// The maximum number of requests in flight since the last burst ended.
    private var peak = 0

    package init() {}

    /// Records the number of requests in flight, including one that ends now.
    /// - Returns: Whether a burst ends: at most an eighth of its requests is left. The burst is then forgotten.
    package mutating func isDue(inFlight count: Int) -> Bool {
        if count > peak { peak = count }
        guard peak >= MemoryTrimRule.burstSize, count <= peak / 8 else { return false }
        peak = count
        return true
    }

    /// The time of a call that is requested now.
    package static func time(after last: MonotonicTime?, now: MonotonicTime) -> MonotonicTime {
        max(now.advanced(by: settlingTime), last?.advanced(by: interval) ?? now)
    }
}
