package import MartletWire

/// Whether a response is stored, and with which head (RFC 9111 §3, §3.1, §3.5).
///
/// The decision is based on the head. Before storing, the caller must check that the body is complete (RFC 9111 §3.3),
/// and that the URL was not invalidated (``InvalidationLog``).
package enum StorageDecision: Equatable, Sendable {
    case store(StoredHead)
    case reject(StorageRejection)

    /// Decides about a response, by its head as it was received.
    package init(_ response: ResponseHead, to request: CacheRequest, requestTime: WallTime, responseTime: WallTime) {
        if let rejection = StorageDecision.rejection(response, request) {
            self = .reject(rejection)
        } else if let selections = VaryRule(response.fields).selections(of: request) {
            self = .store(
                StoredHead(
                    key: request.key, status: response.status, reason: response.isReasonLatin1 ? "" : response.reason,
                    fields: StoredFields.kept(response.fields, received: responseTime), selections: selections,
                    requestTime: requestTime, responseTime: responseTime, wasAuthorized: request.isAuthorized))
        } else {
            self = .reject(.vary)
        }
    }

    private static func rejection(_ response: ResponseHead, _ request: CacheRequest) -> StorageRejection? {
        if request.isNoStore { return .noStore }
        if request.method != "GET" { return .method }
        if request.hasRange { return .range }
        let status = response.status
        if status < 200 || status > 999 || StatusRule.neverStored.contains(status) { return .status }
        let control = CacheControl(response: response.fields)
        if control.mustUnderstand {
            // A cache that understands the status ignores `no-store`, which addresses other caches.
            guard StatusRule.understood.contains(status) else { return .status }
        } else if control.isNoStore {
            return .noStore
        }
        if request.isAuthorized, request.key.partition.isEmpty, !control.allowsSharing { return .authorization }
        if StoredFields.connectionNamesRequiredField(response.fields) { return .connection }
        let isExplicit =
            control.isPublic || control.isPrivate != nil || control.maxAge != nil || response.fields.contains("Expires")
        return isExplicit || StatusRule.heuristicallyCacheable.contains(status) ? nil : .notCacheable
    }
}

/// The reason why a response is not stored.
package enum StorageRejection: String, Equatable, Sendable {
    /// The request, its mode or the response specifies `no-store`.
    case noStore = "no-store"
    case method
    /// Responses with the status are never stored, or the status is not understood in spite of `must-understand`.
    case status
    case range
    /// The caller made the request conditional, so the response depends on the conditions.
    case condition
    /// The request had credentials, the key has no partition, and the response forbids sharing (RFC 9111 §3.5).
    case authorization
    /// The response varies with everything, with too many or too long fields, or with a secret that has no digest.
    case vary
    /// Neither the fields nor the status allow storing (RFC 9111 §3).
    case notCacheable = "not-cacheable"
    /// `Connection` names a field that the use of the response depends on.
    case connection
    /// The server's certificate was not verified.
    case unverified
    /// The response is a server error, which does not replace a stored response.
    case error
}

/// Whether concurrent requests may share the response to one of them: collapsed requests (RFC 9111 §4).
package enum SharingRule {
    /// Decides about a response that is to be stored.
    ///
    /// A response that may be served without validation may be shared. Requests made before its head was received may
    /// also share a response without a lifetime, because they are concurrent.
    /// - Parameter requestedBefore: Whether the request was made before the head was received.
    package static func allows(
        _ response: StoredVariant, for request: CacheRequest, requestedBefore: Bool, now: WallTime, policy: CachePolicy
    ) -> Bool {
        guard request.key == response.head.key, VaryRule.matches(response.head, request) else { return false }
        if case .serve = CacheDecision(request, variants: [response], now: now, policy: policy) { return true }
        let control = response.control
        guard requestedBefore, request.isShareable, !control.isNoCache else { return false }
        switch request.mode {
        case .standard, .cacheThenNetwork, .preferCache:
            return control.maxAge == nil && !control.forbidsStale && !response.head.fields.contains("Expires")
                && !request.control.isNoCache
        case .reload, .revalidate, .cacheThenRevalidate:
            // These modes reject stored responses, but this one is as recent as a response to a separate request.
            return Freshness(of: response, now: now, defaults: policy.defaults).isFresh
        case .onlyIfCached, .noStore: return false
        }
    }
}

/// The status codes that matter to a cache (RFC 9110 §15.1, RFC 9111 §3, RFC 5861 §4).
enum StatusRule {
    /// Statuses of responses that may be stored, with an estimated lifetime, without explicit permission.
    static let heuristicallyCacheable: Set = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501]
    /// Statuses that are never stored: parts, 304, those of a proxy itself, and those of RFC 6585 §3–6.
    static let neverStored: Set = [206, 304, 407, 428, 429, 431, 511]
    /// Statuses whose meaning is known (`must-understand`, RFC 9111 §5.2.2.3). Not 206: parts are not stored.
    static let understood: Set = [
        200, 203, 204, 300, 301, 302, 303, 307, 308, 400, 401, 403, 404, 405, 406, 409, 410, 411, 414, 415, 421, 422,
        451, 500, 501, 502, 503, 504,
    ]

    /// Errors that a stale response may replace (`stale-if-error`).
    static let errorsForStale: Set = [500, 502, 503, 504]

    /// Whether a response to GET, even one that is not stored, makes an older stored one out of date.
    static func supersedes(_ status: Int) -> Bool {
        status == 404 || status == 410 || (200..<400).contains(status) && status != 206 && status != 304
    }
}
