/// An entity tag: the name of one state of a representation (RFC 9110 §8.8.3).
package struct EntityTag: Hashable, Sendable {
    /// Whether the tag is weak (`W/`): representations with this tag may differ in bytes, but not in meaning.
    package let isWeak: Bool
    /// The bytes between the quotes, decoded as Latin-1.
    package let opaque: String

    /// Parses a tag; `nil` for anything else, such as a tag without quotes.
    package init?(_ bytes: ArraySlice<UInt8>) {
        var rest = bytes
        isWeak = rest.starts(with: [0x57, 0x2F])
        if isWeak { rest = rest.dropFirst(2) }
        guard rest.count >= 2, rest.first == 0x22, rest.last == 0x22 else { return nil }
        let content = rest.dropFirst().dropLast()
        guard content.allSatisfy({ $0 > 0x20 && $0 != 0x22 && $0 != 0x7F }) else { return nil }
        opaque = ByteText.latin1(content)
    }

    /// The `ETag` of a message; `nil` if it is missing or malformed, or if several differ.
    package init?(of fields: FieldBlock) {
        let values = fields.rawValues(of: "ETag")
        guard let first = values.first, values.dropFirst().allSatisfy({ $0 == first }) else { return nil }
        self.init(first)
    }

    package var bytes: [UInt8] {
        let prefix: [UInt8] = isWeak ? [0x57, 0x2F, 0x22] : [0x22]
        return prefix + (ByteText.latin1Bytes(opaque) ?? []) + [0x22]
    }

    /// Whether both are strong and equal (RFC 9110 §8.8.3.2).
    package func matchesStrongly(_ other: EntityTag) -> Bool { !isWeak && !other.isWeak && opaque == other.opaque }

    /// Whether both are equal, or differ only in ``isWeak`` (RFC 9110 §8.8.3.2).
    package func matchesWeakly(_ other: EntityTag) -> Bool { opaque == other.opaque }
}
