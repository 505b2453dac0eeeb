/// Which policy decides what a cache gives up when it is full.
package enum EvictionOrder: Sendable, CaseIterable {
    /// What was used longest ago.
    case leastRecentlyUsed
    /// SIEVE: the oldest that was not used since it was looked at last. One pass over many entries, as a crawler makes it,
    /// drives out less.
    case sieve

    /// An empty policy of the kind.
    func makePolicy() -> any EvictionPolicy {
        switch self {
        case .leastRecentlyUsed: LRUPolicy()
        case .sieve: SievePolicy()
        }
    }

    /// Whether a use changes the place in the order.
    var movesOnUse: Bool { self == .leastRecentlyUsed }
}
