package import MartletWire

/// The update of a stored response by a 304 or a response to HEAD (RFC 9111 §3.2, §4.3.4).
package struct Freshening: Equatable, Sendable {
    /// The stored response, by index.
    package let variant: Int
    package let head: StoredHead
    /// Whether the response stays stored. With `no-store` or `Vary: *` in the 304, it was valid for this request only.
    package let isKept: Bool

    /// Updates a stored head from the head of a response that confirms it.
    ///
    /// Each new field replaces all stored fields of its name, except fields of the connection and fields that describe
    /// the stored bytes. A weak tag is not replaced by the same strong tag, which belongs to other bytes (RFC 9110
    /// §8.8.1). Without a new `Age`, the old one is removed; without a new `Date`, the time of receipt replaces it.
    /// - Parameter response: The head of a 304, or of a 200 to HEAD.
    package init(
        variant: Int, _ old: StoredHead, by response: ResponseHead, to request: CacheRequest, requestTime: WallTime,
        responseTime: WallTime
    ) {
        self.variant = variant
        var head = old
        let keepsTag = Freshening.keepsTag(old.fields, response.fields)
        let update = StoredFields.kept(response.fields, received: responseTime).filtered {
            !Freshening.fixed.contains($0) && !(keepsTag && $0 == "etag")
        }
        let replaced = Set(update.indices.map { update.name(at: $0).lowercasedText } + ["age"])
        head.fields = old.fields.filtered { !replaced.contains($0) }
        for index in update.indices { head.fields.append(name: update.name(at: index), value: update.value(at: index)) }
        head.requestTime = requestTime
        head.responseTime = responseTime
        head.wasAuthorized = old.wasAuthorized || request.isAuthorized

        let control = CacheControl(response: head.fields)
        let vary = VaryRule(head.fields)
        let isExclusive = head.wasAuthorized && head.key.partition.isEmpty && !control.allowsSharing
        var isKept =
            !request.isNoStore && (!control.isNoStore || control.mustUnderstand) && !isExclusive
            && !StoredFields.connectionNamesRequiredField(response.fields)
        // The stored selections stay, unless `Vary` now names other fields.
        if isKept, vary != .fields(old.selections.map(\.name)) {
            if let selections = vary.selections(of: request) { head.selections = selections } else { isKept = false }
        }
        (self.head, self.isKept) = (head, isKept)
    }

    /// Whether the stored tag is weak and stays: the new tag is the same, apart from its strength.
    private static func keepsTag(_ old: FieldBlock, _ new: FieldBlock) -> Bool {
        guard let stored = EntityTag(of: old), stored.isWeak else { return false }
        return EntityTag(of: new)?.matchesWeakly(stored) ?? false
    }

    /// The fields that describe the stored bytes: a message without these bytes cannot change them (RFC 9111 §3.2).
    private static let fixed: Set<String> = [
        "content-length", "content-encoding", "content-range", "content-md5", "content-digest", "repr-digest", "digest",
    ]
}

/// The choice of the stored responses that a message without a body confirms (RFC 9111 §4.3.4, §4.3.5).
enum FresheningRule {
    /// Returns the stored responses that a 304 confirms, by index, the one to serve first; empty if it confirms none.
    ///
    /// A strong tag confirms all responses that have it; a weak tag, or a date, the newest one that has it. A 304
    /// without validators, which many servers send, confirms a single offered response.
    /// - Parameter offered: The responses that the request offered, by index, the selected one first.
    static func selected(by response: ResponseHead, among variants: [StoredVariant], offered: [Int]) -> [Int] {
        let candidates = variants.indices.filter { (200..<300).contains(variants[$0].head.status) }
        // The offered ones first, in their order; then the others, the newest first.
        func ordered(_ found: [Int]) -> [Int] {
            offered.filter(found.contains) + VariantRule.newestFirst(found.filter { !offered.contains($0) }, variants)
        }
        if let tag = EntityTag(of: response.fields) {
            let strong = candidates.filter { variants[$0].entityTag?.matchesStrongly(tag) ?? false }
            if !strong.isEmpty { return ordered(strong) }
            let weak = candidates.filter { variants[$0].entityTag?.matchesWeakly(tag) ?? false }
            // A strong tag does not confirm a response with a weak tag, unless that response alone was offered.
            return tag.isWeak || weak == offered ? Array(ordered(weak).prefix(1)) : []
        }
        // With an invalid tag, a 304 confirms nothing if an offered response has a tag.
        if response.fields.contains("ETag"), offered.contains(where: { variants[$0].entityTag != nil }) { return [] }
        if response.fields.contains("Last-Modified") {
            return Array(ordered(candidates.filter { variants[$0].isDated(as: response.fields) }).prefix(1))
        }
        return offered.count == 1 ? offered.filter(candidates.contains) : []
    }

    /// Whether a response to HEAD updates a stored response to GET: its tag, date and length, if it has them, are
    /// equal. Otherwise the stored response is out of date.
    static func isSame(_ response: ResponseHead, _ stored: StoredVariant) -> Bool {
        let fields = response.fields
        if fields.contains("ETag") {
            guard let tag = EntityTag(of: fields), stored.entityTag == tag else { return false }
        }
        if fields.contains("Last-Modified"), !stored.isDated(as: fields) { return false }
        let length = fields.rawValues(of: "Content-Length").first
        return length.map { DecimalNumber($0).exactValue == stored.bodyLength } ?? true
    }
}

extension StoredVariant {
    /// Whether fields have the `Last-Modified` of this response. Both are read at the time of its receipt, so that the
    /// same year of two digits is in the same century (RFC 9110 §5.6.7).
    fileprivate func isDated(as fields: FieldBlock) -> Bool {
        let date = MessageDates.single("Last-Modified", in: fields, received: head.responseTime)
        return date != nil && date == dates.lastModified
    }
}
