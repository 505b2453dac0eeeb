/// The classes of characters of XML 1.0, fifth edition (§2.2, §2.3), by code point.
enum XMLCharacter {
    /// Whether it may stand in a document at all.
    static func isLegal(_ code: UInt32) -> Bool {
        if code < 0x20 { return code == 0x09 || code == 0x0A || code == 0x0D }
        return code <= 0xD7FF || (0xE000...0xFFFD).contains(code) || (0x10000...0x10FFFF).contains(code)
    }

    /// White space: space, tab, CR, LF.
    static func isSpace(_ code: UInt32) -> Bool {
        code == 0x20 || code == 0x0A || code == 0x09 || code == 0x0D
    }

    /// Whether a name may begin with it; the colon is among them.
    static func isNameStart(_ code: UInt32) -> Bool {
        if code < 0x80 {
            return (0x61...0x7A).contains(code) || (0x41...0x5A).contains(code) || code == 0x5F
                || code == 0x3A
        }
        switch code {
        case 0xC0...0xD6, 0xD8...0xF6, 0xF8...0x2FF, 0x370...0x37D, 0x37F...0x1FFF, 0x200C...0x200D,
            0x2070...0x218F, 0x2C00...0x2FEF, 0x3001...0xD7FF, 0xF900...0xFDCF, 0xFDF0...0xFFFD,
            0x10000...0xEFFFF:
            return true
        default:
            return false
        }
    }

    /// Whether it may stand within a name.
    static func isName(_ code: UInt32) -> Bool {
        if isNameStart(code) { return true }
        if code < 0x80 { return (0x30...0x39).contains(code) || code == 0x2D || code == 0x2E }
        return code == 0xB7 || (0x300...0x36F).contains(code) || (0x203F...0x2040).contains(code)
    }

    /// Whether it may stand in a public identifier (§2.3, PubidChar).
    static func isPublicIdentifier(_ code: UInt32) -> Bool {
        if code == 0x20 || code == 0x0A || code == 0x0D { return true }
        if (0x30...0x39).contains(code) || (0x41...0x5A).contains(code) || (0x61...0x7A).contains(code) {
            return true
        }
        return code < 0x80 && "-'()+,./:=?;!*#@$_%".utf8.contains(UInt8(code))
    }

    /// Whether a text is a name without a colon (Namespaces in XML 1.0 §3, NCName).
    static func isPlainName(_ text: some StringProtocol) -> Bool {
        guard let first = text.unicodeScalars.first, isNameStart(first.value) else { return false }
        return text.unicodeScalars.allSatisfy { isName($0.value) && $0 != ":" }
    }

    /// Whether an eight-bit byte stands for itself in text, values, comments and instructions, and ends none of them.
    static func isPlain(_ byte: UInt8) -> Bool {
        guard byte >= 0x20, byte < 0x7F else { return false }
        switch byte {
        case 0x22, 0x26, 0x27, 0x2D, 0x3C, 0x3F, 0x5D: return false
        default: return true
        }
    }

    /// Appends a code point as UTF-8.
    static func append(_ code: UInt32, to bytes: inout [UInt8]) {
        if code < 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: code))
            return
        }
        func tail(_ shift: UInt32) -> UInt8 { UInt8(truncatingIfNeeded: code >> shift) & 0x3F | 0x80 }
        if code < 0x800 {
            bytes.append(0xC0 | UInt8(truncatingIfNeeded: code >> 6))
        } else if code < 0x10000 {
            bytes.append(0xE0 | UInt8(truncatingIfNeeded: code >> 12))
            bytes.append(tail(6))
        } else {
            bytes.append(0xF0 | UInt8(truncatingIfNeeded: code >> 18))
            bytes.append(tail(12))
            bytes.append(tail(6))
        }
        bytes.append(tail(0))
    }

    /// A code point for messages: the character, or its number where it is none to be shown.
    static func shown(_ code: UInt32) -> String {
        if (0x21...0x7E).contains(code), let scalar = Unicode.Scalar(code) {
            return "\u{201C}\(scalar)\u{201D}"
        }
        return "U+" + String(repeating: "0", count: max(0, 4 - String(code, radix: 16).count))
            + String(code, radix: 16, uppercase: true)
    }
}
