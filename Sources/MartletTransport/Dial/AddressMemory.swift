/// Remembers which addresses failed recently, so that they are tried last.
///
/// Bounded: the oldest failure is forgotten when the memory is full, so that hosts with many addresses cannot make
/// it grow. A failure also counts no more once its lifetime is over, or when the address works again.
package struct AddressMemory<Address: Hashable & Sendable>: Sendable {
    /// The most addresses remembered.
    package let capacity: Int
    /// How long a failure counts, in nanoseconds.
    package let lifetime: UInt64

    private var failures: [Address: UInt64] = [:]

    /// Creates an empty memory.
    ///
    /// - Parameters:
    ///   - capacity: The most addresses remembered; at least 1; 256 by default.
    ///   - lifetime: How long a failure counts, in nanoseconds; 10 minutes by default.
    package init(capacity: Int = 256, lifetime: UInt64 = 600_000_000_000) {
        self.capacity = max(1, capacity)
        self.lifetime = lifetime
    }

    /// How many addresses are remembered, those included whose failure counts no more.
    package var count: Int { failures.count }

    /// Whether the address failed within the lifetime before `now`.
    package func hasFailedRecently(_ address: Address, now: UInt64) -> Bool {
        guard let time = failures[address] else { return false }
        return now < time || now - time < lifetime
    }

    /// The address failed.
    ///
    /// Takes time in proportion to the capacity when the memory is full, which a failed attempt dwarfs.
    package mutating func recordFailure(_ address: Address, now: UInt64) {
        if failures.count >= capacity, failures[address] == nil {
            failures = failures.filter { now < $0.value || now - $0.value < lifetime }
            if failures.count >= capacity, let oldest = failures.min(by: { $0.value < $1.value }) {
                failures[oldest.key] = nil
            }
        }
        failures[address] = now
    }

    /// The address works: its failures are forgotten.
    package mutating func recordSuccess(_ address: Address) {
        failures[address] = nil
    }
}
