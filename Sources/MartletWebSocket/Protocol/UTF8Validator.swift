/// A validator of UTF-8 in pieces (RFC 3629 §4), which finds an error at the first byte that cannot be part of a
/// character.
package struct UTF8Validator: Hashable, Sendable {
    /// The number of bytes that the current character lacks.
    private var missing = 0
    /// The range of the next byte of the current character: it excludes overlong forms, surrogates, and numbers above
    /// 10FFFF.
    private var allowed: ClosedRange<UInt8> = 0x80...0xBF

    /// Creates a validator for the beginning of a text.
    package init() {}

    /// Whether the text may end here.
    package var isComplete: Bool { missing == 0 }

    /// Validates the next bytes.
    /// - Returns: Whether the text is valid so far; after `false` the state is undefined.
    package mutating func accepts(_ bytes: Span<UInt8>) -> Bool {
        for index in bytes.indices {
            let byte = bytes[index]
            if missing > 0 {
                guard allowed.contains(byte) else { return false }
                (missing, allowed) = (missing - 1, 0x80...0xBF)
            } else if byte >= 0x80 {
                switch byte {
                case 0xC2...0xDF: (missing, allowed) = (1, 0x80...0xBF)
                case 0xE0: (missing, allowed) = (2, 0xA0...0xBF)
                case 0xED: (missing, allowed) = (2, 0x80...0x9F)
                case 0xE1...0xEF: (missing, allowed) = (2, 0x80...0xBF)
                case 0xF0: (missing, allowed) = (3, 0x90...0xBF)
                case 0xF1...0xF3: (missing, allowed) = (3, 0x80...0xBF)
                case 0xF4: (missing, allowed) = (3, 0x80...0x8F)
                default: return false
                }
            }
        }
        return true
    }
}
