public import MartletClient

/// How an ``OfflineQueue`` works.
public struct OfflineQueueOptions: Sendable {
    /// How much it holds and does at once.
    public var limits: OfflineLimits
    /// How long it waits between two tries.
    public var backoff: OfflineBackoff
    /// The time after which a request is no longer sent and becomes a dead letter; seven days by default.
    public var expires: Duration
    /// The longest time that the body of a final response may take; 60 s by default.
    ///
    /// The status decides what becomes of the request. A body that takes longer is cut, the connection is closed, and the
    /// event carries the bytes that have arrived.
    public var responseBodyTime: Duration
    /// Whether a response after a redirect that changed the method counts as the response to the request; `false` by default.
    ///
    /// A 302 or 303 after a POST may lead to the result of the request, or to a page that asks the user to sign in. By
    /// default neither is a delivery: the request becomes a dead letter, or uncertain where it must not be sent twice. With
    /// `true`, success after a 303, or after a 302 within the origin, is a delivery. Redirects that keep the method
    /// (307, 308, and 301 by default) are always followed with the body and need no such setting.
    public var acceptsRedirectedResults: Bool
    /// Fields that are secret, besides `Authorization`, `Cookie` and `Proxy-Authorization`: they are not stored.
    public var secretFields: Set<HTTPField.Name>
    /// How its requests are sent otherwise than the session does it. Retries, the validator, the cache's mode and
    /// `Idempotency-Key` are the queue's own and not taken from here.
    public var request: RequestOptions
    /// Who tells that the network's path has come back, or is another, so that what could not be reached is tried at once; that
    /// of the system by default, `nil` for nobody. Nothing is held back for what it says.
    public var networkMonitor: NetworkMonitor?
    /// Whether the queue sends its requests; `true` by default. With `false` it only keeps them, and none expires.
    public var isSending: Bool

    /// Options; see the properties for what is so by default.
    public init(
        limits: OfflineLimits = OfflineLimits(), backoff: OfflineBackoff = OfflineBackoff(),
        expires: Duration = .seconds(7 * 24 * 3600), responseBodyTime: Duration = .seconds(60),
        acceptsRedirectedResults: Bool = false, secretFields: Set<HTTPField.Name> = [],
        request: RequestOptions = RequestOptions(), networkMonitor: NetworkMonitor? = .system,
        isSending: Bool = true
    ) {
        self.limits = limits
        self.backoff = backoff
        self.expires = expires
        self.responseBodyTime = responseBodyTime
        self.acceptsRedirectedResults = acceptsRedirectedResults
        self.secretFields = secretFields
        self.request = request
        self.networkMonitor = networkMonitor
        self.isSending = isSending
    }
}
