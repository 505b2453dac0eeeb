/// Which of the stored responses of a URL answer a request, and which make room for another (RFC 9111 §4, §4.1).
package enum VariantRule {
    /// The variants that a request selects, by index, the best first: by `Date`, then by when they came.
    package static func matching(_ request: CacheRequest, _ variants: [StoredVariant]) -> [Int] {
        newestFirst(variants.indices.filter { matches(request, variants[$0]) }, variants)
    }

    /// Whether a request selects a variant: one that was chosen by what it says, too, in a coding that it takes.
    static func matches(_ request: CacheRequest, _ variant: StoredVariant) -> Bool {
        variant.head.key == request.key && isOfRequester(variant) && VaryRule.matches(variant.head, request)
            && CodingRule.accepts(variant, request)
    }

    /// The variants that make room for a new one, by index: those it replaces, and, where there are more than a limit,
    /// those that came first.
    ///
    /// A response that was chosen by nothing answers every request, so it replaces all, and is replaced by any. Another
    /// replaces the one that was chosen by the same, and what has another key but lies in the same place.
    ///
    /// - Parameters:
    ///   - new: the head that is to be stored.
    ///   - heads: what is stored where it goes.
    ///   - limit: the most variants, the new one included.
    package static func displaced(by new: StoredHead, in heads: [StoredHead], limit: Int) -> [Int] {
        var displaced: [Int] = []
        var others: [Int] = []
        for (index, head) in heads.enumerated() {
            let goes =
                new.selections.isEmpty || head.selections.isEmpty || head.selections == new.selections
                || head.key != new.key
            if goes { displaced.append(index) } else { others.append(index) }
        }
        let excess = others.count - (max(1, limit) - 1)
        if excess > 0 {
            let oldestFirst = others.sorted { left, right in
                let leftTime = heads[left].responseTime
                let rightTime = heads[right].responseTime
                return leftTime == rightTime ? left < right : leftTime < rightTime
            }
            displaced += oldestFirst.prefix(excess)
        }
        return displaced.sorted()
    }

    /// Indices with the newest first, by `Date`, then by when they came, then by place.
    static func newestFirst(_ indices: [Int], _ variants: [StoredVariant]) -> [Int] {
        guard indices.count > 1 else { return indices }
        let dated = indices.map { index in
            let variant = variants[index]
            return (index: index, date: variant.facts.dates.date, came: variant.head.responseTime)
        }
        return dated.sorted { left, right in
            if left.date != right.date { return left.date > right.date }
            if left.came != right.came { return left.came > right.came }
            return left.index > right.index
        }.map(\.index)
    }

    /// Whether a response may be used by whoever asks with its key: what was made for a credential and is kept for
    /// everybody must say that it may be (RFC 9111 §3.5).
    private static func isOfRequester(_ variant: StoredVariant) -> Bool {
        guard variant.head.wasAuthorized, variant.head.key.partition.isEmpty else { return true }
        return AuthorizationRule.allowsSharing(variant.facts.control)
    }
}
