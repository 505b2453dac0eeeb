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
