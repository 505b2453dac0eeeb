import MartletTransport
public import SystemPackage

/// The memory pressure of the machine, as an `AsyncSequence` of the latest values.
///
/// The first value is delivered immediately. A slow consumer skips intermediate values. Iteration ends when its task is
/// cancelled. Any number of tasks may iterate. Without iterations, no file is open or read.
///
/// On Linux the source is the kernel's pressure stall information: that of the machine (`/proc/pressure/memory`), and
/// that of the process's control group; the higher one counts. If the kernel accepts triggers, it notifies the process
/// when tasks wait for memory, and nothing is read until then; otherwise the files are read every two seconds. Without
/// such files the level stays ``MemoryPressure/normal``, and ``isSupported`` is `false`.
///
/// ```swift
/// for await level in MemoryPressureSource.system where level >= .warning {
///     cache.trim()
/// }
/// ```
public struct MemoryPressureSource: AsyncSequence, Sendable {
    /// The element of the sequence.
    public typealias Element = MemoryPressure
    /// Iteration does not fail.
    public typealias Failure = Never

    private let monitor: MemoryPressureMonitor?
    private let levels: @Sendable () -> ValueReader<MemoryPressure>
    /// The source of the machine and of the process's control group. All iterations share its resources.
    public static let system = MemoryPressureSource(.shared)

    /// Creates a source of other files with the same format, such as those of another control group.
    /// - Parameter interval: The polling interval if the kernel does not send notifications, at least a millisecond.
    ///   The default of two seconds is the interval at which the kernel calculates the values.
    public init(files: [FilePath], interval: Duration = .seconds(2)) {
        let files = files.map { PressureFile(path: $0.string) }
        let interval = Swift.max(interval, .milliseconds(1))
        self.init(MemoryPressureMonitor(loop: .sharedOrStalled, interval: interval) { files })
    }

    private init(_ monitor: MemoryPressureMonitor) {
        self.monitor = monitor
        levels = { ValueReader(monitor.subscription()) }
    }

    fileprivate init(_ value: CurrentValue<MemoryPressure>) {
        monitor = nil
        levels = { ValueReader(value) }
    }

    /// Whether the machine reports its memory pressure. Reads the files, if any.
    public var isSupported: Bool { monitor?.isSupported ?? true }

    /// An iteration over the levels. When it is released, its resources are closed, unless other iterations use them.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate var levels: ValueReader<MemoryPressure>

        /// Returns the latest level, once it differs from the previous one; `nil` at the end, or when cancelled.
        public mutating func next() async -> MemoryPressure? { await levels.next() }

        /// Returns the latest level, once it differs from the previous one; `nil` at the end, or when cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> MemoryPressure? {
            await levels.next()
        }
    }

    /// Returns an iteration that begins with the current level.
    public func makeAsyncIterator() -> Iterator { Iterator(levels: levels()) }
}

/// Memory pressure that is set manually, for tests and for programs with another source of information.
public final class ManualMemoryPressure: Sendable {
    private let newest: CurrentValue<MemoryPressure>

    /// Creates a source with an initial level; normal by default.
    public init(_ level: MemoryPressure = .normal) { newest = CurrentValue(level) }

    deinit { newest.finish() }

    /// The current level.
    public var level: MemoryPressure { newest.value }

    /// The sequence of levels. Its iteration ends when this object is released.
    public var source: MemoryPressureSource { MemoryPressureSource(newest) }

    /// Changes the level.
    public func set(_ level: MemoryPressure) { newest.update { level } }
}
