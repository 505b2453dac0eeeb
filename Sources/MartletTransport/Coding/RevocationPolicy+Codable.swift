extension RevocationPolicy: Codable {
    private enum CodingKeys: String, CodingKey {
        case lists
        case isForWholeChain
        case acceptsExpiredLists
        case acceptsMissingLists
    }

    /// Reads a policy. What is missing is at its strictest.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        lists = try container.value(.lists, or: [])
        scope = try container.value(.isForWholeChain, or: true) ? .wholeChain : .leaf
        acceptsExpiredLists = try container.value(.acceptsExpiredLists, or: false)
        acceptsMissingLists = try container.value(.acceptsMissingLists, or: false)
    }

    /// Writes the policy.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(lists, forKey: .lists)
        try container.encode(scope == .wholeChain, forKey: .isForWholeChain)
        try container.encode(acceptsExpiredLists, forKey: .acceptsExpiredLists)
        try container.encode(acceptsMissingLists, forKey: .acceptsMissingLists)
    }
}
