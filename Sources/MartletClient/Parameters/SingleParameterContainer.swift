/// Writes a value that is no more than another one.
struct SingleParameterContainer: SingleValueEncodingContainer {
    let encoder: ParameterEncoder

    var codingPath: [any CodingKey] { encoder.codingPath }

    mutating func encodeNil() throws {
        encoder.node.set(.null)
    }

    // One function for all the types that the protocol lists.
    mutating func encode<Value: Encodable>(_ value: Value) throws {
        try encoder.encode(value)
    }
}
