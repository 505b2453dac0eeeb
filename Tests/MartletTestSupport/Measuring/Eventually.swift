import FoundationEssentials
import Glibc
import MartletTransport

/// Looks at a condition again and again, until it holds or the limit is reached; the thread is free in between.
/// - Returns: Whether it came to hold.
package func eventually(within limit: Duration = .seconds(300), _ condition: () async -> Bool) async -> Bool {
    let loop = EventLoop.sharedOrStalled
    let deadline = MonotonicTime.now().advanced(by: limit)
    while !(await condition()) {
        if MonotonicTime.now() >= deadline { return await condition() }
        _ = await OneShot<Void>().wait(until: MonotonicTime.now().advanced(by: .milliseconds(2)), on: loop)
    }
    return true
}

/// How the cost of work grows with its size, for tests that nothing takes more than linear time.
///
/// What counts is the time that the processor works on this thread: what other tests and other programs take meanwhile,
/// and that a machine stands still, makes no work look larger.
package struct ComplexityProbe: CustomStringConvertible, Sendable {
    /// The least that the small work took.
    package private(set) var small = Duration.seconds(1_000_000)
    /// The least that the large work took.
    package private(set) var large = Duration.seconds(1_000_000)
    /// How many times as large the large work is.
    private let factor: Int

    /// Whether the large work took at most three times what linear growth makes of the small one's; what is quadratic takes
    /// many times that where the sizes are eight times apart. A fifth of a second is free.
    package var isLinear: Bool { large < small * (3 * factor) + .milliseconds(200) }

    /// Both times.
    package var description: String { "\(small), and \(large) for \(factor) times as much" }

    /// A sanitizer makes all work many times as slow, and that it is linear is seen without one.
    private static let divisor = ProcessInfo.processInfo.environment["MARTLET_SANITIZED"] == nil ? 1 : 8

    /// Measures work of two sizes, or of an eighth of each under a sanitizer: once, and up to four times more while it does
    /// not look linear, since even the processor's time is not the same twice. Between the pieces other tasks have their
    /// turn.
    /// - Parameters:
    ///   - sizes: The small one and the large one, eight times as large or more.
    ///   - prepare: Makes the work of a size; only the work itself is measured.
    package static func measure(
        _ sizes: (small: Int, large: Int), _ prepare: (Int) -> () -> Void
    ) async -> ComplexityProbe {
        var growth = ComplexityProbe(factor: sizes.large / sizes.small)
        let sizes = (small: max(1, sizes.small / divisor), large: max(1, sizes.large / divisor))
        // What is done for the first time alone is no part of it.
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

    /// What the processor has worked on this thread so far.
    private static func processorTime() -> Duration {
        var time = timespec()
        unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}
