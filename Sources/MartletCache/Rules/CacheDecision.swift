package import MartletWire

/// The decision about a request, based on the stored responses (RFC 9111 §4).
package enum CacheDecision: Equatable, Sendable {
    /// The stored response is served, without the network.
    case serve(CachedResponse)
    /// The stored response is served and then validated; concurrent requests share the validation (RFC 5861 §3).
    case serveStaleWhileRevalidating(CachedResponse, ForwardPlan)
    /// The stored response is delivered first, and then the result of its validation (modes with a preview).
    case serveThenValidate(CachedResponse, ForwardPlan)
    /// A stored response is validated over the network. If none has a validator, the request has no conditions.
    case validate(ForwardPlan)
    /// The response comes from the network.
    case forward(ForwardPlan)
    /// Only the cache may respond, and it has no usable response: status 504 (RFC 9111 §5.2.1.7).
    case unsatisfiable(CacheStatus)

    /// Decides how the cache responds to a request.
    /// - Parameter variants: All complete responses that are stored under the request's key, in any order.
    package init(_ request: CacheRequest, variants: [StoredVariant], now: WallTime, policy: CachePolicy = CachePolicy())
    { self = CacheLookupRule(request: request, variants: variants, now: now, policy: policy).decide() }

    /// The plan for the network, now or after a stored response was served; `nil` if the network is not used.
    package var plan: ForwardPlan? {
        switch self {
        case .validate(let plan), .forward(let plan), .serveThenValidate(_, let plan),
            .serveStaleWhileRevalidating(_, let plan):
            plan
        case .serve, .unsatisfiable: nil
        }
    }
}

/// The plan of a request to the network, with or without conditions that validate stored responses (RFC 9111 §4.3.1).
package struct ForwardPlan: Equatable, Sendable {
    /// The reason for using the network.
    package let reason: CacheStatus.Forwarding
    /// The fields that the cache adds to the request: its conditions, and a `Cache-Control` for other caches.
    package let fields: FieldBlock
    /// The indices of the stored responses that the conditions refer to; empty without conditions.
    package var offered: [Int] = []
    /// The index of the stored response that may replace an error (RFC 5861 §4).
    package let staleOnError: Int?

    /// Whether the cache added conditions, so that a 304 confirms a stored response.
    package var isConditional: Bool { !offered.isEmpty }
}

/// The steps to a ``CacheDecision``, in the order of RFC 9111 §4.
private struct CacheLookupRule {
    let request: CacheRequest
    let variants: [StoredVariant]
    let now: WallTime
    let policy: CachePolicy
    /// The maximum size of the tags in `If-None-Match`, in bytes: servers reject requests with very long fields.
    private static let tagLimit = 4096

    func decide() -> CacheDecision {
        // The reason is `request` only if there is a stored response that the request rejects (RFC 9211 §2.2).
        let rejected: CacheStatus.Forwarding = variants.isEmpty ? .uriMiss : .request
        if request.isNoStore { return network(request.mode == .noStore ? .bypass : rejected) }
        guard request.isLookedUp else { return network(.method) }
        if request.mode == .reload || request.hasOriginPrecondition { return network(rejected) }
        // Fast path: most URLs have only one variant.
        if variants.count == 1 { return VariantRule.matches(request, variants[0]) ? decide(0) : miss() }
        return VariantRule.matching(request, variants).first.map(decide(_:)) ?? miss()
    }

    /// Decides for a request that no stored response matches.
    private func miss() -> CacheDecision {
        guard !variants.isEmpty else { return network(.uriMiss) }
        let plan = validation(.varyMiss)
        return plan.isConditional && !request.isOffline ? .validate(plan) : network(.varyMiss)
    }

    /// Decides whether a stored response that matches the request may be used.
    private func decide(_ best: Int) -> CacheDecision {
        let stored = variants[best]
        guard CachedResponse.canServe(request, stored) else { return network(.miss) }
        let control = stored.control
        let freshness = Freshness(of: stored, now: now, defaults: policy.defaults)
        let makeResponse = {
            CachedResponse(
                variant: best, stored, to: request, freshness: freshness,
                status: CacheStatus(isHit: true, timeToLive: freshness.timeToLive))
        }
        let isUnwanted = isUnwanted(freshness, control)
        let mayServe =
            request.mode.servesUnvalidated
            || (freshness.isFresh ? !control.isNoCache : mayServeStale(freshness, control))
        if !isUnwanted, mayServe { return .serve(makeResponse()) }
        let reason: CacheStatus.Forwarding = freshness.isFresh && isUnwanted ? .request : .stale
        let staleOnError = mayReplaceError(freshness, control) ? best : nil
        guard request.isShareable, !request.isOffline else { return network(reason, staleOnError: staleOnError) }
        let plan = validation(reason, staleOnError: staleOnError)
        if request.mode.startsWithPreview { return .serveThenValidate(makeResponse(), plan) }
        if !isUnwanted, mayServeWhileRevalidating(freshness, control) {
            return .serveStaleWhileRevalidating(makeResponse(), plan)
        }
        return .validate(plan)
    }

