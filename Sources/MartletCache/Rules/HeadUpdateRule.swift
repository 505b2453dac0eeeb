package import MartletWire

/// What the answer to HEAD says of a stored response to GET (RFC 9111 §4.3.5).
package enum HeadUpdateRule: Equatable, Sendable {
    /// It is the same: its fields are updated.
    case same
    /// It is another by now: the stored one is out of date.
    case other

    /// Compares the two: a tag, a date and a length that the new head has must be those of the stored response. A new
    /// head that has neither tag nor date proves nothing, and so counts as another where its length differs, and as
    /// the same otherwise.
    package init(_ response: ResponseHead, _ stored: StoredVariant) {
        let fields = response.fields
        self = .other
        if fields.contains("ETag") {
            guard let tag = EntityTag(of: fields), stored.facts.entityTag == tag else { return }
        }
        if fields.contains("Last-Modified") {
            let now = HTTPDate(secondsSinceEpoch: stored.head.responseTime.seconds)
            guard let date = MessageDates.single("Last-Modified", in: fields, now: now),
                stored.facts.dates.lastModified == date
            else { return }
        }
        if let length = fields.rawValues(of: "Content-Length").first {
            guard DecimalNumber(length).exactValue == stored.bodyLength else { return }
        }
        self = .same
    }
}
