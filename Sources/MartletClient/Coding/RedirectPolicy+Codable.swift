import MartletTransport

extension RedirectPolicy: Codable {
    private enum CodingKeys: String, CodingKey {
        case isFollowing, limit, allowsDowngrade, schemes, statusesThatKeepMethod, secretFields,
            trustsOtherOrigins
    }

    /// Reads a policy. What is missing is as in ``follow(limit:)``.
    /// - Throws: `DecodingError`, also for a negative limit.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self = .follow(limit: try container.number(.limit, in: 0..., or: 20))
        isFollowing = try container.value(.isFollowing, or: true)
        allowsDowngrade = try container.value(.allowsDowngrade, or: false)
        if let names = try container.decodeIfPresent([String].self, forKey: .schemes) {
            schemes = Set(
                try names.map { name in
                    guard let scheme = HTTPURL.Scheme(rawValue: name) else {
                        throw DecodingError.dataCorruptedError(
                            forKey: .schemes, in: container,
                            debugDescription: "\(name) is neither http nor https")
                    }
                    return scheme
                })
        }
        statusesThatKeepMethod = try container.value(.statusesThatKeepMethod, or: [])
        secretFields = try container.value(.secretFields, or: [])
        trustsOtherOrigins = try container.value(.trustsOtherOrigins, or: false)
    }

    /// Writes the policy.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(isFollowing, forKey: .isFollowing)
        try container.encode(limit, forKey: .limit)
        try container.encode(allowsDowngrade, forKey: .allowsDowngrade)
        try container.encode(schemes.map(\.rawValue).sorted(), forKey: .schemes)
        try container.encode(statusesThatKeepMethod.sorted(), forKey: .statusesThatKeepMethod)
        try container.encode(secretFields, forKey: .secretFields)
        try container.encode(trustsOtherOrigins, forKey: .trustsOtherOrigins)
    }
}
