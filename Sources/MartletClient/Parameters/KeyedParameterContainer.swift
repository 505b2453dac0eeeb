/// Writes the values of a record.
struct KeyedParameterContainer<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let encoder: ParameterEncoder

    var codingPath: [any CodingKey] { encoder.codingPath }

    mutating func encodeNil(forKey key: Key) throws {
        encoder.node.replace(key.stringValue).set(.null)
    }

    // One function for all the types that the protocol lists.
    mutating func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws {
        try encoder.inner(encoder.node.replace(key.stringValue), key).encode(value)
    }

    mutating func nestedContainer<Inner: CodingKey>(
        keyedBy type: Inner.Type, forKey key: Key
    ) -> KeyedEncodingContainer<Inner> {
        // What a nested container holds already is kept: a class and its subclass may write to the same one.
        encoder.inner(encoder.node.child(key.stringValue), key).container(keyedBy: type)
    }

    mutating func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        encoder.inner(encoder.node.child(key.stringValue), key).unkeyedContainer()
    }

    mutating func superEncoder() -> any Encoder {
        superEncoder(named: "super", ParameterName("super"))
    }

    mutating func superEncoder(forKey key: Key) -> any Encoder {
        superEncoder(named: key.stringValue, key)
    }

    private func superEncoder(named name: String, _ key: any CodingKey) -> any Encoder {
        encoder.inner(encoder.node.replace(name), key)
    }
}

/// A name as a coding key.
private struct ParameterName: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(_ name: String) {
        stringValue = name
    }

    init?(stringValue: String) {
        self.stringValue = stringValue
    }

    init?(intValue: Int) {
        return nil
    }
}
