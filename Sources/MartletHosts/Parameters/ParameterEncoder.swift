import MartletCore
import FoundationEssentials

/// Turns any `Encodable` into a ``ParameterValue``.
struct ParameterEncoder: Encoder {
    /// What went wrong where nothing can be thrown: containers are made without a word.
    final class Faults { var first: ParameterError? }

    let node: ParameterNode
    let codingPath: [any CodingKey]
    /// How many values contain this one, those that only wrap it counted too.
    let depth: Int
    let faults: Faults

    var userInfo: [CodingUserInfoKey: Any] { [:] }

    /// The tree of a value.
    static func value(of value: some Encodable) throws -> ParameterValue {
        let encoder = ParameterEncoder(node: ParameterNode(), codingPath: [], depth: 0, faults: Faults())
        try encoder.encode(value)
        if let fault = encoder.faults.first { throw fault }
        return encoder.node.value
    }

    /// The encoder of a value inside.
    func inner(_ node: ParameterNode, _ key: any CodingKey) -> ParameterEncoder {
        ParameterEncoder(node: node, codingPath: codingPath + [key], depth: depth + 1, faults: faults)
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(KeyedParameterContainer<Key>(encoder: usable { $0.becomeRecord() }))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        UnkeyedParameterContainer(encoder: usable { $0.becomeList() })
    }

    func singleValueContainer() -> any SingleValueEncodingContainer {
        SingleParameterContainer(encoder: self)
    }

    /// This encoder if its node can become what a container needs; else one whose values are dropped, the fault noted.
    private func usable(_ become: (ParameterNode) -> Bool) -> ParameterEncoder {
        if become(node) { return self }
        if faults.first == nil {
            faults.first = ParameterError(.conflictingContainers, at: ParameterPath(codingPath))
        }
        let dropped = ParameterNode()
        _ = become(dropped)
        return ParameterEncoder(node: dropped, codingPath: codingPath, depth: depth, faults: faults)
    }

    // MARK: Values

    /// Encodes a value as this encoder's own.
    func encode(_ value: some Encodable) throws {
        if let fault = faults.first { throw fault }
        guard depth <= ParameterValue.depthLimit else {
            throw ParameterError(.tooDeep, at: ParameterPath(codingPath))
        }
        if let plain = try plain(value) { return node.set(plain) }
        if let set = value as? any EncodableSet {
            var values: Set<ParameterValue> = []
            for element in set.encodableElements {
                let encoder = inner(ParameterNode(), ParameterKey(values.count))
                try encoder.encode(element)
                values.insert(encoder.node.value)
            }
            return node.set(.set(values))
        }
        let wrapped = ParameterEncoder(node: node, codingPath: codingPath, depth: depth + 1, faults: faults)
        try value.encode(to: wrapped)
    }

    /// The value, where it is one of those that have a case of their own.
    private func plain(_ value: some Encodable) throws(ParameterError) -> ParameterValue? {
        switch value {
        case let value as ParameterValue: return value
        case let value as String: return .string(value)
        case let value as Bool: return .bool(value)
        case let value as Int: return .integer(value)
        case let value as Double: return try number(value)
        // By its digits: 0.1 as Float is not 0.1 as Double.
        case let value as Float: return try number(Double(value.description) ?? Double(value))
        case let value as Date:
            guard value.timeIntervalSince1970.isFinite else { throw fault(.dateOutOfRange) }
            return .date(value)
        case let value as Data: return .data(value)
        case let value as Decimal:
            guard !value.isNaN else { throw fault(.notFinite) }
            return .decimal(value)
        case let value as URL: return .string(value.absoluteString)
        case let value as any FixedWidthInteger: return try integer(value)
        default: return nil
        }
    }

    private func number(_ value: Double) throws(ParameterError) -> ParameterValue {
        guard value.isFinite else { throw fault(.notFinite) }
        return .number(value)
    }

    private func integer(_ value: some FixedWidthInteger) throws(ParameterError) -> ParameterValue {
        if let small = Int(exactly: value) { return .integer(small) }
        if let large = UInt64(exactly: value) { return .unsigned(large) }
        let digits = String(value)
        guard let decimal = Decimal(string: digits), decimal.description == digits else {
            throw fault(.numberOutOfRange)
        }
        return .decimal(decimal)
    }

    private func fault(_ code: ParameterError.Code) -> ParameterError {
        ParameterError(code, at: ParameterPath(codingPath))
    }
}

/// A set whose elements can be encoded.
private protocol EncodableSet { var encodableElements: [any Encodable] { get } }

extension Set: EncodableSet where Element: Encodable {
    fileprivate var encodableElements: [any Encodable] { Array(self) }
}

/// Writes the values of a record.
struct KeyedParameterContainer<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let encoder: ParameterEncoder

    var codingPath: [any CodingKey] { encoder.codingPath }

    mutating func encodeNil(forKey key: Key) throws { encoder.node.replace(key.stringValue).set(.null) }

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

    mutating func superEncoder() -> any Encoder { superEncoder(for: ParameterKey(stringValue: "super")) }

    mutating func superEncoder(forKey key: Key) -> any Encoder { superEncoder(for: key) }

    private func superEncoder(for key: any CodingKey) -> any Encoder {
        encoder.inner(encoder.node.replace(key.stringValue), key)
    }
}

/// Writes the values of a list.
struct UnkeyedParameterContainer: UnkeyedEncodingContainer {
    let encoder: ParameterEncoder

    var codingPath: [any CodingKey] { encoder.codingPath }

    var count: Int { encoder.node.count }

    mutating func encodeNil() throws { encoder.node.append().set(.null) }

    // One function for all the types that the protocol lists.
    mutating func encode<Value: Encodable>(_ value: Value) throws { try next().encode(value) }

    mutating func nestedContainer<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        next().container(keyedBy: type)
    }

    mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { next().unkeyedContainer() }

    mutating func superEncoder() -> any Encoder { next() }

    private func next() -> ParameterEncoder {
        let key = ParameterKey(encoder.node.count)
        return encoder.inner(encoder.node.append(), key)
    }
}

/// Writes a value that is no more than another one.
struct SingleParameterContainer: SingleValueEncodingContainer {
    let encoder: ParameterEncoder

    var codingPath: [any CodingKey] { encoder.codingPath }

    mutating func encodeNil() throws { encoder.node.set(.null) }

    // One function for all the types that the protocol lists.
    mutating func encode<Value: Encodable>(_ value: Value) throws { try encoder.encode(value) }
}
