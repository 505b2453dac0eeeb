import Martlet
import MartletWire

/// JSON on one line, for programs that read it and for people whose terminal shows it.
enum JSONLine {
    /// The text of a value. What could command a terminal is escaped: such characters stand in strings alone.
    static func text(_ value: JSONValue) -> String {
        let text = value.text()
        guard !text.unicodeScalars.allSatisfy(TerminalText.isHarmless) else { return text }
        var escaped = ""
        for scalar in text.unicodeScalars {
            if TerminalText.isHarmless(scalar) {
                escaped.unicodeScalars.append(scalar)
            } else {
                for unit in String(scalar).utf16 {
                    escaped += "\\u" + String(0x10000 + Int(unit), radix: 16).dropFirst()
                }
            }
        }
        return escaped
    }
}

extension JSONValue {
    /// An object with members of different names, in this order.
    static func members(_ members: [(String, JSONValue)]) -> JSONValue {
        .object(JSONObject(members.map { JSONObject.Member($0.0, $0.1) }))
    }

    /// A string, or nothing but null.
    static func optional(_ text: String?) -> JSONValue { text.map { .string($0) } ?? .null }

    /// A whole number.
    static func number(_ number: some FixedWidthInteger) -> JSONValue { JSONValue(number) }

    /// A number as it is written; null for a text that is none.
    static func number(_ text: String) -> JSONValue { JSONNumber(text: text).map { .number($0) } ?? .null }

    /// Bytes as a string: each is the character of its number.
    static func latin1(_ bytes: [UInt8]) -> JSONValue { .string(ByteText.latin1(bytes[...])) }
}
