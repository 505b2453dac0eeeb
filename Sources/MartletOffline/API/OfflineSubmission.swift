public import MartletCore

/// The options of a request in an ``OfflineQueue``.
public struct OfflineSubmission: Sendable {
    /// The key by which the server recognizes a repetition.
    public enum Key: Hashable, Sendable {
        /// The one of the request's fields, or of its ``RequestOptions/idempotencyKey``; without one, a random key for
        /// methods that are not idempotent. The default.
        case automatic
        /// This text, sent as a quoted string (RFC 8941 §3.3.3) unless it is one already.
        case value(String)
        /// No key: a request whose method is not idempotent is sent at most once.
        case none
    }

    /// The way a file body is stored.
    public enum FilePolicy: String, Hashable, Sendable, CaseIterable {
        /// The file is read again when the request is sent, and must be unchanged: its size and its SHA-256 are stored.
        case reference
        /// The file is copied into the queue's directory.
        case copy
    }

    /// The lane; `nil` (the default) for the lane of the URL's origin. The requests of a lane are sent one after the
    /// other, in the order of submission; lanes do not wait for each other. At most 1,024 bytes of UTF-8.
    public var lane: String?
    /// A name for the request, included in its events in all processes. At most 4,096 bytes of UTF-8.
    public var tag: String?
    /// The key by which the server recognizes a repetition.
    public var key: Key
    /// The time after which the request is no longer sent; `nil` (the default) for that of the queue.
    public var timeToLive: Duration?
    /// The way a file body is stored; ``FilePolicy/reference`` by default.
    public var filePolicy: FilePolicy

    /// Creates a submission; the properties document the defaults.
    public init(
        lane: String? = nil, tag: String? = nil, key: Key = .automatic, timeToLive: Duration? = nil,
        filePolicy: FilePolicy = .reference
    ) {
        (self.lane, self.tag, self.key) = (lane, tag, key)
        (self.timeToLive, self.filePolicy) = (timeToLive, filePolicy)
    }

    static let laneByteLimit = 1024
    static let tagByteLimit = 4096
}

/// The ticket of a request in an ``OfflineQueue``, included in its events. It has neither header fields nor user info.
public struct OfflineTicket: Hashable, Sendable, CustomStringConvertible {
    /// The identifier of the request in its queue.
    public let id: OfflineID
    /// The lane of the request.
    public let lane: String
    /// The name given by the caller; `nil` without one.
    public let tag: String?
    /// The method of the request.
    public let method: HTTPRequest.Method
    /// The URL, without user name and password.
    public let url: HTTPURL
    /// The value of its field `Idempotency-Key`, by which the server recognizes a repetition; `nil` without one.
    public let idempotencyKey: String?

    init(_ request: QueuedRequest) {
        (id, lane, tag) = (request.id, request.lane, request.tag)
        method = HTTPRequest.Method(rawValue: request.method) ?? .post
        (url, idempotencyKey) = (request.url, request.idempotencyKey)
    }

    /// The number, the method and the URL.
    public var description: String { "\(id): \(method.rawValue) \(url.redacted)" }
}

/// The outcome of a request that may be queued
/// (``HTTPSession/send(_:query:body:headers:timeout:options:whenOffline:)``).
public enum OfflineOutcome: Sendable {
    /// The response, with any status.
    case response(HTTPExchange)
    /// The request could not be sent, or the server cannot handle it at the moment: the queue sends it later.
    case queued(OfflineTicket)
}

/// An event of an ``OfflineQueue``.
public enum OfflineEvent: Sendable {
    /// A request was written to the directory.
    case submitted(OfflineTicket)
    /// A request is being sent; attempts are counted from 1 over all processes.
    case attempt(OfflineTicket, number: Int)
    /// The server accepted the request with a status of 2xx or 304. The body is the part received within
    /// ``OfflineQueueOptions/responseBodyTime``, up to the session's limit for bodies in memory.
    case delivered(OfflineTicket, HTTPExchange)
    /// The request was not accepted, or there was no response, and it will be sent again automatically.
    case postponed(OfflineTicket, OfflinePostponement)
    /// The request would fail again, and stays in the queue as a dead letter until it is retried or dropped.
    case dead(OfflineTicket, OfflineDeadLetter)
    /// The request may have taken effect, which sending it again might repeat. It stays in the queue until it is
    /// retried or dropped. Only requests without an `Idempotency-Key` whose method is not idempotent become uncertain.
    case uncertain(OfflineTicket, OfflineDeadLetter)
    /// The request expired, and stays as ``OfflineDeadLetter/Reason/expired`` until it is retried or dropped.
    case expired(OfflineTicket)
    /// The request was dropped, and left the queue.
    case dropped(OfflineTicket)
    /// A file in the directory is not a readable record of a request, and was moved to this path.
    case recordQuarantined(path: FilePath, reason: String)
    /// A file in the directory cannot be read, and was left in place.
    case recordSkipped(path: FilePath, reason: String)
    /// A record could not be written. The request waits, and the write is retried.
    case fileFailed(OfflineTicket, HTTPError)
    /// No request waits to be sent: only dead letters and uncertain ones are left, if any.
    case drained
}
