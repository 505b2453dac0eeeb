package import MartletWire

/// A response to a request, made from a stored response.
package struct CachedResponse: Equatable, Sendable {
    /// The part of the stored body that the response contains.
    package enum Content: Equatable, Sendable {
        /// No content: the response to HEAD, 304 and 416.
        case none
        case whole
        /// This range of the body (206); never empty.
        case bytes(Range<UInt64>)
    }

    /// The stored response, by index.
    package let variant: Int
    /// Status, reason and fields: with the current `Age`, without fields that must not be served unvalidated.
    package let head: ResponseHead
    /// The part of the stored body that follows.
    package let content: Content
    /// The freshness of the stored response.
    package let freshness: Freshness
    package var isStale: Bool { !freshness.isFresh }
    package var status: CacheStatus

    /// Creates the response to a request from a stored response that may be used.
    ///
    /// Conditions and ranges are evaluated as a server would: `If-None-Match` or `If-Modified-Since` lead to 304,
    /// `Range` to 206 or 416 if `If-Range` matches, several ranges to the whole body (RFC 9111 §4.3.2, RFC 9110 §14.2).
    /// - Parameter isValidated: Whether the network has just confirmed the stored response.
    init(
        variant: Int, _ stored: StoredVariant, to request: CacheRequest, freshness: Freshness,
        isValidated: Bool = false, status: CacheStatus
    ) {
        (self.variant, self.freshness, self.status) = (variant, freshness, status)
        let fields = CachedResponse.servedFields(stored, freshness: freshness, isValidated: isValidated)
        if CachedResponse.isNotModified(request, stored) {
            // The fields of a 304 (RFC 9110 §15.4.5), and `Age`.
            let names: Set<String> = [
                "age", "cache-control", "content-location", "date", "etag", "expires", "last-modified", "vary",
            ]
            head = ResponseHead(
                status: 304, reason: "Not Modified", fields: fields.filtered(names.contains))
            content = .none
            return
        }
        let ranges = request.method == "GET" ? CachedResponse.ranges(request, stored) : nil
        if let range = ranges?.first, ranges?.count == 1 {
            let part = ContentRange.satisfied(range, total: stored.bodyLength).text
            head = ResponseHead(
                status: 206, reason: "Partial Content",
                fields: CachedResponse.framed(fields, range: part, length: range.upperBound - range.lowerBound))
            content = .bytes(range)
        } else if ranges?.isEmpty == true {
            let none = ContentRange.unsatisfied(total: stored.bodyLength).text
            let kept = fields.filtered { !$0.hasPrefix("content-") && $0 != "etag" }
            head = ResponseHead(
                status: 416, reason: "Range Not Satisfiable",
                fields: CachedResponse.framed(kept, range: none, length: 0))
            content = .none
        } else {
            head = ResponseHead(status: stored.head.status, reason: stored.head.reason, fields: fields)
            content = request.method == "HEAD" ? .none : .whole
        }
    }

    /// Returns the stored fields with the current age (RFC 9111 §5.1), without those that `no-cache` names, unless they
    /// were just validated (§5.2.2.4).
    private static func servedFields(_ stored: StoredVariant, freshness: Freshness, isValidated: Bool) -> FieldBlock {
        let withheld = stored.control.fieldsToValidate
        if isValidated || withheld.isEmpty { return stored.fields(ofAge: freshness.age) }
        let dropped = Set(withheld + ["age"])
        var fields = stored.head.fields.filtered { !dropped.contains($0) }
        fields.append(name: "Age", value: String(freshness.age))
        return fields
    }

    private static func framed(_ fields: FieldBlock, range: String, length: UInt64) -> FieldBlock {
        var framed = fields.filtered {
            !["content-length", "content-range", "content-digest"].contains($0)
        }
        framed.append(name: "Content-Range", value: range)
        framed.append(name: "Content-Length", value: String(length))
        return framed
    }

    // MARK: Ranges (RFC 9110 §14.2, §13.1.5)

    /// Whether a stored response can be served. A range of an encoded body cannot, since nothing could decode it.
    static func canServe(_ request: CacheRequest, _ stored: StoredVariant) -> Bool {
        !request.hasRange || !stored.head.fields.contains("Content-Encoding")
    }

    /// Returns the requested ranges of the stored body; empty if none is satisfiable. `nil` without a range, or if it
    /// is ignored: malformed, in another unit, `If-Range` does not match, or the stored status is not 200.
    private static func ranges(_ request: CacheRequest, _ stored: StoredVariant) -> [Range<UInt64>]? {
        guard request.hasRange else { return nil }
        let values = request.fields.values(of: "Range")
        guard values.count == 1, let field = RangeField(parsing: values[0]), stored.head.status == 200,
            matchesIfRange(request, stored)
        else { return nil }
        return field.resolved(in: stored.bodyLength)
    }

    /// Whether `If-Range` identifies this response: by its strong tag, or by its date, if that is a strong validator.
    private static func matchesIfRange(_ request: CacheRequest, _ stored: StoredVariant) -> Bool {
        let values = request.fields.rawValues(of: "If-Range")
        guard let value = values.first else { return true }
        guard values.count == 1 else { return false }
        if let tag = EntityTag(value) { return stored.entityTag?.matchesStrongly(tag) ?? false }
        let received = stored.head.responseTime
        guard let date = MessageDates.single("If-Range", in: request.fields, received: received),
            let modified = stored.dates.lastModified
        else { return false }
        // Modified within the second of its `Date`, a response may have changed again since (RFC 9110 §8.8.2.2).
        return modified == date && modified < stored.dates.date
    }

    // MARK: Conditions (RFC 9111 §4.3.2, RFC 9110 §13.2.2)

    /// Whether the caller already has the stored 2xx response, by `If-None-Match`, else by `If-Modified-Since`.
    private static func isNotModified(_ request: CacheRequest, _ stored: StoredVariant) -> Bool {
        guard request.isConditional, (200..<300).contains(stored.head.status) else { return false }
        let tags = request.fields.rawValues(of: "If-None-Match")
        guard tags.isEmpty else { return tags.contains { includes($0, stored.entityTag) } }
        let received = stored.head.responseTime
        let since = MessageDates.single("If-Modified-Since", in: request.fields, received: received)
        // A response without `Last-Modified` counts as modified at its `Date`.
        return since.map { (stored.dates.lastModified ?? stored.dates.date) <= $0 } ?? false
    }

    private static func includes(_ list: ArraySlice<UInt8>, _ tag: EntityTag?) -> Bool {
        ElementList(list).contains { member in
            if member.elementsEqual("*".utf8) { return true }
            guard let tag, let other = EntityTag(member) else { return false }
            return tag.matchesWeakly(other)
        }
    }
}
