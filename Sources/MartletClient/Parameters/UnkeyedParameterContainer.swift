/// Writes the values of a list.
struct UnkeyedParameterContainer: UnkeyedEncodingContainer {
    let encoder: ParameterEncoder

    var codingPath: [any CodingKey] { encoder.codingPath }

    var count: Int { encoder.node.count }

    mutating func encodeNil() throws {
        encoder.node.append().set(.null)
    }

    // One function for all the types that the protocol lists.
    mutating func encode<Value: Encodable>(_ value: Value) throws {
        try next().encode(value)
    }

    mutating func nestedContainer<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        next().container(keyedBy: type)
    }

    mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
        next().unkeyedContainer()
    }

    mutating func superEncoder() -> any Encoder {
        next()
    }

    private func next() -> ParameterEncoder {
        let key = ParameterIndex(encoder.node.count)
        return encoder.inner(encoder.node.append(), key)
    }
}
