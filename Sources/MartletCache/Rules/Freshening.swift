package import MartletWire

/// What a 304 makes of a stored response (RFC 9111 §3.2, §4.3.4).
package struct Freshening: Equatable, Sendable {
    /// Which of the stored responses, by index.
    package let variant: Int
    /// Its head from now on.
    package let head: StoredHead
    /// Whether it may still be kept, or was good for this one answer: the 304 may say `no-store`, or `Vary: *`.
    package let isKept: Bool

    /// Updates a stored head from the head of a response that says it is still good.
    ///
    /// Each field of the new head takes the place of all stored ones of its name, but for those that concern a
    /// connection, and those that describe the stored bytes: among them a weak tag, where the new one is the same but
    /// strong, since that is of other bytes (RFC 9110 §8.8.1). `Age` and `Date` are of the message that brought them:
    /// without them in the new one, the old ones go.
    ///
    /// - Parameters:
    ///   - variant: which of the stored responses, by index.
    ///   - old: its head.
    ///   - response: the head of the 304, or of a 200 to HEAD.
    ///   - request: what was answered.
    ///   - requestTime: when that was sent.
    ///   - responseTime: when the head came.
    package init(
        variant: Int, _ old: StoredHead, by response: ResponseHead, to request: CacheRequest,
        requestTime: WallTime, responseTime: WallTime
    ) {
        self.variant = variant
        var head = old
        let keepsTag = Freshening.keepsTag(old.fields, response.fields)
        let news = StoredFields.filtered(StoredFields.kept(response.fields, received: responseTime)) {
            !Freshening.fixed.contains($0) && !(keepsTag && $0 == "etag")
        }
        var replaced: Set<String> = ["age"]
        for index in news.indices { replaced.insert(StoredFields.lowercased(news.name(at: index))) }
        head.fields = StoredFields.filtered(old.fields) { !replaced.contains($0) }
        for index in news.indices {
            head.fields.append(name: news.name(at: index), value: news.value(at: index))
        }
        head.requestTime = requestTime
        head.responseTime = responseTime
        head.wasAuthorized = old.wasAuthorized || request.isAuthorized

        let control = CacheControl(response: head.fields)
        var isKept = !request.isNoStore && (!control.isNoStore || control.mustUnderstand)
        if !StoredFields.isDoubtful(response.fields) {
            // What it is chosen by stays as stored, unless the server now names other fields.
            if case .fields(let names) = VaryRule(head.fields), names == old.selections.map(\.name) {
                head.selections = old.selections
            } else if let selections = VaryRule(head.fields).selections(of: request) {
                head.selections = selections
            } else {
                isKept = false
            }
        } else {
            isKept = false
        }
        if head.wasAuthorized, head.key.partition.isEmpty, !AuthorizationRule.allowsSharing(control) {
            isKept = false
        }
        self.head = head
        self.isKept = isKept
    }

    /// Whether the stored tag is weak and stays: the new one names the same, at the most more strongly.
    private static func keepsTag(_ old: FieldBlock, _ new: FieldBlock) -> Bool {
        guard let stored = EntityTag(of: old), stored.isWeak else { return false }
        return EntityTag(of: new)?.matchesWeakly(stored) ?? false
    }

    /// The fields that say what the stored bytes are: a message without them cannot know better (RFC 9111 §3.2).
    private static let fixed: Set<String> = [
        "content-length", "content-encoding", "content-range", "content-md5", "content-digest",
    ]
}

/// Which stored responses a 304 is about (RFC 9111 §4.3.4).
package enum FresheningRule {
    /// The stored responses, by index, the one that answers first; empty where it is about none that is known.
    ///
    /// A strong tag is about all that have it. A weak one, or a date, is about the newest that has it. A 304 that names
    /// nothing is about what was asked, if that was a single one; servers that leave out the tag of a 304 are common.
    ///
    /// - Parameters:
    ///   - response: the head of the 304.
    ///   - variants: what is stored.
    ///   - offered: those that the request asked about, by index, the selected one first.
    package static func selected(
        by response: ResponseHead, among variants: [StoredVariant], offered: [Int]
    ) -> [Int] {
        let candidates = variants.indices.filter { (200..<300).contains(variants[$0].head.status) }
        if let tag = EntityTag(of: response.fields) {
            let strong = candidates.filter { variants[$0].facts.entityTag?.matchesStrongly(tag) ?? false }
            if !strong.isEmpty { return ordered(strong, variants, offered) }
            let weak = candidates.filter { variants[$0].facts.entityTag?.matchesWeakly(tag) ?? false }
            // A strong tag is about no weakly named response, unless that is the only one that was asked about.
            if tag.isWeak || weak == offered { return Array(ordered(weak, variants, offered).prefix(1)) }
            return []
        }
        // A tag that cannot be read names nothing, where what was asked about has none, or one such, as well.
        if response.fields.contains("ETag"), offered.contains(where: { variants[$0].facts.entityTag != nil })
        {
            return []
        }
        if response.fields.contains("Last-Modified") {
            let now = HTTPDate(secondsSinceEpoch: 0)
            guard let date = MessageDates.single("Last-Modified", in: response.fields, now: now) else {
                return []
            }
            let dated = candidates.filter { variants[$0].facts.dates.lastModified == date }
            return Array(ordered(dated, variants, offered).prefix(1))
        }
        return offered.count == 1 ? offered.filter(candidates.contains) : []
    }

    /// Those that were asked about first, in their order; then the newest.
    private static func ordered(_ found: [Int], _ variants: [StoredVariant], _ offered: [Int]) -> [Int] {
        offered.filter(found.contains)
            + VariantRule.newestFirst(found.filter { !offered.contains($0) }, variants)
    }
}

/// The answer to HEAD, compared with a stored response to GET (RFC 9111 §4.3.5).
enum HeadUpdateRule {
    /// Whether the response is the same, and its fields are updated; else the stored one is out of date.
    ///
    /// A tag, a date and a length that the new head has must be those of the stored response. A new head that has neither tag
    /// nor date proves nothing, and so counts as another where its length differs, and as the same otherwise.
    static func isSame(_ response: ResponseHead, _ stored: StoredVariant) -> Bool {
        let fields = response.fields
        if fields.contains("ETag") {
            guard let tag = EntityTag(of: fields), stored.facts.entityTag == tag else { return false }
        }
        if fields.contains("Last-Modified") {
            let now = HTTPDate(secondsSinceEpoch: stored.head.responseTime.seconds)
            guard let date = MessageDates.single("Last-Modified", in: fields, now: now),
                stored.facts.dates.lastModified == date
            else { return false }
        }
        if let length = fields.rawValues(of: "Content-Length").first {
            return DecimalNumber(length).exactValue == stored.bodyLength
        }
        return true
    }
}
