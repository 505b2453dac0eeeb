package import MartletWire

/// Which request fields a response was chosen by (RFC 9110 §12.5.5, RFC 9111 §4.1).
package enum VaryRule: Equatable, Sendable {
    /// By these, in lower case, sorted, each once; by none where it is empty.
    case fields([String])
    /// By more than request fields say (`*`), or by something that is no name, or by more names than
    /// ``nameLimit``: such a response answers no other request.
    case everything

    /// The most names that are told apart: stops a field from making each look-up expensive.
    package static let nameLimit = 32
    /// The most bytes of request fields that are kept of one response: beyond it, it is not stored.
    package static let selectionLimit = 16_384

    /// Reads the `Vary` fields of a response.
    package init(_ fields: FieldBlock) {
        var names: Set<String> = []
        for value in fields.rawValues(of: "Vary") {
            for member in ElementList(value) {
                guard !member.elementsEqual("*".utf8), member.count <= 256,
                    member.allSatisfy(ByteClass.isToken)
                else {
                    self = .everything
                    return
                }
                names.insert(String(decoding: member.map(ByteClass.lowercased), as: UTF8.self))
                guard names.count <= VaryRule.nameLimit else {
                    self = .everything
                    return
                }
            }
        }
        self = .fields(names.sorted())
    }

    /// What a request says of the fields that a response is chosen by, to be stored with it; nil where the response
    /// answers no other request, or where it cannot be told without storing a secret.
    package func selections(of request: CacheRequest) -> [StoredHead.Selection]? {
        guard case .fields(let names) = self else { return nil }
        var selections: [StoredHead.Selection] = []
        var byteCount = 0
        for name in names {
            switch SelectedValue.of(name, in: request) {
            case .absent: selections.append(.init(name: name, value: nil))
            case .value(let value):
                byteCount += value.utf8.count
                guard byteCount <= VaryRule.selectionLimit else { return nil }
                selections.append(.init(name: name, value: value))
            case .secret: return nil
            }
        }
        return selections
    }

    /// Whether a request says the same of the fields that a stored response was chosen by.
    package static func matches(_ head: StoredHead, _ request: CacheRequest) -> Bool {
        head.selections.allSatisfy { selection in
            switch SelectedValue.of(selection.name, in: request) {
            case .absent: selection.value == nil
            case .value(let value): selection.value == value
            case .secret: false
            }
        }
    }
}

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
