import MartletWire

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
