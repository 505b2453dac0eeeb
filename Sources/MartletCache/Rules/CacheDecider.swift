package import MartletWire

/// The steps of ``CacheDecision``, in the order of RFC 9111 §4.
struct CacheDecider {
    let request: CacheRequest
    let variants: [StoredVariant]
    let now: WallTime
    let policy: CachePolicy

    func decide() -> CacheDecision {
        // What is not there cannot be what a request refuses to use (RFC 9211 §2.2).
        let refused: CacheStatus.Forwarding = variants.isEmpty ? .uriMiss : .request
        if request.isNoStore { return network(request.mode == .noStore ? .bypass : refused) }
        guard request.isLookedUp else { return network(.method) }
        if request.mode == .reload || request.hasOriginPrecondition { return network(refused) }
        // One variant, as most have, needs no list.
        if variants.count == 1 {
            return VariantRule.matches(request, variants[0]) ? decide(0, matching: nil) : miss()
        }
        let matching = VariantRule.matching(request, variants)
        guard let best = matching.first else { return miss() }
        return decide(best, matching: matching)
    }

    /// Nothing that is stored was chosen by what this request says.
    private func miss() -> CacheDecision {
        if variants.isEmpty { return network(.uriMiss) }
        if request.isOffline { return unsatisfiable(.varyMiss) }
        let plan = plan(.varyMiss, matching: [], isErrorBridged: false)
        return plan.isConditional ? .validate(plan) : network(.varyMiss)
    }

    /// Something stored fits: whether it may be used.
    /// - Parameter matching: all that fits; `nil` where there is no other.
    private func decide(_ best: Int, matching: [Int]?) -> CacheDecision {
        let stored = variants[best]
        guard PartRule.canServe(request, stored) else { return network(.miss) }
        let control = stored.facts.control
        let freshness = Freshness(of: stored, now: now, defaults: policy.defaults)
        let isUnwanted = isUnwanted(freshness, control)
        let mayServeFresh = freshness.isFresh && !control.isNoCache && !isUnwanted
        if mayServeFresh || mayServeStale(freshness, control, isUnwanted) {
            return .serve(answer(best, freshness))
        }
        let reason: CacheStatus.Forwarding = freshness.isFresh && isUnwanted ? .request : .stale
        if request.isOffline { return unsatisfiable(reason) }
        let isBridged = mayBridgeError(freshness, control)
        guard request.method == "GET", !request.hasRange, !request.isConditional else {
            return network(reason, staleOnError: isBridged ? best : nil)
        }
        let plan = plan(reason, matching: matching ?? [best], isErrorBridged: isBridged)
        if request.mode == .cacheThenNetwork { return .serveThenValidate(answer(best, freshness), plan) }
        if !isUnwanted, mayServeWhileRevalidating(freshness, control) {
            return .serveStaleWhileRevalidating(answer(best, freshness), plan)
        }
        return .validate(plan)
    }

    // MARK: Whether it may be used

    /// Whether the request refuses it for a reason of its own, however fresh it is.
    private func isUnwanted(_ freshness: Freshness, _ control: CacheControl) -> Bool {
        if request.control.isNoCache { return true }
        if request.mode == .revalidate, !(control.isImmutable && freshness.isFresh) { return true }
        if let limit = request.control.maxAge, freshness.ageInMilliseconds > limit * 1000 { return true }
        if let margin = request.control.minFresh,
            freshness.lifetime * 1000 - freshness.ageInMilliseconds < margin * 1000
        {
            return true
        }
        return false
    }

    /// Whether the request accepts it although it is stale (RFC 9111 §4.2.4).
    private func mayServeStale(_ freshness: Freshness, _ control: CacheControl, _ isUnwanted: Bool) -> Bool {
        guard !freshness.isFresh, !isUnwanted, !control.forbidsStale else { return false }
        if request.mode == .preferCache || request.mode == .onlyIfCached { return true }
        if request.control.maxStale?.accepts(stalenessInMilliseconds: freshness.stalenessInMilliseconds)
            == true
        {
            return true
        }
        // Without a network there is no revalidation: what was allowed meanwhile is allowed.
        return request.isOffline && mayServeWhileRevalidating(freshness, control)
    }

    private func mayServeWhileRevalidating(_ freshness: Freshness, _ control: CacheControl) -> Bool {
        guard !freshness.isFresh, !control.forbidsStale, let seconds = control.staleWhileRevalidate else {
            return false
        }
        return freshness.stalenessInMilliseconds < seconds * 1000
    }

    /// Whether it may stand in for an error: neither it nor the request forbids it, and one of both, or the policy,
    /// gives it the time. A response that is fresh, but was to be validated, may as well.
    private func mayBridgeError(_ freshness: Freshness, _ control: CacheControl) -> Bool {
        guard !control.forbidsStale, !request.control.isNoCache, request.mode != .revalidate else {
            return false
        }
        let stated = [control.staleIfError, request.control.staleIfError].compactMap { $0 }.max()
        guard let seconds = stated ?? policy.staleIfError else { return false }
        return freshness.stalenessInMilliseconds < seconds * 1000
    }

