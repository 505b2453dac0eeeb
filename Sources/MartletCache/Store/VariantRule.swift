/// Which stored variants of a URL a new one replaces (RFC 9111 §4.1).
enum VariantRule {
    /// The places of those that go when a response with this head is stored.
    ///
    /// A response that was chosen by nothing answers every request, so it replaces all, and is replaced by any. Another
    /// replaces the one that was chosen by the same; when there are too many, the one that came first.
    static func replaced<Place>(
        by head: StoredHead, among held: [(place: Place, head: StoredHead)]
    ) -> [Place] {
        guard !head.selections.isEmpty else { return held.map(\.place) }
        var replaced: [Place] = []
        var kept: [(place: Place, head: StoredHead)] = []
        for variant in held {
            let goes =
                variant.head.key != head.key || variant.head.selections.isEmpty
                || variant.head.selections == head.selections
            if goes { replaced.append(variant.place) } else { kept.append(variant) }
        }
        if kept.count >= EntryName.slotLimit {
            kept.sort { $0.head.responseTime < $1.head.responseTime }
            replaced += kept.prefix(kept.count - EntryName.slotLimit + 1).map(\.place)
        }
        return replaced
    }
}
