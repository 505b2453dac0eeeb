extension KeyedDecodingContainer {
    /// The value of a key; the default where the key is missing, as in what an earlier version encoded.
    package func value<Value: Decodable>(_ key: Key, or standard: Value) throws -> Value {
        try decodeIfPresent(Value.self, forKey: key) ?? standard
    }

    /// A number of a key within a range; the default where the key is missing.
    /// - Throws: `DecodingError.dataCorrupted` for one that is out of range.
    package func number(_ key: Key, in range: some RangeExpression<Int>, or standard: Int) throws -> Int {
        let number = try value(key, or: standard)
        guard range.contains(number) else {
            throw DecodingError.dataCorruptedError(
                forKey: key, in: self, debugDescription: "\(number) is out of range")
        }
        return number
    }

    /// A duration of a key, which must not be negative; `nil` where it is missing or null.
    /// - Throws: `DecodingError.dataCorrupted` for a negative one.
    package func duration(_ key: Key) throws -> Duration? {
        guard let duration = try decodeIfPresent(Duration.self, forKey: key) else { return nil }
        guard duration >= .zero else {
            throw DecodingError.dataCorruptedError(
                forKey: key, in: self, debugDescription: "a duration must not be negative")
        }
        return duration
    }
}
