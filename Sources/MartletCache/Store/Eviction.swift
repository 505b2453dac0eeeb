/// The order of eviction from a full cache.
package enum EvictionOrder: Sendable, CaseIterable {
    case leastRecentlyUsed
    /// SIEVE (Zhang et al., NSDI 2024): a hand moves from the oldest entry to the newest, and evicts the first entry
    /// that was not used since the last pass. Entries that are used only once then evict fewer useful ones.
    case sieve
}

/// The entries of a cache in the order of their eviction: small, dense numbers in a doubly linked list. Each call takes
/// amortized constant time.
package struct EvictionPolicy: Sendable {
    private struct Link {
        var newer: Int?
        var older: Int?
        /// Whether it was used since the hand passed it.
        var isMarked = false
    }

    package let order: EvictionOrder
    /// The links of the entries; `nil` for numbers that are not entries.
    private var links: [Link?] = []
    private var newest: Int?
    private var oldest: Int?
    /// The position of the hand of SIEVE; `nil` for the oldest entry.
    private var hand: Int?

    package init(_ order: EvictionOrder) { self.order = order }

    private func link(_ entry: Int) -> Link? { links.indices.contains(entry) ? links[entry] : nil }

    /// Adds an entry as the newest. Negative numbers, and entries that exist, are ignored.
    package mutating func insert(_ entry: Int) {
        guard entry >= 0, link(entry) == nil else { return }
        while links.count <= entry { links.append(nil) }
        links[entry] = Link(older: newest)
        if let newest { links[newest]?.newer = entry }
        newest = entry
        oldest = oldest ?? entry
    }

    package mutating func touch(_ entry: Int) {
        guard link(entry) != nil else { return }
        switch order {
        case .sieve: links[entry]?.isMarked = true
        case .leastRecentlyUsed where newest == entry: break
        case .leastRecentlyUsed:
            remove(entry)
            insert(entry)
        }
    }

    package mutating func remove(_ entry: Int) {
        guard let link = link(entry) else { return }
        if hand == entry { hand = link.newer }
        if let newer = link.newer { links[newer]?.older = link.older } else { newest = link.older }
        if let older = link.older { links[older]?.newer = link.newer } else { oldest = link.newer }
        links[entry] = nil
    }

    /// Returns the entry to evict next; `nil` without entries. It stays until it is removed.
    package mutating func victim() -> Int? {
        guard order == .sieve else { return oldest }
        var candidate = hand ?? oldest
        // Each step removes a mark that a use has set, so the number of steps is limited by the number of uses.
        while let entry = candidate, let link = links[entry], link.isMarked {
            links[entry]?.isMarked = false
            candidate = link.newer ?? oldest
        }
        hand = candidate
        return candidate
    }

    /// Whether an entry is marked as used, which its position does not show.
    package func isMarked(_ entry: Int) -> Bool { link(entry)?.isMarked ?? false }
}

/// Values of a limited number of keys. The key whose value was set least recently is removed for a new one.
package struct RecentKeys<Key: Hashable, Value> {
    package static var defaultLimit: Int { 1024 }

    /// The maximum number of keys, at least 1.
    let limit: Int
    private var slots: [(key: Key, value: Value)] = []
    private var places: [Key: Int] = [:]
    private var order = EvictionPolicy(.leastRecentlyUsed)
    var isEmpty: Bool { slots.isEmpty }

    package init(limit: Int = RecentKeys.defaultLimit) { self.limit = max(1, limit) }

    package subscript(key: Key) -> Value? { places[key].map { slots[$0].value } }

    /// Sets the value of a key, which is then the most recent one.
    /// - Returns: Whether the key is new, and the value that was removed for it.
    @discardableResult package mutating func update(_ value: Value, for key: Key) -> (isNew: Bool, removed: Value?) {
        let known = places[key]
        let victim = known == nil && slots.count >= limit ? order.victim() : nil
        let removed = victim.map { slots[$0] }
        if let removed { places[removed.key] = nil }
        let place = known ?? victim ?? slots.count
        if place == slots.count { slots.append((key, value)) } else { slots[place] = (key, value) }
        places[key] = place
        order.insert(place)
        order.touch(place)
        return (known == nil, removed?.value)
    }
}

extension RecentKeys: Sendable where Key: Sendable, Value: Sendable {}
