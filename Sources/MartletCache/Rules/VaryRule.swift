package import MartletWire

/// The request fields that a response was selected by (RFC 9110 §12.5.5, RFC 9111 §4.1).
package enum VaryRule: Equatable, Sendable {
    /// These fields: names in lower case, sorted, without duplicates; empty without `Vary`.
    case fields([String])
    /// The value `*`, an invalid name, or more than ``nameLimit`` names: the response matches no other request.
    case everything

    /// The maximum number of names: more would make each lookup expensive.
    package static let nameLimit = 32
    /// The maximum size of the request fields that are stored with a response, in bytes. Above it, nothing is stored.
    package static let selectionLimit = 16_384
    /// The fields with secrets. ``CacheRequest/keyedDigest`` of their values is stored instead of them.
    private static let secretNames: Set<String> = ["authorization", "cookie", "cookie2", "proxy-authorization"]

    /// Parses the `Vary` fields of a response.
    package init(_ fields: FieldBlock) {
        var names: Set<String> = []
        for member in fields.rawValues(of: "Vary").lazy.flatMap({ ElementList($0) }) {
            let isName = !member.elementsEqual("*".utf8) && member.count <= 256 && member.allSatisfy(ByteClass.isToken)
            if isName { names.insert(member.lowercasedText) }
            guard isName, names.count <= VaryRule.nameLimit else {
                self = .everything
                return
            }
        }
        self = .fields(names.sorted())
    }

    /// Returns the values, in a request, of the fields that a response is selected by, to be stored with it. `nil` if
    /// the response matches no other request, the values are above ``selectionLimit``, or a secret has no digest.
    package func selections(of request: CacheRequest) -> [StoredHead.Selection]? {
        guard case .fields(let names) = self else { return nil }
        var selections: [StoredHead.Selection] = []
        var byteCount = 0
        for name in names {
            guard let selection = VaryRule.selection(name, in: request) else { return nil }
            byteCount += selection.value?.utf8.count ?? 0
            guard byteCount <= VaryRule.selectionLimit else { return nil }
            selections.append(selection)
        }
        return selections
    }

    /// Whether a request has the same values in the fields that a stored response was selected by.
    package static func matches(_ head: StoredHead, _ request: CacheRequest) -> Bool {
        head.selections.allSatisfy { selection($0.name, in: request) == $0 }
    }

    /// Returns a normalized field of a request, by its name in lower case: values with equal meanings become equal
    /// texts (RFC 9111 §4.1). `nil` for a secret of which no digest can be computed.
    ///
    /// Lines are joined by commas. Lists of codings, charsets and languages ignore case, the first two also order.
    private static func selection(_ name: String, in request: CacheRequest) -> StoredHead.Selection? {
        let lines = request.fields.rawValues(of: name)
        guard !lines.isEmpty else { return StoredHead.Selection(name: name, value: nil) }
        let value: String
        switch name {
        case _ where secretNames.contains(name):
            guard let keyedDigest = request.keyedDigest else { return nil }
            value = keyedDigest(lines.map { ByteText.latin1($0) }.joined(separator: ", "))
        case "accept-encoding", "accept-charset": value = members(lines).sorted().joined(separator: ",")
        case "accept-language": value = members(lines).joined(separator: ",")
        default: value = lines.map { ByteText.latin1(ByteClass.trimmed($0)) }.joined(separator: ", ")
        }
        return StoredHead.Selection(name: name, value: value)
    }

    /// Returns the members of a list, in lower case, without blanks around semicolons and equals signs.
    private static func members(_ lines: [ArraySlice<UInt8>]) -> [String] {
        lines.flatMap { line in
            ElementList(line).map { member in
                ByteText.latin1(member.lazy.filter { !ByteClass.isBlank($0) }.map(ByteClass.lowercased)[...])
            }
        }
    }
}

