public import MartletClient

/// What one gets for a request that was given to an ``OfflineQueue``, and by which its events are told apart.
///
/// It holds no secret: fields that are not stored are not in it either.
public struct OfflineTicket: Hashable, Sendable, CustomStringConvertible {
    /// The number in its queue.
    public let id: OfflineID
    /// The line it stands in.
    public let lane: String
    /// What the caller called it; `nil` where it was not named.
    public let tag: String?
    /// The method.
    public let method: HTTPRequest.Method
    /// Where it goes, without user name and password.
    public let url: HTTPURL
    /// The value of its field `Idempotency-Key`, by which the server knows a repetition; `nil` without one.
    public let idempotencyKey: String?

    init(_ request: FrozenRequest) {
        id = request.id
        lane = request.lane
        tag = request.tag
        method = HTTPRequest.Method(rawValue: request.method) ?? .post
        url = request.url
        idempotencyKey = request.idempotencyKey
    }

    /// The number, the method and the URL.
    public var description: String { "\(id): \(method.rawValue) \(url.redacted)" }
}
