import MartletCache
import MartletTransport

/// Options are encoded without secrets: ``authentication``, the credentials of a proxy, and fields of ``trailers`` that hold
/// credentials are left out. A validator cannot be encoded: without it other answers would be taken. Keys that are not known
/// are ignored; those that are missing have their default.
extension RequestOptions: Codable {
    private enum CodingKeys: String, CodingKey {
        case timeouts, priority, bodyLimit, decompresses, version, omittedFields, isRaw, trailers, proxy
        case order, redirects, retry, usesCookies, idempotencyKey, bandwidth, allowsResendingUnsafeMethods
        case cacheMode, cachePartition, ignoresContentLength
    }

    /// Reads options.
    /// - Throws: `DecodingError`, also for a value that is out of range.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            timeouts: try container.decodeIfPresent(Timeouts.self, forKey: .timeouts),
            priority: try container.decodeIfPresent(RequestPriority.self, forKey: .priority),
            bodyLimit: try container.decodeIfPresent(ByteCount.self, forKey: .bodyLimit),
            decompresses: try container.decodeIfPresent(Bool.self, forKey: .decompresses),
            redirects: try container.decodeIfPresent(RedirectPolicy.self, forKey: .redirects),
            retry: try container.decodeIfPresent(RetryPolicy.self, forKey: .retry),
            idempotencyKey: try container.decodeIfPresent(IdempotencyKey.self, forKey: .idempotencyKey))
        version = try container.value(.version, or: version)
        isRaw = try container.value(.isRaw, or: isRaw)
        allowsResendingUnsafeMethods = try container.value(.allowsResendingUnsafeMethods, or: false)
        // What few calls have is set only where it is there: each setting makes room for all of it.
        if let order = try container.decodeIfPresent(WaitingOrder.self, forKey: .order) { self.order = order }
        if let names = try container.decodeIfPresent(Set<HTTPField.Name>.self, forKey: .omittedFields) {
            omittedFields = names
        }
        if let fields = try container.decodeIfPresent(HTTPFields.self, forKey: .trailers) {
            trailers = fields
        }
        if let settings = try container.decodeIfPresent(ProxySettings.self, forKey: .proxy) {
            proxy = settings
        }
        if let uses = try container.decodeIfPresent(Bool.self, forKey: .usesCookies) { usesCookies = uses }
        if let limit = try container.decodeIfPresent(BandwidthLimit.self, forKey: .bandwidth) {
            bandwidth = limit
        }
        if try container.value(.ignoresContentLength, or: false) { ignoresContentLength = true }
        if let mode = try container.decodeIfPresent(CacheMode.self, forKey: .cacheMode) { cacheMode = mode }
        if let partition = try container.decodeIfPresent(String.self, forKey: .cachePartition) {
            cachePartition = partition
        }
    }

    /// Writes the options, without secrets.
    /// - Throws: `EncodingError.invalidValue` where a closure chooses the proxy, and for a validator.
    public func encode(to encoder: any Encoder) throws {
        try validator?.refuseEncoding(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encodeIfPresent(timeouts, forKey: .timeouts)
        try container.encodeIfPresent(priority, forKey: .priority)
        try container.encodeIfPresent(order, forKey: .order)
        try container.encodeIfPresent(bodyLimit, forKey: .bodyLimit)
        try container.encodeIfPresent(decompresses, forKey: .decompresses)
        try container.encode(version, forKey: .version)
        try container.encode(isRaw, forKey: .isRaw)
        try container.encode(allowsResendingUnsafeMethods, forKey: .allowsResendingUnsafeMethods)
        if !omittedFields.isEmpty { try container.encode(omittedFields, forKey: .omittedFields) }
        let trailers = trailers.withoutSecrets
        if !trailers.isEmpty { try container.encode(trailers, forKey: .trailers) }
        try container.encodeIfPresent(proxy, forKey: .proxy)
        try container.encodeIfPresent(redirects, forKey: .redirects)
        try container.encodeIfPresent(retry, forKey: .retry)
        if !usesCookies { try container.encode(false, forKey: .usesCookies) }
        try container.encodeIfPresent(cacheMode, forKey: .cacheMode)
        try container.encodeIfPresent(cachePartition, forKey: .cachePartition)
        try container.encodeIfPresent(idempotencyKey, forKey: .idempotencyKey)
        if ignoresContentLength { try container.encode(true, forKey: .ignoresContentLength) }
        if bandwidth != .none { try container.encode(bandwidth, forKey: .bandwidth) }
    }
}
