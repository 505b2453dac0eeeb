/// In which order entries are given up. It knows them by numbers, small and dense; each call takes the same time however
/// many there are.
package protocol EvictionPolicy: Sendable {
    /// Adds one that is not there, as the newest.
    mutating func insert(_ entry: Int)
    /// Notes that one was used.
    mutating func touch(_ entry: Int)
    /// Removes one.
    mutating func remove(_ entry: Int)
    /// The one to give up next; `nil` where there is none. It stays until it is removed.
    mutating func victim() -> Int?
    /// Whether a use is remembered of it that its place does not show.
    func isMarked(_ entry: Int) -> Bool
}

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

/// Gives up what was used longest ago.
package struct LRUPolicy: EvictionPolicy {
    private var chain = EntryChain()

    /// A policy of no entries.
    package init() {}

    package mutating func insert(_ entry: Int) { chain.insert(entry) }

    package mutating func touch(_ entry: Int) {
        guard chain.contains(entry), chain.newest != entry else { return }
        chain.remove(entry)
        chain.insert(entry)
    }

    package mutating func remove(_ entry: Int) { chain.remove(entry) }

    package mutating func victim() -> Int? { chain.oldest }

    package func isMarked(_ entry: Int) -> Bool { false }
}

/// SIEVE (Zhang et al., NSDI 2024): a hand walks from the oldest to the newest, spares those used since it passed, and gives
/// up the first that was not.
package struct SievePolicy: EvictionPolicy {
    private var chain = EntryChain()
    private var marks: [Bool] = []
    /// Where the walk goes on; `nil` for the oldest.
    private var hand: Int?

    /// A policy of no entries.
    package init() {}

    package mutating func insert(_ entry: Int) {
        guard entry >= 0, !chain.contains(entry) else { return }
        chain.insert(entry)
        while marks.count <= entry { marks.append(false) }
        marks[entry] = false
    }

    package mutating func touch(_ entry: Int) { if chain.contains(entry) { marks[entry] = true } }

    package mutating func remove(_ entry: Int) {
        if hand == entry { hand = chain.newer(than: entry) }
        chain.remove(entry)
    }

    package mutating func victim() -> Int? {
        var candidate = hand ?? chain.oldest
        // Each step takes a mark away that a use has set, so the walk costs no more than the uses did.
        while let entry = candidate, marks[entry] {
            marks[entry] = false
            candidate = chain.newer(than: entry) ?? chain.oldest
        }
        hand = candidate
        return candidate
    }

    package func isMarked(_ entry: Int) -> Bool { chain.contains(entry) && marks[entry] }
}
