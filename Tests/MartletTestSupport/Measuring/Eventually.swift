import FoundationEssentials
import Glibc
import MartletTransport

/// Checks a condition repeatedly until it holds or the limit is reached; the thread is free between the checks.
/// - Returns: Whether the condition held.
package func eventually(within limit: Duration = .seconds(300), _ condition: () async -> Bool) async -> Bool {
    let loop = EventLoop.sharedOrStalled
    let deadline = MonotonicTime.now().advanced(by: limit)
    while !(await condition()) {
        if MonotonicTime.now() >= deadline { return await condition() }
        _ = await OneShot<Void>().wait(until: MonotonicTime.now().advanced(by: .milliseconds(2)), on: loop)
    }
    return true
}

/// A measurement of how the cost of work grows with its size, for tests of linear time.
///
/// It counts only the processor time of this thread, so that other tests, other programs and a stalled machine do not
/// change the result.
package struct ComplexityProbe: CustomStringConvertible, Sendable {
    /// The minimum time of the small work.
    package private(set) var small = Duration.seconds(1_000_000)
    /// The minimum time of the large work.
    package private(set) var large = Duration.seconds(1_000_000)
    /// The ratio of the large size to the small one.
    private let factor: Int

    /// Whether the large work took at most three times the linear growth of the small one, plus 200 ms. At an eightfold
    /// size, quadratic work takes far longer.
    package var isLinear: Bool { large < small * (3 * factor) + .milliseconds(200) }

    /// The times of both sizes and their ratio.
    package var description: String { "\(small), and \(large) for \(factor) times as much" }

    /// Sanitizers slow all work down, and linear time is measured without them.
    private static let divisor = ProcessInfo.processInfo.environment["MARTLET_SANITIZED"] == nil ? 1 : 8

    /// Measures work of two sizes, or of an eighth of each under a sanitizer. The measurement is repeated up to four
    /// times while it does not look linear, because processor times vary. Other tasks run between the pieces.
    /// - Parameters:
    ///   - sizes: The small size and the large one, which is at least eight times as large.
    ///   - prepare: Prepares the work of a size; only the work itself is measured.
    package static func measure(
        _ sizes: (small: Int, large: Int), _ prepare: (Int) -> () -> Void
    ) async -> ComplexityProbe {
        var growth = ComplexityProbe(factor: sizes.large / sizes.small)
        let sizes = (small: max(1, sizes.small / divisor), large: max(1, sizes.large / divisor))
        // The first run is not measured, because it includes one-time work.
        prepare(sizes.small)()
        for _ in 0..<5 {
            await Task.yield()
            growth.small = min(growth.small, processorTime(of: prepare(sizes.small)))
            await Task.yield()
            growth.large = min(growth.large, processorTime(of: prepare(sizes.large)))
            if growth.isLinear { break }
        }
        await Task.yield()
        return growth
    }

    private init(factor: Int) {
        self.factor = factor
    }

    private static func processorTime(of work: () -> Void) -> Duration {
        let start = processorTime()
        work()
        return processorTime() - start
    }

    /// Returns the processor time of this thread.
    private static func processorTime() -> Duration {
        var time = timespec()
        unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}
