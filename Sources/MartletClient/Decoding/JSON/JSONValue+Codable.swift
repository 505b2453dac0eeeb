public import FoundationEssentials

/// Other coders' numbers are as exact as these coders; ``JSONValue/init(parsing:depthLimit:)-([UInt8],_)`` and
/// ``JSONValue/bytes(_:)`` keep all digits, and the order of members besides.
extension JSONValue: Codable {
    /// A name of a member.
    private struct Name: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) {
            self.stringValue = stringValue
        }

        init?(intValue: Int) {
            nil
        }
    }

    /// Takes whatever the decoder has.
    public init(from decoder: any Decoder) throws {
        if let container = try? decoder.container(keyedBy: Name.self) {
            let names = container.allKeys.sorted { $0.stringValue < $1.stringValue }
            self = .object(
                JSONObject(
                    try names.map {
                        JSONObject.Member($0.stringValue, try container.decode(JSONValue.self, forKey: $0))
                    }))
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

    /// Encodes it.
    /// - Throws: `EncodingError.invalidValue` for a number beyond the largest `Double`.
    public func encode(to encoder: any Encoder) throws {
        switch self {
        case .null:
            var container = encoder.singleValueContainer()
            try container.encodeNil()
        case .bool(let value):
            var container = encoder.singleValueContainer()
            try container.encode(value)
        case .number(let number):
            var container = encoder.singleValueContainer()
            if let value = number.int {
                try container.encode(value)
            } else if let value = number.uint64 {
                try container.encode(value)
            } else if let value = number.double {
                try container.encode(value)
            } else {
                throw EncodingError.invalidValue(
                    number,
                    EncodingError.Context(
                        codingPath: encoder.codingPath, debugDescription: "the number is too large"))
            }
        case .string(let value):
            var container = encoder.singleValueContainer()
            try container.encode(value)
        case .array(let elements):
            var container = encoder.unkeyedContainer()
            for element in elements { try container.encode(element) }
        case .object(let members):
            var container = encoder.container(keyedBy: Name.self)
            for member in members {
                try container.encode(member.value, forKey: Name(stringValue: member.name))
            }
        }
    }

    /// A value of a type of your own.
    /// - Throws: What the decoder throws.
    public func decode<Value: Decodable>(
        _ type: Value.Type = Value.self, using decoder: JSONDecoder = JSONDecoder()
    ) throws -> Value {
        try decoder.decode(type, from: Data(bytes()))
    }
}
