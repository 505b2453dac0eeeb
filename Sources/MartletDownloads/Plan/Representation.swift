package import MartletWire

/// Which state of a file bytes belong to: those of two states are never mixed.
package struct Representation: Hashable, Sendable {
    /// Its entity tag; nil where the server gave none.
    package var entityTag: EntityTag?
    /// `Last-Modified` as it came; nil where the server gave none that can be read.
    package var lastModified: String?
    /// Whether that date is so much older than the answer that the file cannot have changed within its second: by 60 s or
    /// more (RFC 9110 §8.8.2.2).
    package var isLastModifiedStrong: Bool
    /// The content codings that its bytes are in; nil for none.
    package var coding: String?

    /// A state that is known by what is given.
    package init(
        entityTag: EntityTag? = nil, lastModified: String? = nil, isLastModifiedStrong: Bool = false,
        coding: String? = nil
    ) {
        self.entityTag = entityTag
        self.lastModified = lastModified
        self.isLastModifiedStrong = isLastModifiedStrong
        self.coding = coding
    }

    /// What a response says of its bytes.
    package init(_ fields: FieldBlock) {
        entityTag = EntityTag(of: fields)
        let dates = fields.values(of: "Last-Modified")
        if let first = dates.first, dates.allSatisfy({ $0 == first }), let modified = HTTPDate(first) {
            lastModified = first
            let date = fields.firstValue(of: "Date").flatMap { HTTPDate($0) }
            isLastModifiedStrong =
                date.map { $0.secondsSinceEpoch - 60 >= modified.secondsSinceEpoch } ?? false
        } else {
            isLastModifiedStrong = false
        }
        let codings = fields.values(of: "Content-Encoding").joined(separator: ",").lowercased()
        let isCoded = codings.split(separator: ",").contains { coding in
            let coding = coding.filter { $0 != " " && $0 != "\t" }
            return !coding.isEmpty && coding != "identity"
        }
        coding = isCoded ? codings : nil
    }

    /// What `If-Range` says to get a part of this state only: a strong entity tag, else a strong date; nil where there is
    /// neither. A weak tag is never it (RFC 9110 §13.1.5).
    package var condition: String? {
        if let entityTag, !entityTag.isWeak { return ByteText.latin1(entityTag.bytes[...]) }
        return isLastModifiedStrong ? lastModified : nil
    }

    /// Whether there is such a condition.
    package var hasCondition: Bool {
        if let entityTag, !entityTag.isWeak { return true }
        return isLastModifiedStrong && lastModified != nil
    }

    /// Whether an answer is for certain of another state.
    package func differs(from other: Representation) -> Bool {
        if coding != other.coding { return true }
        if let mine = entityTag, let its = other.entityTag {
            if mine.isWeak && its.isWeak { return !mine.matchesWeakly(its) }
            return mine != its
        }
        if let mine = lastModified, let its = other.lastModified { return mine != its }
        return false
    }

    /// Whether both have a validator of one kind, and these differ or the codings do.
    package func contradictsValidator(of other: Representation) -> Bool {
        let isComparable =
            entityTag != nil && other.entityTag != nil || lastModified != nil && other.lastModified != nil
        return isComparable && differs(from: other)
    }

    /// Whether an answer is for certain of the same state, byte for byte.
    package func isProven(by other: Representation) -> Bool {
        guard coding == other.coding else { return false }
        if let mine = entityTag, let its = other.entityTag { return mine.matchesStrongly(its) }
        guard entityTag == nil, other.entityTag == nil else { return false }
        return isLastModifiedStrong && lastModified == other.lastModified
    }
}
