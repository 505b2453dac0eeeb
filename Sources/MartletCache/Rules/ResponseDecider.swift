package import MartletWire

/// Decides about what the network said, or that it said nothing (RFC 9111 §4.3.3, §4.3.4, §4.3.5, RFC 5861 §4).
package struct ResponseDecider: Sendable {
    /// What was asked.
    package let request: CacheRequest
    /// What was decided about it, and what its request went out with.
    package let decision: CacheDecision
    /// What the decision was made about, in the same order: all indices are of these.
    package let variants: [StoredVariant]
    /// Those of them, by index, that can no longer be read: evicted, cleared or damaged meanwhile.
    package let lost: Set<Int>
    /// What the cache does beyond what messages ask for.
    package let policy: CachePolicy

    /// A decider for one request.
    package init(
        _ request: CacheRequest, after decision: CacheDecision, variants: [StoredVariant],
        lost: Set<Int> = [], policy: CachePolicy = CachePolicy()
    ) {
        self.request = request
        self.decision = decision
        self.variants = variants
        self.lost = lost
        self.policy = policy
    }

    /// What is done with a final response.
    ///
    /// - Parameters:
    ///   - response: its head.
    ///   - requestTime: when the request was sent.
    ///   - responseTime: when the head came.
    package func received(
        _ response: ResponseHead, requestTime: WallTime, responseTime: WallTime
    ) -> ResponseDecision {
        var status = CacheStatus(forwarding: reason, forwardStatus: response.status)
        if request.isNoStore { return passed(.refuse(.noStore), status: status) }
        if response.status == 304, request.method == "GET" {
            return notModified(response, requestTime, responseTime, status)
        }
        if StatusRule.isErrorForStale(response.status), let answer = staleAnswer(now: responseTime, status) {
            return ResponseDecision(
                delivery: .staleOnError(answer), storage: .refuse(.error), freshened: [], removed: [],
                status: answer.status)
        }
        if request.method == "HEAD" { return headed(response, requestTime, responseTime, status) }
        let storage = StorageDecision(
            response, to: request, requestTime: requestTime, responseTime: responseTime)
        let matching = VariantRule.matching(request, variants)
        let isSuperseded = request.method == "GET" && StatusRule.supersedes(response.status)
        let superseded = isSuperseded && !request.hasRange ? matching : []
        guard case .store(let head) = storage else {
            return passed(storage, removed: superseded, status: status)
        }
        // It is answered to the caller, and its body goes past the store.
        if request.isConditional || request.hasRange {
            return passed(
                .refuse(request.hasRange ? .range : .condition), removed: superseded, status: status)
        }
        if response.status >= 500, !matching.isEmpty { return passed(.refuse(.error), status: status) }
        status.isStored = true
        status.timeToLive = Freshness(of: head, now: responseTime, defaults: policy.defaults).timeToLive
        return passed(storage, superseded: superseded, status: status)
    }

    /// What is done when no response came, or an error in its place: the stored one that may stand in for it, or nil.
    ///
    /// - Parameters:
    ///   - status: the error's; nil where no response came.
    ///   - now: the present.
    package func failed(with status: Int? = nil, now: WallTime) -> CachedAnswer? {
        staleAnswer(now: now, CacheStatus(forwarding: reason, forwardStatus: status))
    }

    // MARK: 304

    private func notModified(
        _ response: ResponseHead, _ requestTime: WallTime, _ responseTime: WallTime, _ status: CacheStatus
    ) -> ResponseDecision {
        let offered = plan?.offered.filter(variants.indices.contains) ?? []
        let selected = FresheningRule.selected(by: response, among: variants, offered: offered)
            .filter { !lost.contains($0) }
        let freshened = selected.map { index in
            Freshening(
                variant: index, variants[index].head, by: response, to: request, requestTime: requestTime,
                responseTime: responseTime)
        }
        let kept = freshened.filter(\.isKept)
        let removed = freshened.filter { !$0.isKept }.map(\.variant).sorted()
        // Conditions of the caller's own are answered to the caller.
        guard let plan, plan.isConditional else {
            return ResponseDecision(
                delivery: .network, storage: .refuse(.status), freshened: kept, removed: removed,
                status: status)
        }
        // A server may name what was not offered: in a coding that the request does not take, it is of no use.
        let usable = freshened.first { CodingRule.accepts(variants[$0.variant], request) }
        guard let first = usable else {
            return ResponseDecision(
                delivery: .repeatUnconditionally, storage: .refuse(.status), freshened: [], removed: [],
                status: status)
        }
        let stored = StoredVariant(head: first.head, bodyLength: variants[first.variant].bodyLength)
        let freshness = Freshness(of: stored, now: responseTime, defaults: policy.defaults)
        var status = status
        status.timeToLive = freshness.timeToLive
        status.isStored = first.isKept
        let answer = CachedAnswer(
            variant: first.variant, stored, to: request, freshness: freshness, isValidated: true,
            status: status)
        return ResponseDecision(
            delivery: .stored(answer), storage: .refuse(.status), freshened: kept, removed: removed,
            status: status)
    }

    // MARK: HEAD

    /// A success updates the stored responses that a GET would have got, or shows that they are out of date.
    private func headed(
        _ response: ResponseHead, _ requestTime: WallTime, _ responseTime: WallTime, _ status: CacheStatus
    ) -> ResponseDecision {
        var freshened: [Freshening] = []
        var removed: [Int] = []
        if response.status == 200 {
            for index in VariantRule.matching(request, variants) where variants[index].head.status == 200 {
                guard HeadUpdateRule.isSame(response, variants[index]) else {
                    removed.append(index)
                    continue
                }
                let update = Freshening(
                    variant: index, variants[index].head, by: response, to: request, requestTime: requestTime,
                    responseTime: responseTime)
                if update.isKept { freshened.append(update) } else { removed.append(index) }
            }
        }
        return ResponseDecision(
            delivery: .network, storage: .refuse(.method), freshened: freshened, removed: removed.sorted(),
            status: status)
    }

    // MARK: Parts

    private var plan: ValidationPlan? { decision.validation }

    private var reason: CacheStatus.Forwarding? {
        if case .forward(let plan) = decision { return plan.reason }
        return plan?.reason
    }

    private var staleOnError: Int? {
        if case .forward(let plan) = decision { return plan.staleOnError }
        guard let plan, plan.isStaleUsableOnError else { return nil }
        return plan.selected
    }

    /// - Parameter asked: what became of asking the network, which is no hit (RFC 9211 §2.1).
    private func staleAnswer(now: WallTime, _ asked: CacheStatus) -> CachedAnswer? {
        guard let index = staleOnError, variants.indices.contains(index), !lost.contains(index),
            VariantRule.matching(request, variants).contains(index)
        else { return nil }
        let freshness = Freshness(of: variants[index], now: now, defaults: policy.defaults)
        var status = asked
        status.timeToLive = freshness.timeToLive
        status.detail = "stale-if-error"
        return CachedAnswer(
            variant: index, variants[index], to: request, freshness: freshness, status: status)
    }

    private func passed(
        _ storage: StorageDecision, removed: [Int] = [], superseded: [Int] = [], status: CacheStatus
    ) -> ResponseDecision {
        ResponseDecision(
            delivery: .network, storage: storage, freshened: [], removed: removed, superseded: superseded,
            status: status)
    }
}
