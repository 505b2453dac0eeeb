import MartletCore
import MartletTransport
public import SystemPackage

/// How short of memory the machine is, as an `AsyncSequence` of newest values.
///
/// The first value comes at once; a slow consumer skips what it missed and is never queued for; iteration ends when its
/// task is cancelled. Any number of tasks may iterate. As long as none does, nothing is open and nothing is looked at.
///
/// On Linux it is the kernel's pressure stall information: the machine's (`/proc/pressure/memory`), and that of the control
/// group the process belongs to, the worse of which counts. Where the kernel takes triggers, it calls when tasks wait for
/// memory, and nothing has to be looked at until then; else the files are read every two seconds. Where there are none,
/// the level stays ``MemoryPressure/normal``, and ``isSupported`` says so.
///
/// ```swift
/// for await level in MemoryPressureSource.system where level >= .warning { cache.trim() }
/// ```
public struct MemoryPressureSource: AsyncSequence, Sendable {
    /// What iteration gives.
    public typealias Element = MemoryPressure
    /// Iteration does not fail.
    public typealias Failure = Never

    private enum Origin: Sendable {
        case monitor(MemoryPressureMonitor)
        case manual(NewestValue<MemoryPressure>)
    }

    private let origin: Origin

    /// The machine's, and the process's control group's. All who iterate share what is open.
    public static let system = MemoryPressureSource(origin: .monitor(.shared))

    /// That of other files of the same format, such as those of another control group.
    /// - Parameter interval: How often they are read where the kernel does not call; two seconds by default, which is how
    ///   often the kernel calculates them; at least a millisecond.
    public init(files: [FilePath], interval: Duration = .seconds(2)) {
        let files = files.map { PressureFile(path: $0.string) }
        let interval = interval < .milliseconds(1) ? .milliseconds(1) : interval
        origin = .monitor(MemoryPressureMonitor(loop: .sharedOrStalled, interval: interval) { files })
    }

    private init(origin: Origin) { self.origin = origin }

    init(_ value: NewestValue<MemoryPressure>) { origin = .manual(value) }

    /// Whether the machine tells its memory pressure at all. It reads the files, if any.
    public var isSupported: Bool {
        switch origin {
        case .monitor(let monitor): monitor.isSupported
        case .manual: true
        }
    }

    /// One pass over the levels; what is open for it is closed when it is dropped.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate var levels: ValueReader<MemoryPressure>

        /// The newest level, once it is another than the one before; `nil` at the end, or when cancelled.
        public mutating func next() async -> MemoryPressure? { await levels.next() }

        /// The newest level, once it is another than the one before; `nil` at the end, or when cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> MemoryPressure? {
            await levels.next()
        }
    }

    /// A pass that begins with the present level.
    public func makeAsyncIterator() -> Iterator {
        switch origin {
        case .monitor(let monitor): Iterator(levels: ValueReader(monitor.subscription()))
        case .manual(let value): Iterator(levels: ValueReader(value))
        }
    }
}

/// Memory pressure that is set by hand: for tests, and for programs that learn of it from elsewhere, such as from the
/// service that started them.
public final class ManualMemoryPressure: Sendable {
    private let newest: NewestValue<MemoryPressure>

    /// A pressure to begin with; normal by default.
    public init(_ level: MemoryPressure = .normal) { newest = NewestValue(level) }

    deinit { newest.finish() }

    /// The present level.
    public var level: MemoryPressure { newest.value }

    /// The levels as others follow them. Their iteration ends when this object goes.
    public var source: MemoryPressureSource { MemoryPressureSource(newest) }

    /// Changes the level.
    public func set(_ level: MemoryPressure) { newest.update { level } }
}
