public import FoundationEssentials

/// A JSON value as a tree (RFC 8259).
///
/// ```swift
/// let page = try await session.get(url).json
/// for post in page["posts"]?.arrayValue ?? [] { show(post["title"]?.stringValue) }
/// let note: JSONValue = ["title": "Sea", "tags": ["blue", "wide"], "draft": nil]
/// ```
///
/// Numbers preserve all their digits, and objects the order of their members.
public enum JSONValue: Hashable, Sendable {
    /// The literal `null`.
    case null
    /// The literal `true` or `false`.
    case bool(Bool)
    /// A number with all its digits.
    case number(JSONNumber)
    /// A string of any length.
    case string(String)
    /// An array of values.
    case array([JSONValue])
    /// An object with its members in order.
    case object(JSONObject)

    /// The default limit on the depth of arrays and objects, as in Foundation's decoder. It rejects a text of many
    /// nested brackets, which is cheap to send and expensive to store.
    public static let defaultDepthLimit = 512

    /// Parses a text in UTF-8 in linear time, strictly by RFC 8259, except that a leading byte order mark is skipped.
    /// The last of several members with one name is used. Half of a surrogate pair is rejected.
    /// - Parameter depthLimit: The maximum depth of arrays and objects, clamped to 0–1,024.
    /// - Throws: A ``JSONError`` with the byte offset.
    public init(parsing bytes: [UInt8], depthLimit: Int = JSONValue.defaultDepthLimit) throws(JSONError) {
        var parser = JSONParser(bytes, depthLimit: depthLimit)
        self = try parser.parse()
    }

    /// Parses a text; otherwise like ``init(parsing:depthLimit:)-([UInt8],_)``.
    public init(parsing text: String, depthLimit: Int = JSONValue.defaultDepthLimit) throws(JSONError) {
        try self.init(parsing: Array(text.utf8), depthLimit: depthLimit)
    }

    /// Creates a number; `null` for infinities and NaN, which JSON does not support.
    public init(_ value: Double) { self = JSONNumber(value).map { .number($0) } ?? .null }

    /// Creates a number from an integer.
    public init(_ value: some FixedWidthInteger) { self = .number(JSONNumber(value)) }

    /// Whether the value is `null`.
    public var isNull: Bool { if case .null = self { true } else { false } }
    /// The Boolean; `nil` for other values.
    public var boolValue: Bool? { if case .bool(let value) = self { value } else { nil } }
    /// The number; `nil` for other values.
    public var numberValue: JSONNumber? { if case .number(let value) = self { value } else { nil } }
    /// The integer; `nil` for other values, and if it does not fit.
    public var intValue: Int? { numberValue?.int }
    /// The number as a `Double`; `nil` for other values, and beyond the largest finite one.
    public var doubleValue: Double? { numberValue?.double }
    /// The string; `nil` for other values.
    public var stringValue: String? { if case .string(let value) = self { value } else { nil } }
    /// The elements of an array; `nil` for other values.
    public var arrayValue: [JSONValue]? { if case .array(let value) = self { value } else { nil } }
    /// The members of an object; `nil` for other values.
    public var objectValue: JSONObject? { if case .object(let value) = self { value } else { nil } }

    /// The value of a member; `nil` for other values, and without a member of that name.
    public subscript(name: String) -> JSONValue? { objectValue?[name] }

    /// An element of an array; `nil` for other values, and outside of the array.
    public subscript(index: Int) -> JSONValue? {
        guard case .array(let elements) = self, elements.indices.contains(index) else { return nil }
        return elements[index]
    }

    /// Returns the value without members that are `null`, at any depth. Elements of arrays that are `null` remain.
    public func removingNulls() -> JSONValue {
        switch self {
        case .null, .bool, .number, .string: self
        case .array(let elements): .array(elements.map { $0.removingNulls() })
        case .object(let members):
            .object(JSONObject(members.filter { !$0.value.isNull }.map { ($0.name, $0.value.removingNulls()) }))
        }
    }
}

/// The coder determines the precision of numbers. To preserve all digits and the order of members, use
/// ``JSONValue/init(parsing:depthLimit:)-([UInt8],_)`` and ``JSONValue/bytes(_:)``.
extension JSONValue: Codable {
    /// Decodes any JSON value.
    public init(from decoder: any Decoder) throws {
        if let container = try? decoder.container(keyedBy: ParameterKey.self) {
            let names = container.allKeys.sorted { $0.stringValue < $1.stringValue }
            let members = try names.map { ($0.stringValue, try container.decode(JSONValue.self, forKey: $0)) }
            self = .object(JSONObject(members))
        } else if var container = try? decoder.unkeyedContainer() {
            var elements: [JSONValue] = []
            while !container.isAtEnd { elements.append(try container.decode(JSONValue.self)) }
            self = .array(elements)
        } else {
            self = try JSONValue.scalar(try decoder.singleValueContainer())
        }
    }

    private static func scalar(_ container: any SingleValueDecodingContainer) throws -> JSONValue {
        if container.decodeNil() { return .null }
        if let value = try? container.decode(Bool.self) { return .bool(value) }
        if let value = try? container.decode(Int64.self) { return JSONValue(value) }
        if let value = try? container.decode(UInt64.self) { return JSONValue(value) }
        if let value = try? container.decode(Double.self) { return JSONValue(value) }
        return .string(try container.decode(String.self))
    }

    /// Encodes the value and its members.
    /// - Throws: `EncodingError.invalidValue` for a number beyond the largest `Double`.
    public func encode(to encoder: any Encoder) throws {
        switch self {
        case .null:
            var container = encoder.singleValueContainer()
            try container.encodeNil()
        case .bool(let value): try value.encode(to: encoder)
        case .number(let number):
            if let value = number.int {
                try value.encode(to: encoder)
            } else if let value = number.uint64 {
                try value.encode(to: encoder)
            } else if let value = number.double {
                try value.encode(to: encoder)
            } else {
                throw EncodingError.invalidValue(
                    number, .init(codingPath: encoder.codingPath, debugDescription: "the number is too large"))
            }
        case .string(let value): try value.encode(to: encoder)
        case .array(let elements): try elements.encode(to: encoder)
        case .object(let members):
            var container = encoder.container(keyedBy: ParameterKey.self)
            for member in members { try container.encode(member.value, forKey: ParameterKey(stringValue: member.name)) }
        }
    }

    /// Decodes the JSON value as a value of another type.
    /// - Throws: The errors of the decoder.
    public func decode<Value: Decodable>(_ type: Value.Type = Value.self, using decoder: JSONDecoder = JSONDecoder())
        throws -> Value
    { try decoder.decode(type, from: Data(bytes())) }
}

extension JSONValue: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral, ExpressibleByStringInterpolation, ExpressibleByArrayLiteral,
    ExpressibleByDictionaryLiteral
{
    /// Creates the value `null`.
    public init(nilLiteral: ()) { self = .null }
    /// Creates a Boolean value.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    /// Creates a number from an integer literal.
    public init(integerLiteral value: Int) { self.init(value) }
    /// Creates a number; `null` for a literal beyond the largest `Double`.
    public init(floatLiteral value: Double) { self.init(value) }
    /// Creates a string value.
    public init(stringLiteral value: String) { self = .string(value) }
    /// Creates an array of values.
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    /// Creates an object; the last of several members with one name is used.
    public init(dictionaryLiteral members: (String, JSONValue)...) { self = .object(JSONObject(members)) }
}
