/// A cursor over a field value: tokens, quoted strings and blanks (RFC 9110 §5.6).
struct FieldReader {
    private let bytes: [UInt8]
    private var position = 0

    /// A reader at the beginning of a value.
    init(_ text: String) {
        bytes = Array(text.utf8)
    }

    /// The byte at the cursor; nil at the end.
    var current: UInt8? { position < bytes.endIndex ? bytes[position] : nil }

    /// Whether everything was read.
    var isAtEnd: Bool { position == bytes.endIndex }

    /// Moves over spaces and tabs.
    mutating func skipBlanks() {
        while let byte = current, byte == UInt8(ascii: " ") || byte == 0x09 { position += 1 }
    }

    /// Moves over a byte if it is the one at the cursor.
    mutating func take(_ byte: UInt8) -> Bool {
        guard current == byte else { return false }
        position += 1
        return true
    }

    /// A token of at least one character; nil, and no movement, when there is none.
    mutating func token() -> String? {
        let start = position
        while let byte = current, FieldReader.isTokenByte(byte) { position += 1 }
        return position == start ? nil : String(decoding: bytes[start..<position], as: UTF8.self)
    }

    /// The bytes up to a blank, a semicolon or a quote: a token, or what servers send in place of one. `nil` when there are
    /// none.
    mutating func word() -> String? {
        let start = position
        while let byte = current, byte > 0x20, byte != 0x7F, byte != UInt8(ascii: ";"),
            byte != UInt8(ascii: "\"")
        {
            position += 1
        }
        return position == start ? nil : String(decoding: bytes[start..<position], as: UTF8.self)
    }

    /// What a quoted string stands for; nil when it is not closed, the cursor then at the end.
    mutating func quotedString() -> String? {
        guard take(UInt8(ascii: "\"")) else { return nil }
        var value: [UInt8] = []
        while let byte = current {
            position += 1
            if byte == UInt8(ascii: "\"") { return String(decoding: value, as: UTF8.self) }
            if byte == UInt8(ascii: "\\") {
                guard let escaped = current else { return nil }
                position += 1
                value.append(escaped)
            } else {
                value.append(byte)
            }
        }
        return nil
    }

    /// Moves to the next semicolon outside quotes, or to the end.
    mutating func skipToSemicolon() {
        while let byte = current, byte != UInt8(ascii: ";") {
            if byte == UInt8(ascii: "\"") { _ = quotedString() } else { position += 1 }
        }
    }

    /// The characters of a token (RFC 9110 §5.6.2).
    static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "A")...UInt8(ascii: "Z"):
            true
        default:
            "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
}
