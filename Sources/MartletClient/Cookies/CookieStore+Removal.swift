package import FoundationEssentials

extension CookieStore {
    /// All cookies that have not ended, by domain, then in the order they came.
    package func allCookies(at now: Date) -> [Cookie] {
        let entries = shelves.values.flatMap { $0.filter { !$0.cookie.isExpired(at: now) } }
        let sorted = entries.sorted { left, right in
            left.cookie.domain == right.cookie.domain
                ? left.ordinal < right.ordinal : left.cookie.domain < right.cookie.domain
        }
        return sorted.map(\.cookie)
    }

    /// Removes the cookies that something is true of; returns how many.
    @discardableResult
    package mutating func remove(where isUnwanted: (Cookie) -> Bool) -> Int {
        var removed = 0
        for (key, shelf) in shelves {
            let rest = shelf.filter { !isUnwanted($0.cookie) }
            guard rest.count < shelf.count else { continue }
            removed += shelf.count - rest.count
            shelves[key] = rest.isEmpty ? nil : rest
        }
        count -= removed
        if removed > 0 { revision &+= 1 }
        return removed
    }

    /// Evicts what is too much after a cookie was put on a shelf: first what has ended, then what is not
    /// secure, then the rest, each time what was not used for longest (RFC 6265bis §5.7).
    ///
    /// That insecure ones go first keeps a network that can only write to `http` from washing secure ones
    /// out.
    ///
    /// - Returns: whether anything was evicted.
    mutating func evict(from key: String, now: Date) -> Bool {
        let before = count
        if let shelf = shelves[key], shelf.count > limits.perDomain {
            drop(from: key) { $0.cookie.isExpired(at: now) }
            while let shelf = shelves[key], shelf.count > limits.perDomain, let place = stalest(of: shelf) {
                drop(from: key, at: place)
            }
        }
        if count > limits.total { remove { $0.isExpired(at: now) } }
        while count > limits.total, let (key, place) = stalest() {
            drop(from: key, at: place)
        }
        return count < before
    }

    /// How many cookies a domain may have before it is the first to give some up: what every client should
    /// keep of one (RFC 6265bis §6.1).
    private static let fairShare = 50

    /// The cookie to give up of a shelf.
    private func stalest(of shelf: [Entry]) -> Int? {
        shelf.indices.min { rank(shelf[$0], isCrowded: true) < rank(shelf[$1], isCrowded: true) }
    }

    /// The cookie to give up of all.
    private func stalest() -> (key: String, place: Int)? {
        var best: (key: String, place: Int, rank: EvictionRank)?
        for (key, shelf) in shelves {
            let isCrowded = shelf.count > CookieStore.fairShare
            for place in shelf.indices {
                let rank = rank(shelf[place], isCrowded: isCrowded)
                if let found = best, found.rank < rank { continue }
                best = (key, place, rank)
            }
        }
        return best.map { ($0.key, $0.place) }
    }

    private func rank(_ entry: Entry, isCrowded: Bool) -> EvictionRank {
        let kind = isCrowded ? (entry.cookie.isSecure ? 1 : 0) : 2
        return EvictionRank(kind: kind, lastUsed: entry.cookie.lastUsed, ordinal: entry.ordinal)
    }

    private mutating func drop(from key: String, at place: Int) {
        shelves[key]?.remove(at: place)
        if shelves[key]?.isEmpty ?? false { shelves[key] = nil }
        count -= 1
        revision &+= 1
    }

    private mutating func drop(from key: String, where isUnwanted: (Entry) -> Bool) {
        guard let shelf = shelves[key] else { return }
        let rest = shelf.filter { !isUnwanted($0) }
        guard rest.count < shelf.count else { return }
        count -= shelf.count - rest.count
        shelves[key] = rest.isEmpty ? nil : rest
        revision &+= 1
    }

    /// The order in which cookies are given up, the first least missed.
    private struct EvictionRank: Comparable {
        let kind: Int
        let lastUsed: Date
        let ordinal: UInt64

        static func < (left: EvictionRank, right: EvictionRank) -> Bool {
            if left.kind != right.kind { return left.kind < right.kind }
            if left.lastUsed != right.lastUsed { return left.lastUsed < right.lastUsed }
            return left.ordinal < right.ordinal
        }
    }
}
