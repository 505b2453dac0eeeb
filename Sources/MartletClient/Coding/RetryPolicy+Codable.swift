import MartletTransport

extension RetryPolicy: Codable {
    private enum CodingKeys: String, CodingKey {
        case attempts, wait, growsFrom, budget, statuses, longestRetryAfter
        case includesUnsafeMethods, includesAllErrors, timeLimit
    }

    /// Reads a policy.
    /// - Throws: `DecodingError`, also for a value that is out of range.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let attempts = try container.number(.attempts, in: 1..., or: 1)
        self = attempts == 1 ? .never : .transient(attempts: attempts)
        let wait = try container.duration(.wait) ?? .zero
        if let from = try container.duration(.growsFrom) {
            backoff = .exponential(from: from, upTo: wait)
        } else {
            backoff = .constant(wait)
        }
        budget = try container.decodeIfPresent(Double.self, forKey: .budget)
        if let budget, !(budget >= 0) {
            throw DecodingError.dataCorruptedError(
                forKey: .budget, in: container, debugDescription: "a budget must not be negative")
        }
        statuses = try container.value(.statuses, or: statuses)
        longestRetryAfter = try container.duration(.longestRetryAfter) ?? longestRetryAfter
        includesUnsafeMethods = try container.value(.includesUnsafeMethods, or: false)
        includesAllErrors = try container.value(.includesAllErrors, or: false)
        timeLimit = try container.duration(.timeLimit)
    }

    /// Writes the policy.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(attempts, forKey: .attempts)
        switch backoff {
        case .constant(let wait): try container.encode(wait, forKey: .wait)
        case .exponential(let from, let longest):
            try container.encode(from, forKey: .growsFrom)
            try container.encode(longest, forKey: .wait)
        }
        try container.encodeIfPresent(budget, forKey: .budget)
        try container.encode(statuses.sorted(), forKey: .statuses)
        try container.encode(longestRetryAfter, forKey: .longestRetryAfter)
        try container.encode(includesUnsafeMethods, forKey: .includesUnsafeMethods)
        try container.encode(includesAllErrors, forKey: .includesAllErrors)
        try container.encodeIfPresent(timeLimit, forKey: .timeLimit)
    }
}
