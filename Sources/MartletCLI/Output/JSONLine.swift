import Martlet

/// A value with a form in JSON.
protocol JSONRepresentable { var json: JSONValue { get } }

extension JSONRepresentable {
    /// The value as JSON on one line, for programs that read it and for people whose terminal shows it: the characters that
    /// could control a terminal, which are in strings only, are escaped.
    var jsonLine: String {
        let text = json.text()
        guard !text.unicodeScalars.allSatisfy(TerminalText.isHarmless) else { return text }
        return text.unicodeScalars.map { scalar in
            if TerminalText.isHarmless(scalar) { return String(scalar) }
            return String(scalar).utf16.map { "\\u" + String(0x10000 + Int($0), radix: 16).dropFirst() }
                .joined()
        }.joined()
    }
}

extension JSONValue: JSONRepresentable {
    var json: JSONValue { self }

    /// Bytes as a string: each is the character of its number.
    static func latin1(_ bytes: [UInt8]) -> JSONValue { .string(ByteText.latin1(bytes[...])) }

    /// A number as it is written; null for other texts.
    static func number(_ text: String) -> JSONValue { JSONNumber(text: text).map { .number($0) } ?? .null }
}

extension String: JSONRepresentable { var json: JSONValue { .string(self) } }
extension Bool: JSONRepresentable { var json: JSONValue { .bool(self) } }
extension JSONRepresentable where Self: FixedWidthInteger { var json: JSONValue { JSONValue(self) } }
extension Int: JSONRepresentable {}
extension Int32: JSONRepresentable {}
extension Int64: JSONRepresentable {}
extension UInt32: JSONRepresentable {}
extension UInt64: JSONRepresentable {}

extension Optional: JSONRepresentable where Wrapped: JSONRepresentable {
    var json: JSONValue { self?.json ?? .null }
}

extension Array: JSONRepresentable where Element: JSONRepresentable {
    var json: JSONValue { .array(map(\.json)) }
}

/// Seconds with six decimals.
extension Duration: JSONRepresentable { var json: JSONValue { .number(WriteOutValue.seconds(self).text) } }

/// The members of a JSON object, in order.
struct JSONMembers: ExpressibleByDictionaryLiteral, JSONRepresentable {
    private var members: [(String, JSONValue)]

    init(dictionaryLiteral members: (String, any JSONRepresentable)...) {
        self.init(members.map { ($0, $1.json) })
    }

    init(_ members: [(String, JSONValue)]) { self.members = members }

    static func + (left: JSONMembers, right: JSONMembers) -> JSONMembers {
        JSONMembers(left.members + right.members)
    }

    var json: JSONValue { .object(JSONObject(members)) }
}
