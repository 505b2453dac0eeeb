package import MartletWire

/// What is done with the answer of the network: independent effects, all of which the caller carries out.
package struct ResponseDecision: Equatable, Sendable {
    /// What the caller gets.
    package enum Delivery: Equatable, Sendable {
        /// The network's own response.
        case network
        /// The stored response, which the network said is still good, with its new head.
        case stored(CachedAnswer)
        /// The stored response in place of an error (RFC 5861 §4). The error is an event.
        case staleOnError(CachedAnswer)
        /// Nothing yet: the request is sent again without what the cache added, as the 304 is about nothing that is
        /// stored. It may not be offered validators again.
        case repeatUnconditionally
    }

    /// What the caller gets.
    package let delivery: Delivery
    /// Whether the network's response is stored, once its body has come whole.
    package let storage: StorageDecision
    /// The stored responses whose heads are replaced.
    package let freshened: [Freshening]
    /// The stored responses that go now, by index: out of date, or no longer to be kept. A body that is being read is
    /// read to its end.
    package let removed: [Int]
    /// The stored responses that go, by index, where the one that is to be stored turns out to find no room: it says all the
    /// same that they are out of date.
    package let superseded: [Int]
    /// What to say of it; ``CacheStatus/isStored`` as far as is known by the head.
    package let status: CacheStatus

    init(
        delivery: Delivery, storage: StorageDecision, freshened: [Freshening], removed: [Int],
        superseded: [Int] = [], status: CacheStatus
    ) {
        self.delivery = delivery
        self.storage = storage
        self.freshened = freshened
        self.removed = removed
        self.superseded = superseded
        self.status = status
    }
}

/// Whether a response is stored, and as what (RFC 9111 §3, §3.1, §3.5).
///
/// It is decided by the head. Whoever stores must in the end see to it that the body came whole, as its framing has it
/// (RFC 9111 §3.3), and that the URL was not invalidated meanwhile (``InvalidationLedger``).
package enum StorageDecision: Equatable, Sendable {
    /// It is stored with this head.
    case store(StoredHead)
    /// It is not.
    case refuse(StorageRefusal)

    /// Decides about a response.
    ///
    /// - Parameters:
    ///   - response: its head, as it came.
    ///   - request: what it answers.
    ///   - requestTime: when the request was sent.
    ///   - responseTime: when the head came.
    package init(
        _ response: ResponseHead, to request: CacheRequest, requestTime: WallTime, responseTime: WallTime
    ) {
        let control = CacheControl(response: response.fields)
        if let refusal = StorageDecision.refusal(response, request, control) {
            self = .refuse(refusal)
            return
        }
        guard let selections = VaryRule(response.fields).selections(of: request) else {
            self = .refuse(.vary)
            return
        }
        self = .store(
            StoredHead(
                key: request.key, status: response.status,
                reason: response.isReasonLatin1 ? "" : response.reason,
                fields: StoredFields.kept(response.fields, received: responseTime), selections: selections,
                requestTime: requestTime, responseTime: responseTime, wasAuthorized: request.isAuthorized))
    }

    private static func refusal(
        _ response: ResponseHead, _ request: CacheRequest, _ control: CacheControl
    ) -> StorageRefusal? {
        if request.isNoStore { return .noStore }
        if request.method != "GET" { return .method }
        if request.hasRange { return .range }
        let status = response.status
        if status < 200 || status > 999 || StatusRule.isNeverStored(status) { return .status }
        if control.mustUnderstand {
            // Whoever knows the status must not mind the no-store that stands there for those who do not.
            guard StatusRule.isUnderstood(status) else { return .status }
        } else if control.isNoStore {
            return .noStore
        }
        if request.isAuthorized, request.key.partition.isEmpty, !AuthorizationRule.allowsSharing(control) {
            return .authorization
        }
        if StoredFields.isDoubtful(response.fields) { return .connection }
        let saysSo =
            control.isPublic || control.isPrivate != nil || control.maxAge != nil
            || response.fields.contains("Expires")
        return saysSo || StatusRule.isHeuristicallyCacheable(status) ? nil : .notCacheable
    }
}
