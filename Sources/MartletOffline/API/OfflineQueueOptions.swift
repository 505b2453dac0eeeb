public import MartletClient

/// How an ``OfflineQueue`` works.
public struct OfflineQueueOptions: Sendable {
    /// How much it holds and does at once.
    public var limits: OfflineLimits
    /// How long it waits between two tries.
    public var backoff: OfflineBackoff
    /// After which time a request is not sent any more; seven days by default.
    public var expires: Duration
    /// Fields that are secret, besides `Authorization`, `Cookie` and `Proxy-Authorization`: they are not stored.
    public var secretFields: Set<HTTPField.Name>
    /// How its requests are sent otherwise than the session does it. Retries, the validator, the cache's mode and
    /// `Idempotency-Key` are the queue's own and not taken from here.
    public var request: RequestOptions
    /// Who tells that the network's path has come back, or is another, so that what could not be reached is tried at once; that
    /// of the system by default, `nil` for nobody. Nothing is held back for what it says.
    public var networkMonitor: NetworkMonitor?
    /// Whether it sends what it holds, as it does by default. One that does not only keeps.
    public var isSending: Bool

    /// Options; see the properties for what is so by default.
    public init(
        limits: OfflineLimits = OfflineLimits(), backoff: OfflineBackoff = OfflineBackoff(),
        expires: Duration = .seconds(7 * 24 * 3600), secretFields: Set<HTTPField.Name> = [],
        request: RequestOptions = RequestOptions(), networkMonitor: NetworkMonitor? = .system,
        isSending: Bool = true
    ) {
        self.limits = limits
        self.backoff = backoff
        self.expires = expires
        self.secretFields = secretFields
        self.request = request
        self.networkMonitor = networkMonitor
        self.isSending = isSending
    }
}
