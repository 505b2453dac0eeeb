import FoundationEssentials

/// An encoder that converts any `Encodable` value to a ``ParameterValue``.
struct ParameterEncoder: Encoder {
    /// The state of one encoding.
    final class Run {
        /// The first error in a function that cannot throw, such as a function that creates a container.
        var firstError: ParameterError?
        let keys: JSONEncoder.KeyEncodingStrategy
        let dates: JSONEncoder.DateEncodingStrategy

        init(_ keys: JSONEncoder.KeyEncodingStrategy, _ dates: JSONEncoder.DateEncodingStrategy) {
            (self.keys, self.dates) = (keys, dates)
        }
    }

    let node: ParameterNode
    let codingPath: [any CodingKey]
    /// The number of values around this one: containers, and values that only wrap it.
    let depth: Int
    let run: Run
    /// Whether names are written unconverted, as `JSONEncoder` writes the keys of a dictionary.
    var keepsNames = false

    var userInfo: [CodingUserInfoKey: Any] { [:] }

    /// Returns the tree of a value.
    static func value(
        of value: some Encodable, keys: JSONEncoder.KeyEncodingStrategy, dates: JSONEncoder.DateEncodingStrategy
    ) throws -> ParameterValue {
        let encoder = ParameterEncoder(node: ParameterNode(), codingPath: [], depth: 0, run: Run(keys, dates))
        try encoder.encode(value)
        if let firstError = encoder.run.firstError { throw firstError }
        return encoder.node.value
    }

    /// Returns the encoder of a nested value.
    func inner(_ node: ParameterNode, _ key: any CodingKey) -> ParameterEncoder {
        ParameterEncoder(node: node, codingPath: codingPath + [key], depth: depth + 1, run: run)
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(KeyedParameterContainer<Key>(encoder: usable(as: .record)))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer { UnkeyedParameterContainer(encoder: usable(as: .list)) }

    // A value that wraps another one counts, because it may wrap itself endlessly.
    func singleValueContainer() -> any SingleValueEncodingContainer {
        ParameterEncoder(node: node, codingPath: codingPath, depth: depth + 1, run: run)
    }

    /// Returns this encoder if its node can become the kind of a container. Otherwise records the error and returns an
    /// encoder whose values are discarded.
    private func usable(as kind: ParameterNode.Kind) -> ParameterEncoder {
        let isTooDeep = depth > ParameterValue.depthLimit
        if !isTooDeep, node.become(kind) { return self }
        run.firstError = run.firstError ?? makeError(isTooDeep ? .tooDeep : .conflictingContainers)
        let dropped = ParameterNode()
        _ = dropped.become(kind)
        return ParameterEncoder(node: dropped, codingPath: codingPath, depth: depth, run: run)
    }

    /// Returns the name of a value in the tree.
    func name(of key: any CodingKey) -> String {
        switch run.keys {
        case .convertToSnakeCase where !keepsNames: SnakeCase.text(key.stringValue)
        case .custom(let convert) where !keepsNames: convert(codingPath + [key]).stringValue
        default: key.stringValue
        }
    }

    private func makeError(_ code: ParameterError.Code) -> ParameterError {
        ParameterError(code, at: ParameterPath(codingPath))
    }
}

extension ParameterEncoder: SingleValueEncodingContainer {
    func encodeNil() { node.set(.null) }

    // One function for all types that the protocol lists.
    func encode(_ value: some Encodable) throws {
        if let firstError = run.firstError { throw firstError }
        guard depth <= ParameterValue.depthLimit else { throw makeError(.tooDeep) }
        if let plain = try plain(value) { return node.set(plain) }
        if let set = value as? any EncodableSet {
            var values: Set<ParameterValue> = []
            for element in set.encodableElements {
                let encoder = inner(ParameterNode(), ParameterKey(intValue: values.count))
                try encoder.encode(element)
                values.insert(encoder.node.value)
            }
            return node.set(.set(values))
        }
        var wrapped = self
        wrapped.keepsNames = value is any StringKeyedDictionary
        if case .custom(let write) = run.dates, let date = value as? Date { return try write(date, wrapped) }
        try value.encode(to: wrapped)
    }

