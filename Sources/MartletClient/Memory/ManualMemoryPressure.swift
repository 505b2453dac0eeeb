import MartletTransport

/// Memory pressure that is set by hand: for tests, and for programs that learn of it from elsewhere, such as from the
/// service that started them.
public final class ManualMemoryPressure: Sendable {
    private let newest: NewestValue<MemoryPressure>

    /// A pressure to begin with; normal by default.
    public init(_ level: MemoryPressure = .normal) {
        newest = NewestValue(level)
    }

    deinit {
        newest.finish()
    }

    /// The present level.
    public var level: MemoryPressure { newest.value }

    /// The levels as others follow them. Their iteration ends when this object goes.
    public var source: MemoryPressureSource { MemoryPressureSource(newest) }

    /// Changes the level.
    public func set(_ level: MemoryPressure) {
        newest.update { level }
    }
}
