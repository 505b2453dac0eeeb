/// An entity tag: a name for one state of a representation (RFC 9110 §8.8.3).
package struct EntityTag: Hashable, Sendable {
    /// Whether it was marked `W/`: the representation it names may differ in bytes, though not in meaning.
    package let isWeak: Bool
    /// What stands between its quotes, each byte as the character of the same number.
    package let opaque: String

    /// Reads a tag; nil for anything else, such as a tag without quotes.
    package init?(_ bytes: ArraySlice<UInt8>) {
        var rest = bytes
        isWeak = rest.starts(with: [0x57, 0x2F])
        if isWeak { rest = rest.dropFirst(2) }
        guard rest.count >= 2, rest.first == 0x22, rest.last == 0x22 else { return nil }
        let content = rest.dropFirst().dropLast()
        guard content.allSatisfy({ $0 > 0x20 && $0 != 0x22 && $0 != 0x7F }) else { return nil }
        opaque = ByteText.latin1(content)
    }

    /// The tag of a message: nil without one, with a malformed one, and with several that differ.
    package init?(of fields: FieldBlock) {
        let values = fields.rawValues(of: "ETag")
        guard let first = values.first, values.dropFirst().allSatisfy({ $0 == first }) else { return nil }
        self.init(first)
    }

    /// Appends its bytes, as they stand in a field.
    package func write(to bytes: inout [UInt8]) {
        if isWeak { bytes += [0x57, 0x2F] }
        bytes.append(0x22)
        bytes += ByteText.latin1Bytes(opaque) ?? []
        bytes.append(0x22)
    }

    /// The bytes of it, as they stand in a field.
    package var bytes: [UInt8] {
        var bytes: [UInt8] = []
        write(to: &bytes)
        return bytes
    }

    /// Whether both are strong and the same (RFC 9110 §8.8.3.2).
    package func matchesStrongly(_ other: EntityTag) -> Bool {
        !isWeak && !other.isWeak && opaque == other.opaque
    }

    /// Whether both are the same but for being weak (RFC 9110 §8.8.3.2).
    package func matchesWeakly(_ other: EntityTag) -> Bool { opaque == other.opaque }
}
