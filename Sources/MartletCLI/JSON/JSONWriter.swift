/// Writes JSON on one line.
enum JSONWriter {
    /// The text of a value.
    static func text(_ value: JSONValue) -> String {
        String(decoding: bytes(value), as: UTF8.self)
    }

    /// The text of a value, in UTF-8.
    static func bytes(_ value: JSONValue) -> [UInt8] {
        var output: [UInt8] = []
        append(value, &output)
        return output
    }

    private static func append(_ value: JSONValue, _ output: inout [UInt8]) {
        switch value {
        case .null: output += "null".utf8
        case .bool(let value): output += value ? "true".utf8 : "false".utf8
        case .number(let text): output += text.utf8
        case .string(let text): append(text, &output)
        case .array(let values):
            output.append(UInt8(ascii: "["))
            for (index, value) in values.enumerated() {
                if index > 0 { output.append(UInt8(ascii: ",")) }
                append(value, &output)
            }
            output.append(UInt8(ascii: "]"))
        case .object(let members):
            output.append(UInt8(ascii: "{"))
            for (index, (name, value)) in members.enumerated() {
                if index > 0 { output.append(UInt8(ascii: ",")) }
                append(name, &output)
                output.append(UInt8(ascii: ":"))
                append(value, &output)
            }
            output.append(UInt8(ascii: "}"))
        case .latin1(let bytes): append(latin1: bytes, &output)
        }
    }

    /// A text. What could command a terminal is escaped, as the control characters have to be.
    private static func append(_ text: String, _ output: inout [UInt8]) {
        output.append(UInt8(ascii: "\""))
        for scalar in text.unicodeScalars {
            if let escape = UInt8(exactly: scalar.value).flatMap(escape) {
                output += escape.utf8
            } else if TerminalText.isHarmless(scalar) {
                output += UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter
            } else {
                for unit in UTF16.encode(scalar) ?? UTF16.encodedReplacementCharacter {
                    output += "\\u".utf8
                    for shift in stride(from: UInt16(12), through: 0, by: -4) {
                        output.append(hexDigit(UInt8(truncatingIfNeeded: unit >> shift & 15)))
                    }
                }
            }
        }
        output.append(UInt8(ascii: "\""))
    }

    /// Bytes, each as the character of its number. Those that some readers take for line ends are escaped.
    private static func append(latin1 bytes: [UInt8], _ output: inout [UInt8]) {
        output.reserveCapacity(output.count + bytes.count + bytes.count / 8 + 2)
        output.append(UInt8(ascii: "\""))
        for byte in bytes {
            if let escape = escape(byte) {
                output += escape.utf8
            } else if byte < 0x80 {
                output.append(byte)
            } else if byte < 0xA0 {
                output += "\\u00".utf8
                output.append(hexDigit(byte >> 4))
                output.append(hexDigit(byte & 15))
            } else {
                output.append(0xC0 | byte >> 6)
                output.append(0x80 | byte & 0x3F)
            }
        }
        output.append(UInt8(ascii: "\""))
    }

    private static func escape(_ byte: UInt8) -> String? {
        switch byte {
        case 0x22: "\\\""
        case 0x5C: "\\\\"
        case 0x0A: "\\n"
        case 0x0D: "\\r"
        case 0x09: "\\t"
        case 0..<0x20, 0x7F:
            "\\u00" + String(decoding: [hexDigit(byte >> 4), hexDigit(byte & 15)], as: UTF8.self)
        default: nil
        }
    }

    private static func hexDigit(_ nibble: UInt8) -> UInt8 {
        nibble < 10 ? 48 + nibble : 87 + nibble
    }
}
