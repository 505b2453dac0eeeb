import Synchronization

/// Numbers calls, across all sessions of the process.
enum CallNumber {
    private static let last = Atomic<UInt64>(0)

    /// The next number; the first is 1.
    static func next() -> UInt64 {
        last.wrappingAdd(1, ordering: .relaxed).newValue
    }
}
