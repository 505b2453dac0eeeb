import MartletDigests
import MartletFeatureSettings
public import MartletCore
import MartletCache

/// Options are encoded without secrets: ``authentication``, the credentials of a proxy, and fields of ``trailers`` with
/// credentials are omitted. A validator is rejected with an error, because it cannot be encoded and options without it
/// would accept other responses. ``onInterimResponse`` is rejected, because it would never be called again. Unknown
/// keys are ignored; missing keys have their default.
extension RequestOptions: Codable {
    private static let settings: [CodedSetting<RequestOptions>] = [
        .init("timeouts", \.timeouts) { $0 == Timeouts() ? nil : $0 }, .init("priority", optional: \.priority),
        .init("queueOrder", optional: \.queueOrder), .init("bodyLimit", optional: \.bodyLimit),
        .init("decompresses", optional: \.decompresses), .init("version", optional: \.version),
        .init("returnsRawBody", optional: \.returnsRawBody),
        .init("allowsResendingNonIdempotentMethods", optional: \.allowsResendingNonIdempotentMethods),
        .init("proxy", optional: \.proxy), .init("redirects", optional: \.redirects), .init("retry", optional: \.retry),
        .init("cacheMode", optional: \.cacheMode), .init("cachePartition", optional: \.cachePartition),
        .init("meteredNetworks", optional: \.meteredNetworks), .init("serviceClass", optional: \.serviceClass),
        .init("idempotencyKey", optional: \.idempotencyKey),
        .init("omittedFields", \.omittedFields) { $0.isEmpty ? nil : $0 },
        .init("trailers", \.trailers) { $0.withoutSecrets.isEmpty ? nil : $0.withoutSecrets },
        .init("usesCookies", optional: \.usesCookies), .init("ignoresContentLength", optional: \.ignoresContentLength),
        .init("usesHSTS", optional: \.usesHSTS), .init("bandwidth", \.bandwidth) { $0 == .none ? nil : $0 },
        .init("digestVerification", optional: \.digestVerification),
    ]

    /// Decodes the options; missing keys have their default.
    /// - Throws: `DecodingError`, also for a value that is out of range.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodedKey.self)
        self.init()
        // Only settings that are present are set: setting any of the rare ones allocates the storage for all of them.
        for setting in RequestOptions.settings { try setting.decode(&self, container) }
    }

    /// Encodes the options, without secrets.
    /// - Throws: `EncodingError.invalidValue` if the options contain a proxy selector, a validator or
    ///   ``onInterimResponse``.
    public func encode(to encoder: any Encoder) throws {
        if let validator { throw encoder.rejection(of: validator, "a validator cannot be encoded") }
        if let onInterimResponse {
            throw encoder.rejection(of: onInterimResponse, "the closure onInterimResponse cannot be encoded")
        }
        var container = encoder.container(keyedBy: CodedKey.self)
        for setting in RequestOptions.settings { try setting.encode(self, &container) }
    }
}

extension RetryPolicy: Codable {
    /// Decodes a retry policy. Missing values are those of ``never``, or, with more than one attempt, those of
    /// ``transient(maximumAttempts:backoff:budget:statuses:)``.
    /// - Throws: `DecodingError`, also for a value that is out of range.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodedKey.self)
        let attempts = try container.number("attempts", in: 1..., or: 1)
        self = attempts == 1 ? .never : .transient(maximumAttempts: attempts)
        if let wait = try container.duration("wait") {
            let start = try container.duration("growsFrom")
            backoff = start.map { .exponential(from: $0, upTo: wait) } ?? .constant(wait)
        }
        // A `null` means no limit.
        budget = try container.optional("budget", or: budget)
        if let budget, !(budget >= 0) {
            throw DecodingError.dataCorruptedError(
                forKey: "budget", in: container, debugDescription: "a budget must not be negative")
        }
        statuses = try container.value("statuses", or: statuses)
        maximumRetryAfter = try container.duration("maximumRetryAfter") ?? maximumRetryAfter
        retriesNonIdempotentMethods = try container.value("retriesNonIdempotentMethods", or: false)
        includesAllErrors = try container.value("includesAllErrors", or: false)
        timeLimit = try container.duration("timeLimit")
    }

    /// Encodes the retry policy.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodedKey.self)
        try container.encode(maximumAttempts, forKey: "attempts")
        try container.encodeIfPresent(timeLimit, forKey: "timeLimit")
        switch backoff {
        case .constant(let wait): try container.encode(wait, forKey: "wait")
        case .exponential(let from, let longest):
            try container.encode(from, forKey: "growsFrom")
            try container.encode(longest, forKey: "wait")
        }
        try container.encode(budget, forKey: "budget")
        try container.encode(statuses.sorted(), forKey: "statuses")
        try container.encode(maximumRetryAfter, forKey: "maximumRetryAfter")
        try container.encode(retriesNonIdempotentMethods, forKey: "retriesNonIdempotentMethods")
        try container.encode(includesAllErrors, forKey: "includesAllErrors")
    }
}

extension RedirectPolicy: Codable {
    /// Decodes a redirect policy. Missing values are those of ``follow(limit:)``.
    /// - Throws: `DecodingError`, also for a negative limit.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodedKey.self)
        self = .follow(limit: try container.number("limit", in: 0..., or: 20))
        followsRedirects = try container.value("followsRedirects", or: true)
        allowsDowngrade = try container.value("allowsDowngrade", or: false)
        staysOnHost = try container.value("staysOnHost", or: false)
        if let names = try container.decodeIfPresent([String].self, forKey: "schemes") {
            schemes = Set(
                try names.map { name in
                    guard let scheme = HTTPURL.Scheme(rawValue: name) else {
                        throw DecodingError.dataCorruptedError(
                            forKey: "schemes", in: container, debugDescription: "\(name) is neither http nor https")
                    }
                    return scheme
                })
        }
        methodPreservingStatuses = try container.value("methodPreservingStatuses", or: [])
        secretFields = try container.value("secretFields", or: [])
        sendsCredentialsCrossOrigin = try container.value("sendsCredentialsCrossOrigin", or: false)
    }

    /// Encodes the redirect policy.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodedKey.self)
        try container.encode(followsRedirects, forKey: "followsRedirects")
        try container.encode(limit, forKey: "limit")
        try container.encode(allowsDowngrade, forKey: "allowsDowngrade")
        try container.encode(staysOnHost, forKey: "staysOnHost")
        try container.encode(schemes.map(\.rawValue).sorted(), forKey: "schemes")
        try container.encode(methodPreservingStatuses.sorted(), forKey: "methodPreservingStatuses")
        try container.encode(secretFields, forKey: "secretFields")
        try container.encode(sendsCredentialsCrossOrigin, forKey: "sendsCredentialsCrossOrigin")
    }
}

extension IdempotencyKey: Codable {
    /// Decodes a key. Without a value, each call has a random key.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodedKey.self)
        self = try container.decodeIfPresent(String.self, forKey: "value").map { .value($0) } ?? .random
    }

    /// Encodes the key. A random key is encoded without a value.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodedKey.self)
        try container.encodeIfPresent(text, forKey: "value")
    }
}
