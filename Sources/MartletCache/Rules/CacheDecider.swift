import MartletWire

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
        if request.mode == .cacheThenNetwork {
            return .serveThenValidate(answer(best, freshness), plan)
        }
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