    /// Returns the value if its type has its own case.
    private func plain(_ value: some Encodable) throws(ParameterError) -> ParameterValue? {
        switch value {
        case let value as ParameterValue: return value
        case let value as String: return .string(value)
        case let value as Bool: return .bool(value)
        case let value as Int: return .integer(value)
        case let value as Double: return try number(value)
        // Converted through the decimal digits, because `Double(0.1 as Float)` is not 0.1.
        case let value as Float: return try number(Double(value.description) ?? Double(value))
        case let value as Date:
            if case .custom = run.dates { return nil }
            guard value.timeIntervalSince1970.isFinite else { throw makeError(.dateOutOfRange) }
            return .date(value)
        case let value as Data: return .data(value)
        case let value as Decimal:
            guard !value.isNaN else { throw makeError(.notFinite) }
            return .decimal(value)
        case let value as URL: return .string(value.absoluteString)
        case let value as any FixedWidthInteger: return try integer(value)
        default: return nil
        }
    }

    private func number(_ value: Double) throws(ParameterError) -> ParameterValue {
        guard value.isFinite else { throw makeError(.notFinite) }
        return .number(value)
    }

    private func integer(_ value: some FixedWidthInteger) throws(ParameterError) -> ParameterValue {
        if let small = Int(exactly: value) { return .integer(small) }
        if let large = UInt64(exactly: value) { return .unsigned(large) }
        let digits = String(value)
        guard let decimal = Decimal(string: digits), decimal.description == digits else {
            throw makeError(.numberOutOfRange)
        }
        return .decimal(decimal)
    }
}

/// A set with elements that can be encoded.
private protocol EncodableSet { var encodableElements: [any Encodable] { get } }

extension Set: EncodableSet where Element: Encodable {
    fileprivate var encodableElements: [any Encodable] { Array(self) }
}

/// A dictionary whose keys are strings.
private protocol StringKeyedDictionary {}

extension Dictionary: StringKeyedDictionary where Key == String, Value: Encodable {}

/// A container that writes the values of a record.
private struct KeyedParameterContainer<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let encoder: ParameterEncoder

    var codingPath: [any CodingKey] { encoder.codingPath }

    func encodeNil(forKey key: Key) { encoder.node.replace(encoder.name(of: key)).set(.null) }

    // One function for all types that the protocol lists.
    func encode(_ value: some Encodable, forKey key: Key) throws { try replacing(key).encode(value) }

    func nestedContainer<Inner: CodingKey>(keyedBy type: Inner.Type, forKey key: Key) -> KeyedEncodingContainer<Inner> {
        nested(key).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer { nested(key).unkeyedContainer() }

    func superEncoder() -> any Encoder { replacing(ParameterKey(stringValue: "super")) }

    func superEncoder(forKey key: Key) -> any Encoder { replacing(key) }

    /// Returns the encoder of a nested container, which stays if it exists: a class and its subclass may share it.
    private func nested(_ key: Key) -> ParameterEncoder {
        encoder.inner(encoder.node.child(encoder.name(of: key)), key)
    }

    private func replacing(_ key: any CodingKey) -> ParameterEncoder {
        encoder.inner(encoder.node.replace(encoder.name(of: key)), key)
    }
}

/// A container that writes the values of a list.
private struct UnkeyedParameterContainer: UnkeyedEncodingContainer {
    let encoder: ParameterEncoder

    var codingPath: [any CodingKey] { encoder.codingPath }

    var count: Int { encoder.node.count }

    func encodeNil() { encoder.node.append().set(.null) }

    // One function for all types that the protocol lists.
    func encode(_ value: some Encodable) throws { try next().encode(value) }

    func nestedContainer<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        next().container(keyedBy: type)
    }

    func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { next().unkeyedContainer() }

    func superEncoder() -> any Encoder { next() }

    private func next() -> ParameterEncoder {
        let key = ParameterKey(intValue: count)
        return encoder.inner(encoder.node.append(), key)
    }
}