    /// Whether the request itself rejects the response, even a fresh one.
    private func isUnwanted(_ freshness: Freshness, _ control: CacheControl) -> Bool {
        let (requested, age) = (request.control, freshness.ageInMilliseconds)
        return requested.isNoCache
            || (request.mode == .revalidate || request.mode == .cacheThenRevalidate)
                && !(control.isImmutable && freshness.isFresh)
            || requested.maxAge.map { age > $0 * 1000 } ?? false
            || requested.minFresh.map { freshness.lifetime * 1000 - age < $0 * 1000 } ?? false
    }

    /// Whether the request accepts the response although it is stale (RFC 9111 §4.2.4).
    private func mayServeStale(_ freshness: Freshness, _ control: CacheControl) -> Bool {
        guard !control.forbidsStale else { return false }
        if let limit = request.control.maxStale, limit == .max || freshness.stalenessInMilliseconds <= limit * 1000 {
            return true
        }
        // Offline the response cannot be revalidated, but stale-while-revalidate still allows it to be served.
        return request.isOffline && mayServeWhileRevalidating(freshness, control)
    }

    private func mayServeWhileRevalidating(_ freshness: Freshness, _ control: CacheControl) -> Bool {
        guard !freshness.isFresh, !control.forbidsStale, let seconds = control.staleWhileRevalidate else {
            return false
        }
        return freshness.stalenessInMilliseconds < seconds * 1000
    }

    /// Whether the response, even a fresh one, may replace an error. The longer time of request and response counts; if
    /// neither has one, the policy's.
    private func mayReplaceError(_ freshness: Freshness, _ control: CacheControl) -> Bool {
        guard !control.forbidsStale, !request.control.isNoCache, request.mode != .revalidate else { return false }
        let stated = [control.staleIfError, request.control.staleIfError].compactMap { $0 }.max()
        guard let seconds = stated ?? policy.staleIfError else { return false }
        return freshness.stalenessInMilliseconds < seconds * 1000
    }

    private func network(_ reason: CacheStatus.Forwarding, staleOnError: Int? = nil) -> CacheDecision {
        if request.isOffline { return .unsatisfiable(CacheStatus(detail: reason.rawValue)) }
        return .forward(ForwardPlan(reason: reason, fields: request.fieldsForOthers, staleOnError: staleOnError))
    }

    /// Plans a validation. Conditions are added only to a shareable request, which has no conditions of the caller.
    ///
    /// `If-None-Match` contains the tags of all stored 2xx responses, so that the server can select one of them;
    /// `If-Modified-Since` contains the date of the best match. A response with a coding that the request does not
    /// accept is omitted, because a weak comparison could select it (RFC 9110 §13.1.2).
    private func validation(_ reason: CacheStatus.Forwarding, staleOnError: Int? = nil) -> ForwardPlan {
        var fields = FieldBlock()
        var offered: [Int] = []
        if request.isShareable {
            let matching = VariantRule.matching(request, variants)
            let valid = variants.indices.filter { canBeValidated(variants[$0]) }
            let best = matching.first.flatMap { valid.contains($0) ? $0 : nil }
            let modified = best.flatMap { lastModified(variants[$0]) }
            let hasTag = best.map { variants[$0].entityTag != nil } ?? false
            // A server that receives tags ignores the date, so the date of a response without a tag is sent alone.
            if hasTag || modified == nil {
                let others = VariantRule.newestFirst(valid.filter { !matching.contains($0) }, variants)
                let tags = tags(matching.filter(valid.contains) + others, offered: &offered)
                if !tags.isEmpty { fields.append(name: "If-None-Match".utf8, value: tags) }
            }
            if let best, let modified, hasTag == (offered.first == best) {
                fields.append(name: "If-Modified-Since".utf8, value: modified)
                if !hasTag { offered = [best] }
            }
        }
        if request.mode == .revalidate, !request.fields.contains("Cache-Control") {
            fields.append(name: "Cache-Control", value: "max-age=0")
        }
        return ForwardPlan(reason: reason, fields: fields, offered: offered, staleOnError: staleOnError)
    }

    /// Returns the tags of stored responses as a list. A tag that would exceed ``tagLimit`` is omitted.
    private func tags(_ indices: [Int], offered: inout [Int]) -> [UInt8] {
        var tags: [UInt8] = []
        for index in indices {
            guard let tag = variants[index].entityTag?.bytes, tags.count + tag.count + 2 <= CacheLookupRule.tagLimit
            else { continue }
            if !tags.isEmpty { tags += [0x2C, 0x20] }
            tags += tag
            offered.append(index)
        }
        return tags
    }

    /// Returns the date as the server wrote it, since some servers only compare the text; `nil` if it is invalid.
    private func lastModified(_ variant: StoredVariant) -> ArraySlice<UInt8>? {
        variant.dates.lastModified.flatMap { _ in variant.head.fields.rawValues(of: "Last-Modified").first }
    }

    private func canBeValidated(_ variant: StoredVariant) -> Bool {
        (200..<300).contains(variant.head.status) && variant.head.key == request.key
            && ContentCodingRule.accepts(variant, request)
    }
}
