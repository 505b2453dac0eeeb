public import MartletClient

/// Who adds to a queue's requests what is not stored with them.
///
/// Each closure runs in a task of its own, and may make calls. When the queue is closed the task is cancelled, and the queue
/// ends without waiting for it.
public struct OfflineCredentials: Sendable {
    /// Adds the credentials to a request that is about to be sent. Its `Idempotency-Key` stays what it was, whatever comes back.
    public var authorize: @Sendable (HTTPRequest) async throws -> HTTPRequest
    /// Gets new credentials, when a server has answered 401 to what ``authorize`` made: once for all requests that were sent
    /// with the old ones. `nil` where asking ``authorize`` again is enough.
    public var refresh: (@Sendable () async throws -> Void)?

    /// Credentials by closures.
    public init(
        refresh: (@Sendable () async throws -> Void)? = nil,
        authorize: @escaping @Sendable (HTTPRequest) async throws -> HTTPRequest
    ) {
        self.refresh = refresh
        self.authorize = authorize
    }
}
