package import MartletWire

/// How stored responses are validated by the request that goes to the network (RFC 9111 §4.3.1).
package struct ValidationPlan: Equatable, Sendable {
    /// The fields that are added to the request: `If-None-Match`, `If-Modified-Since`, and `Cache-Control` where the
    /// caches on the way are to validate, too. Empty where there is no validator: the request is a plain one then.
    package let fields: FieldBlock
    /// The stored responses that it asks about, by index.
    package let offered: [Int]
    /// The stored response that the request selects, by index; nil if only others are asked about.
    package let selected: Int?
    /// Whether the one that is selected may stand in for an error (RFC 5861 §4).
    package let isStaleUsableOnError: Bool
    /// Why it goes to the network.
    package let reason: CacheStatus.Forwarding

    /// Whether an answer 304 is one to what this added.
    package var isConditional: Bool { !offered.isEmpty }

    /// The most bytes of tags that are offered: stops long ones from making a request that a server refuses.
    static let tagLimit = 4096

    /// Plans a validation.
    ///
    /// The tags of all stored responses are offered, so that the server may name the one that answers; a date only of
    /// the one that the request selects. Only successes have validators, and what is in a coding that the request does not
    /// take is left out: a server that compares tags weakly would name it (RFC 9110 §13.1.2).
    ///
    /// - Parameters:
    ///   - matching: the stored responses that the request selects, the best first.
    ///   - variants: all that are stored.
    ///   - requestFields: what the request has already: conditions of the caller's are never added to.
    ///   - reason: why it goes to the network.
    ///   - isStaleUsableOnError: whether the best may stand in for an error.
    ///   - isRefreshing: whether the caches on the way are to validate, too.
    init(
        matching: [Int], variants: [StoredVariant], request: CacheRequest, reason: CacheStatus.Forwarding,
        isStaleUsableOnError: Bool, isRefreshing: Bool
    ) {
        self.reason = reason
        self.isStaleUsableOnError = isStaleUsableOnError
        selected = matching.first
        var fields = FieldBlock()
        var offered: [Int] = []
        if request.method == "GET", !request.isConditional, !request.hasRange {
            let valid = variants.indices.filter { ValidationPlan.isValidated(variants[$0], request) }
            let best = matching.first.flatMap { valid.contains($0) ? $0 : nil }
            let modified = best.flatMap { ValidationPlan.lastModified(variants[$0]) }
            let hasTag = best.map { variants[$0].facts.entityTag != nil } ?? false
            // A server that is told a tag looks at no date: of a response without a tag the date must stand alone.
            if hasTag || modified == nil {
                let others = VariantRule.newestFirst(valid.filter { !matching.contains($0) }, variants)
                let tags = ValidationPlan.tags(
                    matching.filter(valid.contains) + others, variants, offered: &offered)
                if !tags.isEmpty { fields.append(name: "If-None-Match".utf8, value: tags) }
            }
            if let best, let modified, hasTag == (offered.first == best) {
                fields.append(name: "If-Modified-Since".utf8, value: modified)
                if !hasTag { offered = [best] }
            }
        }
        if isRefreshing, !request.fields.contains("Cache-Control") {
            fields.append(name: "Cache-Control", value: "max-age=0")
        }
        self.fields = fields
        self.offered = offered
    }

    /// The tags of stored responses as a list, the first ones within the limit.
    private static func tags(_ indices: [Int], _ variants: [StoredVariant], offered: inout [Int]) -> [UInt8] {
        var tags: [UInt8] = []
        for index in indices {
            guard let tag = variants[index].facts.entityTag?.bytes,
                tags.count + tag.count + 2 <= ValidationPlan.tagLimit
            else { continue }
            if !tags.isEmpty { tags += [0x2C, 0x20] }
            tags += tag
            offered.append(index)
        }
        return tags
    }

    /// The date as the server wrote it, since some compare nothing but the text; nil where it is none.
    private static func lastModified(_ variant: StoredVariant) -> ArraySlice<UInt8>? {
        guard variant.facts.dates.lastModified != nil else { return nil }
        return variant.head.fields.rawValues(of: "Last-Modified").first
    }

    private static func isValidated(_ variant: StoredVariant, _ request: CacheRequest) -> Bool {
        (200..<300).contains(variant.head.status) && variant.head.key == request.key
            && CodingRule.accepts(variant, request)
    }
}

/// Whether a request takes a stored response in the codings that it is stored in (RFC 9110 §12.5.3).
///
/// What is stored in a coding answers nobody who did not ask for it, whatever `Vary` says: servers that leave it out are
/// common, and nobody would undo the coding. Without an `Accept-Encoding` field none is taken, though the RFC would allow
/// any.
enum CodingRule {
    /// Those that a request asks for or does not (IANA's registry of codings); whoever sends another one has reasons of his own.
    private static let negotiated: Set<String> = ["gzip", "deflate", "compress", "br", "zstd"]

    /// The codings that a response is in, in lower case and by their own names: of those that are negotiated.
    static func codings(of fields: FieldBlock) -> [String] {
        fields.rawValues(of: "Content-Encoding").flatMap { value in
            ElementList(value).map { name($0) }.filter { negotiated.contains($0) }
        }
    }

    /// Whether a request takes a response; what is in no coding is taken by all.
    static func accepts(_ variant: StoredVariant, _ request: CacheRequest) -> Bool {
        let codings = variant.facts.codings
        if codings.isEmpty { return true }
        let wanted = request.fields.rawValues(of: "Accept-Encoding")
        return codings.allSatisfy { isAccepted($0, by: wanted) }
    }

    /// Whether lines of `Accept-Encoding` name a coding, or else `*`, with a weight above 0.
    private static func isAccepted(_ coding: String, by lines: [ArraySlice<UInt8>]) -> Bool {
        var isNamed: Bool?
        var isAnyAccepted = false
        for line in lines {
            for member in ElementList(line) {
                let end = member.firstIndex(of: UInt8(ascii: ";")) ?? member.endIndex
                let found = name(ByteClass.trimmed(member[..<end]))
                let isWanted = !isZero(member[end...])
                if found == coding { isNamed = (isNamed ?? false) || isWanted }
                if found == "*" { isAnyAccepted = isAnyAccepted || isWanted }
            }
        }
        return isNamed ?? isAnyAccepted
    }

    /// Whether parameters are a weight of 0; one that is none counts as 1.
    private static func isZero(_ parameters: ArraySlice<UInt8>) -> Bool {
        let bytes = parameters.filter { !ByteClass.isBlank($0) }.map(ByteClass.lowercased)
        guard bytes.starts(with: ";q=0".utf8) else { return false }
        let rest = bytes.dropFirst(4)
        return rest.isEmpty
            || rest.first == UInt8(ascii: ".") && rest.dropFirst().allSatisfy { $0 == UInt8(ascii: "0") }
    }

    /// A coding's name in lower case, without the `x-` of old (RFC 9110 §8.4.1).
    private static func name(_ bytes: ArraySlice<UInt8>) -> String {
        switch String(decoding: bytes.map(ByteClass.lowercased), as: UTF8.self) {
        case "x-gzip": "gzip"
        case "x-compress": "compress"
        case let name: name
        }
    }
}