/// The stored responses of a URL that match a request, and those that a new one replaces (RFC 9111 §4, §4.1).
package enum VariantRule {
    /// Returns the variants that match a request, by index, the best first: by `Date`, then by time of receipt.
    package static func matching(_ request: CacheRequest, _ variants: [StoredVariant]) -> [Int] {
        newestFirst(variants.indices.filter { matches(request, variants[$0]) }, variants)
    }

    /// Whether a variant matches a request: it was selected by the same values, and is in an accepted coding. A variant
    /// that was requested with credentials, and has no partition, must allow sharing (RFC 9111 §3.5).
    static func matches(_ request: CacheRequest, _ variant: StoredVariant) -> Bool {
        let head = variant.head
        guard head.key == request.key else { return false }
        if head.wasAuthorized, head.key.partition.isEmpty, !variant.control.allowsSharing { return false }
        return VaryRule.matches(head, request) && ContentCodingRule.accepts(variant, request)
    }

    /// Returns the variants to remove for a new one, by index: those that it replaces, and, above a limit, the oldest.
    ///
    /// A response without selections matches every request, so it replaces all others and is replaced by any. Any other
    /// response replaces the one with the same selections. Responses of other keys with the same digest are replaced.
    /// - Parameter limit: The maximum number of variants, including the new one.
    package static func displaced(by new: StoredHead, in heads: [StoredHead], limit: Int) -> [Int] {
        let displaced = heads.indices.filter { index in
            let selections = heads[index].selections
            return new.selections.isEmpty || selections.isEmpty || selections == new.selections
                || heads[index].key != new.key
        }
        let oldestFirst = heads.indices.filter { !displaced.contains($0) }.sorted { left, right in
            (heads[left].responseTime, left) < (heads[right].responseTime, right)
        }
        let excess = max(0, oldestFirst.count - (max(1, limit) - 1))
        return (displaced + oldestFirst.prefix(excess)).sorted()
    }

    /// Whether a stored response that a new one would replace is more recent (RFC 9111 §4): by `Date`, then by the time
    /// of its request. It is not if it was received before the request of the new one was sent.
    /// - Parameter now: The current time. Responses received after it are ignored: the clock was set back.
    package static func isOutdated(_ new: StoredHead, by heads: [StoredHead], now: WallTime) -> Bool {
        displaced(by: new, in: heads, limit: .max).contains { index in
            let stored = heads[index]
            guard stored.key == new.key, new.requestTime <= stored.responseTime, stored.responseTime <= now else {
                return false
            }
            return recency(of: stored) > recency(of: new)
        }
    }

    private static func recency(of head: StoredHead) -> (Int64, WallTime, WallTime) {
        (MessageDates(head.fields, received: head.responseTime).date, head.requestTime, head.responseTime)
    }

    /// Sorts indices by `Date`, then by time of receipt, then by index, the newest first.
    static func newestFirst(_ indices: [Int], _ variants: [StoredVariant]) -> [Int] {
        guard indices.count > 1 else { return indices }
        let dated = indices.map { index in (variants[index].dates.date, variants[index].head.responseTime, index) }
        return dated.sorted(by: >).map { $0.2 }
    }
}

/// Whether a request accepts a stored response in the codings of its stored body (RFC 9110 §12.5.3).
///
/// An encoded response is not served to a request that does not accept the coding, even without `Vary`, which many
/// servers omit. Without an `Accept-Encoding` field no coding is accepted, although RFC 9110 allows any.
enum ContentCodingRule {
    /// The codings that are negotiated (IANA's registry); other codings are accepted as sent.
    private static let negotiated: Set<String> = ["gzip", "deflate", "compress", "br", "zstd"]

    /// Returns the negotiated codings of a response, by their names in lower case.
    static func codings(of fields: FieldBlock) -> [String] {
        fields.rawValues(of: "Content-Encoding").flatMap { value in
            ElementList(value).map { name($0) }.filter { negotiated.contains($0) }
        }
    }

    /// Whether a request accepts a response; one without codings is always accepted.
    static func accepts(_ variant: StoredVariant, _ request: CacheRequest) -> Bool {
        if variant.codings.isEmpty { return true }
        let lines = request.fields.rawValues(of: "Accept-Encoding")
        return variant.codings.allSatisfy { isAccepted($0, by: lines) }
    }

    /// Whether lines of `Accept-Encoding` name a coding, or else `*`, with a weight above 0.
    private static func isAccepted(_ coding: String, by lines: [ArraySlice<UInt8>]) -> Bool {
        var isNamed: Bool?
        var isAnyAccepted = false
        for member in lines.lazy.flatMap({ ElementList($0) }) {
            let end = member.firstIndex(of: UInt8(ascii: ";")) ?? member.endIndex
            let found = name(ByteClass.trimmed(member[..<end]))
            let isWanted = !isZero(member[end...])
            if found == coding { isNamed = (isNamed ?? false) || isWanted }
            if found == "*" { isAnyAccepted = isAnyAccepted || isWanted }
        }
        return isNamed ?? isAnyAccepted
    }

    /// Whether parameters are a weight of 0; an invalid weight counts as 1.
    private static func isZero(_ parameters: ArraySlice<UInt8>) -> Bool {
        let bytes = parameters.filter { !ByteClass.isBlank($0) }.map(ByteClass.lowercased)
        guard bytes.starts(with: ";q=0".utf8) else { return false }
        let rest = bytes.dropFirst(4)
        return rest.isEmpty
            || rest.first == UInt8(ascii: ".") && rest.dropFirst().allSatisfy { $0 == UInt8(ascii: "0") }
    }

    /// Returns the name of a coding in lower case, without the obsolete `x-` (RFC 9110 §8.4.1).
    private static func name(_ bytes: ArraySlice<UInt8>) -> String {
        switch bytes.lowercasedText {
        case "x-gzip": "gzip"
        case "x-compress": "compress"
        case let name: name
        }
    }
}
