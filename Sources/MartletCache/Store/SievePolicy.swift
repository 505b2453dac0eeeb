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

    package mutating func touch(_ entry: Int) {
        if chain.contains(entry) { marks[entry] = true }
    }

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

    package func isMarked(_ entry: Int) -> Bool {
        chain.contains(entry) && marks[entry]
    }
}
