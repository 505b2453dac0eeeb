extension IdempotencyKey: Codable {
    private enum CodingKeys: String, CodingKey {
        case value
    }

    /// Reads a key; without a value it is drawn for each call.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self = try container.decodeIfPresent(String.self, forKey: .value).map { .value($0) } ?? .random
    }

    /// Writes the key.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encodeIfPresent(text, forKey: .value)
    }
}
