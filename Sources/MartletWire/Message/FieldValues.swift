/// The members of a comma list (RFC 9110 §5.6.1), one after the other, in linear time and without allocating.
///
/// Commas inside quoted strings do not separate; a backslash inside one quotes the next byte. Members are trimmed of SP and
/// HTAB; empty members are skipped. An unterminated quoted string reaches to the end.
package struct ElementList: Sequence, IteratorProtocol {
    private let bytes: ArraySlice<UInt8>
    private var position: Int

    /// Creates the list of one field value.
    package init(_ bytes: ArraySlice<UInt8>) {
        self.bytes = bytes
        position = bytes.startIndex
    }

    /// The next member, or `nil` at the end.
    package mutating func next() -> ArraySlice<UInt8>? {
        while position < bytes.endIndex {
            let start = position
            let end = endOfElement()
            position = end < bytes.endIndex ? end + 1 : end
            let element = ByteClass.trimmed(bytes[start..<end])
            if !element.isEmpty { return element }
        }
        return nil
    }

    /// The end of the element at the position: its comma, or the end of all.
    private func endOfElement() -> Int {
        var index = position
        var isQuoted = false
        while index < bytes.endIndex {
            switch bytes[index] {
            case UInt8(ascii: ","): if !isQuoted { return index }
            case UInt8(ascii: "\""): isQuoted.toggle()
            case UInt8(ascii: "\\"): if isQuoted { index += 1 }
            default: break
            }
            index += 1
        }
        return bytes.endIndex
    }
}

/// A number written as plain ASCII digits: 1*DIGIT in HTTP's grammar.
package enum DecimalNumber: Equatable, Sendable {
    /// The digits' value, at most 2^63 − 1, so that it also fits signed offsets.
    case value(UInt64)
    /// Digits whose value is larger.
    case overflow
    /// Not one or more digits: a sign, a blank, anything else, or nothing.
    case invalid

    /// Parses all of the bytes; leading zeros are allowed.
    package init(_ bytes: ArraySlice<UInt8>) {
        self = .invalid
        if bytes.isEmpty { return }
        var value: UInt64 = 0
        var isOverflown = false
        for byte in bytes {
            guard ByteClass.isDigit(byte) else { return }
            // 2^63 − 1 times ten does not fit, so the overflow flags of both steps matter.
            let product = value.multipliedReportingOverflow(by: 10)
            let sum = product.partialValue.addingReportingOverflow(UInt64(byte &- 0x30))
            value = sum.partialValue
            isOverflown = isOverflown || product.overflow || sum.overflow || value > UInt64(Int64.max)
        }
        self = isOverflown ? .overflow : .value(value)
    }

    /// The value; `nil` if it is too large or not a number.
    package var exactValue: UInt64? { if case .value(let value) = self { value } else { nil } }
}

/// An entity tag: the name of one state of a representation (RFC 9110 §8.8.3).
package struct EntityTag: Hashable, Sendable {
    /// Whether it was marked `W/`: representations with the tag may differ in bytes, though not in meaning.
    package let isWeak: Bool
    /// The bytes between its quotes, each as the character of the same number.
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

    /// The tag of a message; `nil` without one, with a malformed one, and with several that differ.
    package init?(of fields: FieldBlock) {
        let values = fields.rawValues(of: "ETag")
        guard let first = values.first, values.dropFirst().allSatisfy({ $0 == first }) else { return nil }
        self.init(first)
    }

    /// Its bytes in a field.
    package var bytes: [UInt8] {
        let prefix: [UInt8] = isWeak ? [0x57, 0x2F, 0x22] : [0x22]
        return prefix + (ByteText.latin1Bytes(opaque) ?? []) + [0x22]
    }

    /// Whether both are strong and equal (RFC 9110 §8.8.3.2).
    package func matchesStrongly(_ other: EntityTag) -> Bool {
        !isWeak && !other.isWeak && opaque == other.opaque
    }

    /// Whether both are equal except for being weak (RFC 9110 §8.8.3.2).
    package func matchesWeakly(_ other: EntityTag) -> Bool { opaque == other.opaque }
}
