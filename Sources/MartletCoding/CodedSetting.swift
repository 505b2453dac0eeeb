/// A setting as it is encoded: by which key, and where it is.
struct CodedSetting<Settings, Key: CodingKey>: Sendable {
    /// The place of a setting.
    typealias Place<Value> = any WritableKeyPath<Settings, Value> & Sendable

    /// Takes it from a container. What is missing stays as it is.
    let decode: @Sendable (inout Settings, KeyedDecodingContainer<Key>) throws -> Void
    /// Writes it to a container.
    let encode: @Sendable (Settings, inout KeyedEncodingContainer<Key>) throws -> Void

    /// A setting that always has a value.
    /// - Parameter written: Makes what is written of the value; `nil` for nothing.
    init<Value: Codable & Sendable>(
        _ key: Key, _ place: Place<Value>, written: @escaping @Sendable (Value) -> Value? = { $0 }
    ) {
        decode = { settings, container in
            guard let value = try container.decodeIfPresent(Value.self, forKey: key) else { return }
            settings[keyPath: place] = value
        }
        encode = { try $1.encodeIfPresent(written($0[keyPath: place]), forKey: key) }
    }

    /// A setting that may have no value, which is written as nothing.
    init<Value: Codable & Sendable>(_ key: Key, optional place: Place<Value?>) {
        decode = { settings, container in
            guard let value = try container.decodeIfPresent(Value.self, forKey: key) else { return }
            settings[keyPath: place] = value
        }
        encode = { try $1.encodeIfPresent($0[keyPath: place], forKey: key) }
    }
}
