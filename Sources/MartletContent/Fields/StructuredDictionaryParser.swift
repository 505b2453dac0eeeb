import FoundationEssentials
import MartletWire

/// A strict parser of a dictionary of structured fields (RFC 9651 §4.2.2) that returns byte sequences. Members of other
/// types are only checked. The time and the memory are linear in the size of the field.
package struct StructuredDictionaryParser {
    private enum Value {
        case bytes([UInt8])
        case other
    }

    private let bytes: [UInt8]
    private var position = 0

    /// Creates a parser of the lines of a field.
    package init(_ lines: [ArraySlice<UInt8>]) { bytes = Array(lines.joined(separator: [UInt8(ascii: ",")])) }

    /// Parses the field. Of a repeated member the last one counts.
    /// - Parameter names: The names of the members to return; members of other types than byte sequences are left out.
    /// - Returns: `nil` after a syntax error.
    package mutating func byteSequences(named names: Set<String>) -> [String: [UInt8]]? {
        var found: [String: [UInt8]] = [:]
        skip { $0 == ByteClass.space }
        while position < bytes.count {
            guard let key = parseKey() else { return nil }
            guard let value = accept("=") ? parseValue() : .other, parameters() else { return nil }
            let name = String(decoding: key, as: UTF8.self)
            if names.contains(name) {
                if case .bytes(let bytes) = value { found[name] = bytes } else { found[name] = nil }
            }
            skip(ByteClass.isBlank)
            if position == bytes.count { return found }
            guard accept(",") else { return nil }
            skip(ByteClass.isBlank)
            // No member may follow a comma at the end.
            if position == bytes.count { return nil }
        }
        return found
    }

    // MARK: Parts

    private func peek() -> UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func accept(_ character: Unicode.Scalar) -> Bool {
        guard peek() == UInt8(ascii: character) else { return false }
        position += 1
        return true
    }

    private mutating func skip(_ belongs: (UInt8) -> Bool) {
        while let byte = peek(), belongs(byte) { position += 1 }
    }

    /// Skips the bytes of a class, and returns them.
    private mutating func take(_ belongs: (UInt8) -> Bool) -> ArraySlice<UInt8> {
        let start = position
        skip(belongs)
        return bytes[start..<position]
    }

    private static func isLowercase(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte) }

    private static func isLetter(_ byte: UInt8) -> Bool { isLowercase(byte | 0x20) }

    private mutating func parseKey() -> ArraySlice<UInt8>? {
        guard let first = peek(), Self.isLowercase(first) || first == UInt8(ascii: "*") else { return nil }
        return take { Self.isLowercase($0) || ByteClass.isDigit($0) || "_-.*".utf8.contains($0) }
    }

    private mutating func parameters() -> Bool {
        while accept(";") {
            skip { $0 == ByteClass.space }
            guard parseKey() != nil else { return false }
            if accept("="), bareItem() == nil { return false }
        }
        return true
    }

    /// Parses an item or an inner list (RFC 9651 §4.2.1.1), without its parameters; `nil` after a syntax error.
    private mutating func parseValue() -> Value? {
        guard accept("(") else { return bareItem() }
        while true {
            skip { $0 == ByteClass.space }
            if accept(")") { return .other }
            guard bareItem() != nil, parameters(), peek() == ByteClass.space || peek() == UInt8(ascii: ")") else {
                return nil
            }
        }
    }

    /// Parses an item (RFC 9651 §4.2.3.1); `nil` after a syntax error.
    private mutating func bareItem() -> Value? {
        guard let first = peek() else { return nil }
        let isValid: Bool
        switch first {
        case UInt8(ascii: ":"): return byteSequence().map { .bytes($0) }
        case UInt8(ascii: "\""): isValid = string()
        case UInt8(ascii: "?"):
            position += 1
            isValid = accept("0") || accept("1")
        case UInt8(ascii: "@"):
            position += 1
            isValid = number(allowsFraction: false)
        case UInt8(ascii: "%"): isValid = displayString()
        case _ where first == UInt8(ascii: "*") || Self.isLetter(first):
            skip { ByteClass.isToken($0) || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: "/") }
            isValid = true
        default: isValid = number(allowsFraction: true)
        }
        return isValid ? .other : nil
    }

    private mutating func number(allowsFraction: Bool) -> Bool {
        _ = accept("-")
        let digits = take(ByteClass.isDigit)
        guard allowsFraction, accept(".") else { return (1...15).contains(digits.count) }
        return (1...12).contains(digits.count) && (1...3).contains(take(ByteClass.isDigit).count)
    }

    private mutating func string() -> Bool {
        position += 1
        while let byte = peek() {
            position += 1
            switch byte {
            case UInt8(ascii: "\""): return true
            case UInt8(ascii: "\\"): guard accept("\"") || accept("\\") else { return false }
            case 0x20...0x7E: continue
            default: return false
            }
        }
        return false
    }

    private mutating func displayString() -> Bool {
        position += 1
        guard accept("\"") else { return false }
        var text: [UInt8] = []
        while let byte = peek() {
            position += 1
            switch byte {
            case UInt8(ascii: "\""): return String(validating: text, as: UTF8.self) != nil
            case UInt8(ascii: "%"):
                let digits = bytes[position...].prefix(2)
                // Capital letters are not allowed.
                guard digits.count == 2, digits.allSatisfy({ ByteClass.isDigit($0) || (0x61...0x66).contains($0) }),
                    let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
                else { return false }
                text.append(value)
                position += 2
            case 0x20...0x7E: text.append(byte)
            default: return false
            }
        }
        return false
    }

    /// Parses a byte sequence. Missing padding is accepted (RFC 9651 §4.2.7).
    private mutating func byteSequence() -> [UInt8]? {
        position += 1
        let text = take { $0 != UInt8(ascii: ":") }
        guard accept(":") else { return nil }
        let padding = text.reversed().prefix { $0 == UInt8(ascii: "=") }.count
        let digits = text.dropLast(padding)
        let isBase64 = digits.allSatisfy {
            Self.isLetter($0) || ByteClass.isDigit($0) || $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "/")
        }
        let missing = (4 - digits.count % 4) % 4
        guard isBase64, missing < 3, padding == 0 || padding == missing else { return nil }
        let padded = Array(digits) + [UInt8](repeating: UInt8(ascii: "="), count: missing)
        return Data(base64Encoded: Data(padded)).map { Array($0) }
    }
}
