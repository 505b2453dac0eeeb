import MartletWire

/// Whether a response to a request with credentials may be used for others (RFC 9111 §3.5).
package enum AuthorizationRule {
    /// Whether it says so: `public`, `must-revalidate` or `s-maxage`.
    package static func allowsSharing(_ control: CacheControl) -> Bool {
        !control.isMalformed && (control.isPublic || control.mustRevalidate || control.sharedMaxAge != nil)
    }
}

/// Whether the answer to one request may be that of others, which ask for the same while it is under way: collapsed
/// requests (RFC 9111 §4).
package enum SharingRule {
    /// Decides about an answer that is to be stored.
    ///
    /// What may be served as it is may be shared. Whoever asked before the answer came may also have one that says nothing
    /// of how long it is fresh: it was made for a request of the same moment.
    ///
    /// - Parameters:
    ///   - response: the answer, as it is to be stored.
    ///   - request: the other request.
    ///   - askedBefore: whether it was there before the answer's head came.
    ///   - now: the present.
    ///   - policy: what the cache does beyond what messages ask for.
    package static func allows(
        _ response: StoredVariant, for request: CacheRequest, askedBefore: Bool, now: WallTime,
        policy: CachePolicy
    ) -> Bool {
        guard request.key == response.head.key, VaryRule.matches(response.head, request) else { return false }
        if case .serve = CacheDecision(request, variants: [response], now: now, policy: policy) {
            return true
        }
        guard askedBefore, !request.isNoStore, !request.hasRange, !request.isConditional else { return false }
        let control = response.facts.control
        guard !control.isNoCache else { return false }
        switch request.mode {
        case .standard, .cacheThenNetwork, .preferCache:
            let saysNothing =
                control.maxAge == nil && !control.forbidsStale && !response.head.fields.contains("Expires")
            return saysNothing && !request.control.isNoCache
        case .reload, .revalidate:
            // They want nothing that was stored, and this was not: it is as new as what they would get.
            return Freshness(of: response, now: now, defaults: policy.defaults).isFresh
        case .onlyIfCached, .noStore: return false
        }
    }
}

/// What status codes mean to a cache (RFC 9110 §15.1, RFC 9111 §3, RFC 5861 §4).
package enum StatusRule {
    /// Whether a response with it may be stored, and its lifetime guessed, without it saying so.
    package static func isHeuristicallyCacheable(_ status: Int) -> Bool {
        switch status {
        case 200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501: true
        default: false
        }
    }

    /// Whether a response with it is never stored, whatever it says: parts, what says that nothing was modified, what a proxy says
    /// in its own name, and those that RFC 6585 §3–6 forbids to store.
    static func isNeverStored(_ status: Int) -> Bool {
        switch status {
        case 206, 304, 407, 428, 429, 431, 511: true
        default: false
        }
    }

    /// Whether it is one whose meaning for caches is known (`must-understand`, RFC 9111 §5.2.2.3). 206 is not: parts
    /// are not stored.
    package static func isUnderstood(_ status: Int) -> Bool {
        switch status {
        case 200, 203, 204, 300, 301, 302, 303, 307, 308, 400, 401, 403, 404, 405, 406, 409, 410, 411, 414,
            415, 421, 422, 451, 500, 501, 502, 503, 504:
            true
        default: false
        }
    }

    /// Whether it is an error that a stale response may stand in for (`stale-if-error`).
    package static func isErrorForStale(_ status: Int) -> Bool {
        switch status {
        case 500, 502, 503, 504: true
        default: false
        }
    }

    /// Whether a response to GET with it says what is there now, so that an older stored one is out of date even when
    /// the new one may not be stored: not for failures, parts, 304 and refusals that concern the request alone.
    static func supersedes(_ status: Int) -> Bool {
        switch status {
        case 206, 304: false
        case 200..<400, 404, 410: true
        default: false
        }
    }
}

/// Why a response is not stored.
package enum StorageRefusal: String, Equatable, Sendable {
    /// The request, its mode or the response says `no-store`.
    case noStore = "no-store"
    /// The method is not GET.
    case method
    /// The status is 1xx, 206 or 304, or one that `must-understand` is not met for.
    case status
    /// The request asked for parts.
    case range
    /// The caller made it conditional: what comes is an answer to that.
    case condition
    /// It was made for a credential, is to be kept for everybody, and does not say that it may be (RFC 9111 §3.5).
    case authorization
    /// It varies with everything, with too much, or with a secret that cannot be concealed.
    case vary
    /// Neither its fields nor its status say that it may be stored (RFC 9111 §3).
    case notCacheable = "not-cacheable"
    /// `Connection` names a field that its use depends on.
    case connection
    /// It is an error, and what it would take the place of is none.
    case error
}

/// What a `no-cache` or `private` directive is about (RFC 9111 §5.2.2.4, §5.2.2.7).
package enum FieldScope: Equatable, Sendable {
    /// The whole response.
    case response
    /// These fields of it alone, by their names in lower case, sorted, each once; never empty.
    case fields([String])

    /// Both scopes together: the whole response where one is about it.
    func union(_ other: FieldScope?) -> FieldScope {
        guard case .fields(let mine) = self else { return .response }
        switch other {
        case .fields(let others): return .fields(Set(mine).union(others).sorted())
        case .response: return .response
        case nil: return self
        }
    }
}
