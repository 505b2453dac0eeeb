package import MartletWire

/// An answer made of a stored response.
package struct CachedAnswer: Equatable, Sendable {
    /// What of the stored body it has.
    package enum Content: Equatable, Sendable {
        /// None of it: the answer to HEAD, 304 and 416.
        case none
        /// All of it.
        case whole
        /// These bytes of it (206); never empty.
        case bytes(Range<UInt64>)
    }

    /// Which of the stored responses, by index.
    package let variant: Int
    /// Status, reason and fields: with the current `Age`, without the fields that may not be served unvalidated.
    package let head: ResponseHead
    /// Which bytes of the stored body follow.
    package let content: Content
    /// How fresh it is.
    package let freshness: Freshness
    /// Whether it was served stale.
    package var isStale: Bool { !freshness.isFresh }
    /// What to say of it.
    package var status: CacheStatus

    /// Makes the answer to a request of a stored response that may be used.
    ///
    /// A condition or a range of the request is met as a server would meet it: `If-None-Match` or `If-Modified-Since`
    /// by 304 (RFC 9111 §4.3.2), `Range` by 206 or 416 (RFC 9110 §14.2), where `If-Range` fits. Several ranges that are
    /// satisfiable get the whole, which RFC 9110 §14.2 allows.
    ///
    /// - Parameters:
    ///   - variant: which of the stored responses, by index.
    ///   - stored: that response.
    ///   - request: what it answers.
    ///   - freshness: how fresh it is.
    ///   - isValidated: whether the network has just said that it is still good.
    ///   - status: what to say of it.
    init(
        variant: Int, _ stored: StoredVariant, to request: CacheRequest, freshness: Freshness,
        isValidated: Bool = false, status: CacheStatus
    ) {
        self.variant = variant
        self.freshness = freshness
        self.status = status
        let fields = CachedAnswer.servedFields(stored, freshness: freshness, isValidated: isValidated)
        if ConditionRule.isNotModified(request, stored) {
            head = ResponseHead(
                status: 304, reason: "Not Modified", fields: CachedAnswer.notModifiedFields(fields))
            content = .none
            return
        }
        switch request.method == "GET" ? PartRule(request, stored) : .whole {
        case .whole:
            head = ResponseHead(status: stored.head.status, reason: stored.head.reason, fields: fields)
            content = request.method == "HEAD" ? .none : .whole
        case .part(let range):
            let part = ContentRange.satisfied(range, total: stored.bodyLength)
            head = ResponseHead(
                status: 206, reason: "Partial Content",
                fields: CachedAnswer.framed(
                    fields, range: part.text, length: range.upperBound - range.lowerBound))
            content = .bytes(range)
        case .unsatisfiable:
            let none = ContentRange.unsatisfied(total: stored.bodyLength)
            let kept = StoredFields.filtered(fields) { !$0.hasPrefix("content-") && $0 != "etag" }
            head = ResponseHead(
                status: 416, reason: "Range Not Satisfiable",
                fields: CachedAnswer.framed(kept, range: none.text, length: 0))
            content = .none
        }
    }

    /// The stored fields with the age of now (RFC 9111 §5.1), and without those that `no-cache` names, unless they have
    /// just been validated (RFC 9111 §5.2.2.4).
    private static func servedFields(
        _ stored: StoredVariant, freshness: Freshness, isValidated: Bool
    ) -> FieldBlock {
        if isValidated || stored.facts.control.fieldsToValidate.isEmpty {
            return stored.fields(ofAge: freshness.age)
        }
        let withheld = Set(stored.facts.control.fieldsToValidate)
        var fields = StoredFields.filtered(stored.head.fields) { $0 != "age" && !withheld.contains($0) }
        fields.append(name: "Age", value: String(freshness.age))
        return fields
    }

    /// The fields that a 304 has (RFC 9110 §15.4.5), and `Age`.
    private static func notModifiedFields(_ fields: FieldBlock) -> FieldBlock {
        let names: Set<String> = [
            "age", "cache-control", "content-location", "date", "etag", "expires", "last-modified", "vary",
        ]
        return StoredFields.filtered(fields, names.contains)
    }

    private static func framed(_ fields: FieldBlock, range: String, length: UInt64) -> FieldBlock {
        var framed = StoredFields.filtered(fields) { $0 != "content-length" && $0 != "content-range" }
        framed.append(name: "Content-Range", value: range)
        framed.append(name: "Content-Length", value: String(length))
        return framed
    }
}

/// Which part of a complete stored response a request asks for (RFC 9110 §14.2, §13.1.5).
enum PartRule: Equatable {
    /// All of it: no range, one that is ignored, or several.
    case whole
    /// These bytes; never empty.
    case part(Range<UInt64>)
    /// None that there are (416).
    case unsatisfiable

    /// Reads the range of a request. One that is malformed, of another unit, or not meant for this response
    /// (`If-Range`) is ignored, and so is any where the response is not a 200.
    init(_ request: CacheRequest, _ stored: StoredVariant) {
        self = .whole
        guard request.hasRange else { return }
        let values = request.fields.values(of: "Range")
        guard values.count == 1, let text = values.first, let field = RangeField(parsing: text),
            stored.head.status == 200, PartRule.isMeant(request, stored)
        else { return }
        let ranges = field.resolved(in: stored.bodyLength)
        switch ranges.count {
        case 0: self = .unsatisfiable
        case 1: self = .part(ranges[0])
        default: break
        }
    }

    /// Whether the bytes of a response are what the request can have a part of: those of a coded response are not, as
    /// nobody could decode them from the middle. Such requests go to the network.
    static func canServe(_ request: CacheRequest, _ stored: StoredVariant) -> Bool {
        !request.hasRange || !stored.head.fields.contains("Content-Encoding")
    }

    /// Whether `If-Range` names this very response: by its strong tag, or by its date, if that is a strong one.
    private static func isMeant(_ request: CacheRequest, _ stored: StoredVariant) -> Bool {
        let values = request.fields.rawValues(of: "If-Range")
        guard let value = values.first else { return true }
        guard values.count == 1 else { return false }
        if let tag = EntityTag(value) { return stored.facts.entityTag?.matchesStrongly(tag) ?? false }
        let now = HTTPDate(secondsSinceEpoch: stored.head.responseTime.seconds)
        let dates = stored.facts.dates
        guard let date = MessageDates.single("If-Range", in: request.fields, now: now),
            let modified = dates.lastModified
        else { return false }
        // Within a second of its own date a response may have changed again without showing it (RFC 9110 §8.8.2.2).
        return modified == date && modified < dates.date
    }
}

/// The outcome of the conditions that a request has of its own, met by a stored response (RFC 9111 §4.3.2, RFC 9110
/// §13.2.2).
enum ConditionRule {
    /// Evaluates `If-None-Match`, or without it `If-Modified-Since`: whether what the caller has is what is stored. Conditions
    /// are for successes: other stored statuses are served as they are.
    static func isNotModified(_ request: CacheRequest, _ stored: StoredVariant) -> Bool {
        guard request.isConditional, (200..<300).contains(stored.head.status) else { return false }
        let tags = request.fields.rawValues(of: "If-None-Match")
        return tags.isEmpty ? isUnmodified(request, stored) : names(tags, stored.facts.entityTag)
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
