/// A value that can be written as JSON, in the output of the program and in the events of a session.
package protocol JSONRepresentable { var json: JSONValue { get } }

extension JSONValue: JSONRepresentable { package var json: JSONValue { self } }
extension String: JSONRepresentable { package var json: JSONValue { .string(self) } }
extension Bool: JSONRepresentable { package var json: JSONValue { .bool(self) } }
extension JSONRepresentable where Self: FixedWidthInteger { package var json: JSONValue { JSONValue(self) } }
extension Int: JSONRepresentable {}
extension Int32: JSONRepresentable {}
extension Int64: JSONRepresentable {}
extension UInt32: JSONRepresentable {}
extension UInt64: JSONRepresentable {}

extension Optional: JSONRepresentable where Wrapped: JSONRepresentable {
    package var json: JSONValue { self?.json ?? .null }
}

extension Array: JSONRepresentable where Element: JSONRepresentable {
    package var json: JSONValue { .array(map(\.json)) }
}

extension Duration: JSONRepresentable {
    /// The seconds with six decimals.
    package var secondsText: String {
        let microseconds = attoseconds / 1_000_000_000_000
        let (seconds, rest) = microseconds.magnitude.quotientAndRemainder(dividingBy: 1_000_000)
        return "\(microseconds < 0 ? "-" : "")\(seconds).\(String(1_000_000 + rest).dropFirst())"
    }

    package var json: JSONValue { JSONNumber(text: secondsText).map { .number($0) } ?? .null }
}

/// The members of a JSON object, in order.
package struct JSONMembers: ExpressibleByDictionaryLiteral, JSONRepresentable {
    private let members: [(String, JSONValue)]

    package init(dictionaryLiteral members: (String, any JSONRepresentable)...) {
        self.init(members.map { ($0, $1.json) })
    }

    package init(_ members: [(String, JSONValue)]) { self.members = members }

    package static func + (left: JSONMembers, right: JSONMembers) -> JSONMembers {
        JSONMembers(left.members + right.members)
    }

    package var json: JSONValue { .object(JSONObject(members)) }
}
