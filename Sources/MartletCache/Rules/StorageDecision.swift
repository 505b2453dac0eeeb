package import MartletWire

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
