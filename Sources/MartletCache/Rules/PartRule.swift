import MartletWire

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
