import MartletURL
public import MartletCore
public import SystemPackage

/// How a request stands in an ``OfflineQueue``.
public struct OfflineSubmission: Sendable {
    /// By what the server knows a repetition.
    public enum Key: Hashable, Sendable {
        /// A random one for methods that are not idempotent, unless the request has one; the default.
        case automatic
        /// This one, as a quoted string (RFC 8941 §3.3.3) unless it is one already.
        case value(String)
        /// None: a request whose method is not idempotent is sent at most once.
        case none
    }

    /// What becomes of a body that is a file.
    public enum FilePolicy: String, Hashable, Sendable, CaseIterable {
        /// It is read again when the request is sent, and must be what it was: its size and its SHA-256 are kept.
        case reference
        /// It is copied into the queue's directory.
        case copy
    }

    /// The line it stands in; `nil`, the default, for that of its origin. The requests of a lane are sent one after the other,
    /// in the order in which they were submitted; lanes do not wait for each other. At most 1,024 bytes of UTF-8.
    public var lane: String?
    /// What the caller calls it, told with each event about it, in other processes too. At most 4,096 bytes of UTF-8.
    public var tag: String?
    /// By what the server knows a repetition.
    public var key: Key
    /// After which time it is not sent any more; `nil`, the default, for what the queue says.
    public var expires: Duration?
    /// What becomes of a body that is a file; ``FilePolicy/reference`` by default.
    public var files: FilePolicy

    /// A submission; see the properties for what is so by default.
    public init(
        lane: String? = nil, tag: String? = nil, key: Key = .automatic, expires: Duration? = nil,
        files: FilePolicy = .reference
    ) {
        self.lane = lane
        self.tag = tag
        self.key = key
        self.expires = expires
        self.files = files
    }

    static let laneByteLimit = 1024
    static let tagByteLimit = 4096
}

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

/// What came of a request that may be frozen (``MartletCore/HTTPSession/send(_:body:options:whenOffline:)``).
public enum OfflineOutcome: Sendable {
    /// It was answered; the status may be any.
    case answered(HTTPExchange)
    /// It could not be sent, or the server cannot take it just now: the queue sends it later.
    case frozen(OfflineTicket)
}

/// What happens in an ``OfflineQueue``.
public enum OfflineEvent: Sendable {
    /// A request was written to the directory.
    case submitted(OfflineTicket)
    /// A request is being sent, for the so-manieth time, counted from 1 over all processes.
    case attempt(OfflineTicket, number: Int)
    /// The server took it, and it is out of the queue: the status was 2xx, or 304. The body is what came of it, up to the
    /// limit of the session for bodies in memory and within ``OfflineQueueOptions/responseBodyTime``.
    case delivered(OfflineTicket, HTTPExchange)
    /// It was not taken, or not answered, and will be sent again by itself.
    case postponed(OfflineTicket, OfflinePostponement)
    /// It will not be sent again by itself, since that would not help; it stays in the queue as a dead letter until it is
    /// retried or dropped.
    case dead(OfflineTicket, OfflineDeadLetter)
    /// It may have taken effect or not, and sending it again might double that; it stays in the queue until it is retried or
    /// dropped. Only requests without an `Idempotency-Key` come to this, whose method is not idempotent.
    case uncertain(OfflineTicket, OfflineDeadLetter)
    /// Its time was up before a server accepted it. It stays in the queue as a dead letter with the reason
    /// ``OfflineDeadLetter/Reason/expired`` until it is retried or dropped.
    case expired(OfflineTicket)
    /// It was dropped, and is out of the queue.
    case dropped(OfflineTicket)
    /// A file in the directory is no record of a request that can be read, and lies here now.
    case setAside(path: FilePath, reason: String)
    /// A file in the directory cannot be read, and was left where it is.
    case leftAlone(path: FilePath, reason: String)
    /// Something could not be written down. The request waits, and it is tried again.
    case fileFailed(OfflineTicket, HTTPError)
    /// Nothing waits to be sent any more: what is left are dead letters and uncertain ones, if anything.
    case drained
}
