/// What to undo, and in which order, given `Content-Encoding` (RFC 9110 §8.4).
package struct ContentCodingPlan: Hashable, Sendable {
    /// What becomes of a body with a coding Martlet does not know.
    package enum UnknownCoding: Hashable, Sendable {
        /// The body is handed over as it came, all its codings in place, and `Content-Encoding` stays true.
        case passedThrough
        /// The body is refused.
        case refused
    }

    /// The codings in the order they are undone: the last one listed first. Empty when there is nothing to
    /// do.
    package let codings: [ContentCoding]

    /// Whether codings were named that stay in place because one of them is unknown.
    package let isPassedThrough: Bool

    /// Plans for the values of all `Content-Encoding` fields, in the order they came.
    ///
    /// `identity` and empty list members do nothing. Takes time linear in the values.
    ///
    /// - Throws: ``ContentDecodingError/tooManyCodings(limit:)``, ``ContentDecodingError/unknownCoding(_:)``.
    package init(
        fieldValues: [String], unknown: UnknownCoding = .passedThrough, limits: DecompressionLimits = .init()
    ) throws(ContentDecodingError) {
        var codings: [ContentCoding] = []
        var firstUnknown: String?
        var count = 0
        for value in fieldValues {
            for member in value.utf8.split(separator: UInt8(ascii: ",")) {
                let name = member.drop(while: ContentCodingPlan.isBlank)
                guard let end = name.lastIndex(where: { !ContentCodingPlan.isBlank($0) }) else { continue }
                let trimmed = Substring(name[...end])
                count += 1
                guard count <= limits.maximumCodings else {
                    throw .tooManyCodings(limit: limits.maximumCodings)
                }
                // No coding has a name of that length: it is not worth a copy.
                let short = trimmed.utf8.count <= 40 ? String(trimmed) : nil
                if let coding = short.flatMap({ ContentCoding(name: $0) }) {
                    codings.append(coding)
                } else if short?.lowercased() != "identity" {
                    firstUnknown = firstUnknown ?? String(trimmed.prefix(40))
                }
            }
        }
        if let firstUnknown, unknown == .refused { throw .unknownCoding(firstUnknown) }
        self.codings = firstUnknown == nil ? codings.reversed() : []
        isPassedThrough = firstUnknown != nil
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
}
