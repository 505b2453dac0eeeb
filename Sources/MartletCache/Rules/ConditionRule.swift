import MartletWire

/// What comes of the conditions that a request has of its own, met by a stored response (RFC 9111 §4.3.2, RFC 9110
/// §13.2.2).
enum ConditionRule: Equatable {
    /// None, or one that asks for the response.
    case modified
    /// What the caller has is what is stored.
    case notModified

    /// Evaluates `If-None-Match`, or without it `If-Modified-Since`. Conditions are for successes: other stored
    /// statuses are served as they are.
    init(_ request: CacheRequest, _ stored: StoredVariant) {
        self = .modified
        guard request.isConditional, (200..<300).contains(stored.head.status) else { return }
        let tags = request.fields.rawValues(of: "If-None-Match")
        if !tags.isEmpty {
            if ConditionRule.names(tags, stored.facts.entityTag) { self = .notModified }
        } else if ConditionRule.isUnmodified(request, stored) {
            self = .notModified
        }
    }

    private static func names(_ lists: [ArraySlice<UInt8>], _ tag: EntityTag?) -> Bool {
        lists.contains { list in
            ElementList(list).contains { member in
                if member.elementsEqual("*".utf8) { return true }
                guard let tag, let other = EntityTag(member) else { return false }
                return tag.matchesWeakly(other)
            }
        }
    }

    /// A response without `Last-Modified` is as old as its `Date` (RFC 9111 §4.3.2).
    private static func isUnmodified(_ request: CacheRequest, _ stored: StoredVariant) -> Bool {
        let dates = stored.facts.dates
        let now = HTTPDate(secondsSinceEpoch: stored.head.responseTime.seconds)
        guard let since = MessageDates.single("If-Modified-Since", in: request.fields, now: now) else {
            return false
        }
        return (dates.lastModified ?? dates.date) <= since
    }
}
