extension TLSHostRules: Codable {
    /// Reads rules by their patterns.
    public init(from decoder: any Decoder) throws {
        self.init()
        let rules = try decoder.singleValueContainer().decode([String: TLSHostSettings].self)
        for (pattern, rule) in rules { self[pattern] = rule }
    }

    /// Writes the rules by their patterns, without identities.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(byPattern)
    }
}