    // MARK: What is done

    private func answer(_ index: Int, _ freshness: Freshness) -> CachedAnswer {
        CachedAnswer(
            variant: index, variants[index], to: request, freshness: freshness,
            status: CacheStatus(isHit: true, timeToLive: freshness.timeToLive))
    }

    private func plan(
        _ reason: CacheStatus.Forwarding, matching: [Int], isErrorBridged: Bool
    ) -> ValidationPlan {
        ValidationPlan(
            matching: matching, variants: variants, request: request, reason: reason,
            isStaleUsableOnError: isErrorBridged, isRefreshing: request.mode == .revalidate)
    }

    private func network(_ reason: CacheStatus.Forwarding, staleOnError: Int? = nil) -> CacheDecision {
        if request.isOffline { return unsatisfiable(reason) }
        let isShareable =
            request.method == "GET" && !request.isNoStore && !request.hasRange && !request.isConditional
        return .forward(
            ForwardPlan(
                reason: reason, fields: request.fieldsForOthers, staleOnError: staleOnError,
                isShareable: isShareable))
    }

    private func unsatisfiable(_ reason: CacheStatus.Forwarding) -> CacheDecision {
        .unsatisfiable(CacheStatus(detail: reason.rawValue))
    }
}

/// What is to be done with a request, by what is stored: the one place where that is decided (RFC 9111 §4).
package enum CacheDecision: Equatable, Sendable {
    /// The stored response answers; no network.
    case serve(CachedAnswer)
    /// The stored response answers, and is validated behind it, once for all who ask meanwhile (RFC 5861 §3).
    case serveStaleWhileRevalidating(CachedAnswer, ValidationPlan)
    /// The stored response is a first delivery, and what comes of validating it the second
    /// (``CacheMode/cacheThenNetwork``).
    case serveThenValidate(CachedAnswer, ValidationPlan)
    /// The network is asked whether what is stored is still good, or plainly where there is no validator.
    case validate(ValidationPlan)
    /// The network answers.
    case forward(ForwardPlan)
    /// Nothing may answer but the cache, and it has no response that may: status 504 (RFC 9111 §5.2.1.7).
    case unsatisfiable(CacheStatus)

    /// Decides.
    ///
    /// - Parameters:
    ///   - request: what is asked, and how.
    ///   - variants: everything that is stored under its key, in any order; complete responses alone.
    ///   - now: the present.
    ///   - policy: what the cache does beyond what messages ask for.
    package init(
        _ request: CacheRequest, variants: [StoredVariant], now: WallTime, policy: CachePolicy = CachePolicy()
    ) { self = CacheDecider(request: request, variants: variants, now: now, policy: policy).decide() }

    /// The validation that it asks for, at once or behind an answer.
    var validation: ValidationPlan? {
        switch self {
        case .validate(let plan), .serveThenValidate(_, let plan), .serveStaleWhileRevalidating(_, let plan):
            plan
        case .serve, .forward, .unsatisfiable: nil
        }
    }

    /// The fields that the cache adds to the request.
    package var fields: FieldBlock {
        if case .forward(let plan) = self { plan.fields } else { validation?.fields ?? FieldBlock() }
    }
}

/// How stale a response a request accepts (`max-stale`, RFC 9111 §5.2.1.2).
package enum StaleTolerance: Equatable, Sendable {
    /// However stale.
    case any
    /// Stale for at most so many seconds, 0…2^31.
    case seconds(Int64)

    /// Whether a response is accepted that became stale so many milliseconds ago.
    package func accepts(stalenessInMilliseconds staleness: Int64) -> Bool {
        switch self {
        case .any: true
        case .seconds(let seconds): staleness <= seconds * 1000
        }
    }

    /// The stricter of both.
    func stricter(_ other: StaleTolerance?) -> StaleTolerance {
        switch (self, other) {
        case (_, nil): self
        case (.any, .some(let other)): other
        case (.seconds, .any): self
        case (.seconds(let mine), .seconds(let others)): .seconds(min(mine, others))
        }
    }
}

/// How a request goes to the network that no stored response has a part in.
package struct ForwardPlan: Equatable, Sendable {
    /// Why.
    package let reason: CacheStatus.Forwarding
    /// The fields that are added to it: `Cache-Control: no-cache` for ``CacheMode/reload``, `no-store` for
    /// ``CacheMode/noStore``.
    package let fields: FieldBlock
    /// The stored response that may stand in for an error, by index (RFC 5861 §4).
    package let staleOnError: Int?
    /// Whether an answer may be stored, so that requests like it may wait for it: GET without `no-store`, parts and
    /// conditions of the caller's.
    package let isShareable: Bool
}
