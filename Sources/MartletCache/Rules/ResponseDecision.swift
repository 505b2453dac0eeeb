package import MartletWire

/// The decision about the response of the network. Its effects are independent, and the caller carries out all of them.
package struct ResponseDecision: Equatable, Sendable {
    /// The response that the caller receives.
    package enum Delivery: Equatable, Sendable {
        case network
        /// The stored response that the network confirmed, with its new head.
        case stored(CachedResponse)
        /// The stored response that replaces an error (RFC 5861 §4). The error is reported as an event.
        case staleOnError(CachedResponse)
        /// None yet: the 304 confirms nothing stored. The request is repeated once without the cache's conditions.
        case repeatUnconditionally
    }

    /// The response that the caller receives.
    package private(set) var delivery = Delivery.network
    /// Whether the network's response is stored, once its body is complete.
    package let storage: StorageDecision
    /// The stored responses whose heads are replaced.
    package private(set) var freshened: [Freshening] = []
    /// The stored responses to remove now, by index: out of date, or not to be stored. Running reads continue.
    package private(set) var removed: [Int] = []
    /// The stored responses, by index, that are out of date, and are removed if the new response is not stored.
    package private(set) var superseded: [Int] = []
    /// Whether all earlier responses that match the request are out of date if the new response is not stored: also
    /// those that the decision does not know.
    package private(set) var isSuperseding = false
    /// The status for `Cache-Status`, before anything is stored.
    package let status: CacheStatus

    /// The same decision without a change of stored responses, for the response of a server that was not verified.
    package var changingNothing: ResponseDecision {
        ResponseDecision(delivery: delivery, storage: .reject(.unverified), status: status)
    }
}

/// Decides about the response of the network, or its absence (RFC 9111 §4.3.3, §4.3.4, §4.3.5, RFC 5861 §4).
package struct CacheUpdateRule: Sendable {
    private let request: CacheRequest
    /// The plan with which the request was sent.
    private let plan: ForwardPlan?
    private let variants: [StoredVariant]
    private let policy: CachePolicy

    /// Creates the rule for one request.
    /// - Parameter variants: The stored responses of the decision, in the same order: all indices refer to these.
    package init(
        _ request: CacheRequest, after decision: CacheDecision, variants: [StoredVariant],
        policy: CachePolicy = CachePolicy()
    ) { (self.request, plan, self.variants, self.policy) = (request, decision.plan, variants, policy) }

    /// Decides about a final response, by its head.
    package func received(_ response: ResponseHead, requestTime: WallTime, responseTime: WallTime) -> ResponseDecision {
        var status = CacheStatus(forwarding: plan?.reason, forwardStatus: response.status)
        if request.isNoStore { return ResponseDecision(storage: .reject(.noStore), status: status) }
        let freshen = { (index: Int) in
            Freshening(
                variant: index, variants[index].head, by: response, to: request, requestTime: requestTime,
                responseTime: responseTime)
        }
        if response.status == 304, request.method == "GET" {
            return notModified(response, responseTime, status, freshen)
        }
        if StatusRule.errorsForStale.contains(response.status), let answer = staleAnswer(now: responseTime, status) {
            return ResponseDecision(delivery: .staleOnError(answer), storage: .reject(.error), status: answer.status)
        }
        let matching = VariantRule.matching(request, variants)
        if request.method == "HEAD" { return headed(response, matching, status, freshen) }
        let storage = StorageDecision(response, to: request, requestTime: requestTime, responseTime: responseTime)
        let isSuperseding =
            request.method == "GET" && StatusRule.supersedes(response.status) && !request.hasRange
        let superseded = isSuperseding ? matching : []
        guard case .store(let head) = storage else {
            return ResponseDecision(
                storage: storage, removed: superseded, isSuperseding: isSuperseding, status: status)
        }
        // The caller receives the response, and it is not stored.
        if request.isConditional || request.hasRange {
            let rejection: StorageRejection = request.hasRange ? .range : .condition
            return ResponseDecision(
                storage: .reject(rejection), removed: superseded, isSuperseding: isSuperseding, status: status)
        }
        if response.status >= 500, !matching.isEmpty {
            return ResponseDecision(storage: .reject(.error), status: status)
        }
        status.timeToLive = Freshness(of: head, now: responseTime, defaults: policy.defaults).timeToLive
        return ResponseDecision(
            storage: storage, superseded: superseded, isSuperseding: isSuperseding, status: status)
    }

    /// Decides about a failed request: the stored response that may replace the error, or `nil`.
    /// - Parameter status: The status of the error; `nil` if there was no response.
    package func failed(with status: Int? = nil, now: WallTime) -> CachedResponse? {
        staleAnswer(now: now, CacheStatus(forwarding: plan?.reason, forwardStatus: status))
    }

    private func notModified(
        _ response: ResponseHead, _ now: WallTime, _ status: CacheStatus, _ freshen: (Int) -> Freshening
    ) -> ResponseDecision {
        let offered = plan?.offered.filter(variants.indices.contains) ?? []
        let freshened = FresheningRule.selected(by: response, among: variants, offered: offered).map(freshen)
        let kept = freshened.filter(\.isKept)
        let removed = freshened.filter { !$0.isKept }.map(\.variant).sorted()
        // A 304 to the caller's own conditions is passed to the caller.
        guard let plan, plan.isConditional else {
            return ResponseDecision(storage: .reject(.status), freshened: kept, removed: removed, status: status)
        }
        // The server may confirm a response that was not offered, in a coding that the request does not accept.
        let usable = freshened.first { ContentCodingRule.accepts(variants[$0.variant], request) }
        guard let first = usable else {
            return ResponseDecision(delivery: .repeatUnconditionally, storage: .reject(.status), status: status)
        }
        let stored = StoredVariant(head: first.head, bodyLength: variants[first.variant].bodyLength)
        let freshness = Freshness(of: stored, now: now, defaults: policy.defaults)
        var status = status
        status.timeToLive = freshness.timeToLive
        let answer = CachedResponse(
            variant: first.variant, stored, to: request, freshness: freshness, isValidated: true, status: status)
        return ResponseDecision(
            delivery: .stored(answer), storage: .reject(.status), freshened: kept, removed: removed, status: status)
    }

    /// Decides about the response to HEAD: it updates stored responses to GET, or shows that they are out of date.
    private func headed(
        _ response: ResponseHead, _ matching: [Int], _ status: CacheStatus, _ freshen: (Int) -> Freshening
    ) -> ResponseDecision {
        let concerned = matching.filter { response.status == 200 && variants[$0].head.status == 200 }
        let freshened = concerned.filter { FresheningRule.isSame(response, variants[$0]) }.map(freshen).filter(\.isKept)
        let removed = Set(concerned).subtracting(freshened.map(\.variant)).sorted()
        return ResponseDecision(storage: .reject(.method), freshened: freshened, removed: removed, status: status)
    }

    /// Returns the stored response that replaces an error.
    /// - Parameter asked: The cache status of the request that went to the network: not a hit (RFC 9211 §2.1).
    private func staleAnswer(now: WallTime, _ asked: CacheStatus) -> CachedResponse? {
        guard let index = plan?.staleOnError, variants.indices.contains(index),
            VariantRule.matching(request, variants).contains(index)
        else { return nil }
        let freshness = Freshness(of: variants[index], now: now, defaults: policy.defaults)
        var status = asked
        status.timeToLive = freshness.timeToLive
        status.detail = "stale-if-error"
        return CachedResponse(variant: index, variants[index], to: request, freshness: freshness, status: status)
    }
}
