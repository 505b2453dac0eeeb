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
