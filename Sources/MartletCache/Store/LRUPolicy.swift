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
