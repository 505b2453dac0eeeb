public import MartletCore

/// A request in an ``OfflineQueue``.
public struct OfflineEntry: Sendable {
    /// The state of a request.
    public enum State: Hashable, Sendable {
        /// The request waits for its turn, or for the delay of its lane.
        case waiting
        /// The request is being sent.
        case sending
        /// The request is not sent again automatically.
        case dead(OfflineDeadLetter)
        /// The request may have taken effect, and is not sent again automatically.
        case uncertain(OfflineDeadLetter)

        /// Whether the request is dead or uncertain.
        var isResting: Bool {
            switch self {
            case .dead, .uncertain: true
            case .waiting, .sending: false
            }
        }
    }

    /// The ticket of the request.
    public let ticket: OfflineTicket
    /// The state of the request.
    public let state: State
    /// The number of times that the request was sent, over all processes.
    public let attempts: Int
    /// The time of submission, in milliseconds since 1970.
    public let submittedAt: Int64
    /// The time of expiry, in milliseconds since 1970.
    public let expiresAt: Int64
    /// The length of the body in bytes.
    public let bodyByteCount: UInt64
    /// The names of the fields that were not stored. The queue's ``OfflineCredentials`` have to add them.
    public let secretFields: [String]
}

/// The identifier of a queued request, stable across processes.
public struct OfflineID: Hashable, Sendable, Codable, Comparable, CustomStringConvertible {
    /// The number of the request in its queue.
    public let number: UInt64

    /// Creates an identifier from its number.
    public init(_ number: UInt64) { self.number = number }

    /// Orders by number: requests that were submitted first come first.
    public static func < (left: OfflineID, right: OfflineID) -> Bool { left.number < right.number }

    /// The number of the request in its queue.
    public var description: String { "\(number)" }
}

/// The reason why a request is not sent again automatically.
public struct OfflineDeadLetter: Hashable, Sendable {
    /// The kind of a reason.
    public enum Reason: String, Hashable, Sendable, CaseIterable {
        /// The server rejected the request, and would reject it again.
        case refused
        /// The request was sent, and its effect is unknown.
        case noResponse
        /// The process ended while the request was being sent.
        case interrupted
        /// The file of the body has changed since the request was submitted.
        case bodyChanged
        /// The stored body is damaged.
        case bodyDamaged
        /// The request expired before a server accepted it.
        case expired
        /// The request is invalid, or the settings of the session do not allow it to be sent.
        case unsendable
    }

    /// The kind of the reason.
    public let reason: Reason
    /// The reason as readable text.
    public let message: String
    /// The status of the response; `nil` without a response.
    public let statusCode: Int?
    /// The fields of the response, without secret ones.
    public let fields: HTTPFields
    /// The start of the response body, at most 64 KiB.
    public let body: [UInt8]
    /// The maximum number of stored bytes of a response body.
    static let bodyLimit = 64 * 1024

    init(
        _ reason: Reason, message: String, statusCode: Int? = nil, fields: HTTPFields = HTTPFields(), body: [UInt8] = []
    ) {
        self.reason = reason
        self.message = String(String.UnicodeScalarView(message.unicodeScalars.prefix(4096)))
        (self.statusCode, self.fields, self.body) = (statusCode, fields, body)
    }

    /// The maximum size of a dead letter in a record, in bytes: body, message, fields, and their framing.
    static let byteLimit = 1 << 20
    private static let fieldByteLimit = 512 * 1024

    /// Returns the fields that fit a record: the first 1000, up to the limit of their bytes.
    static func bounded(_ fields: HTTPFields) -> HTTPFields {
        var bounded = HTTPFields()
        var byteCount = 0
        for field in fields.prefix(1000) {
            byteCount += field.value.utf8.count + field.name.rawName.utf8.count
            guard byteCount <= fieldByteLimit else { break }
            bounded.append(field)
        }
        return bounded
    }
}

/// The reason why a request of an ``OfflineQueue`` is sent again later, and the delay.
public struct OfflinePostponement: Sendable {
    /// The kind of a reason.
    public enum Reason: String, Hashable, Sendable, CaseIterable {
        /// No connection could be opened, or it was lost: retried immediately when the network path returns.
        case unreachable
        /// The server cannot handle the request at the moment, or does not yet know the result of an earlier attempt.
        case refused
        /// The server requires other credentials: retried on ``OfflineQueue/credentialsChanged()``, or after
        /// ``OfflineBackoff/maximumDelay``.
        case unauthorized
        /// The closure that adds the credentials threw an error.
        case credentialsFailed
        /// A file could not be read or written.
        case storage
    }

    /// The kind of the reason.
    public let reason: Reason
    /// The delay of the request's lane; another event may shorten it.
    public let delay: Duration
    /// The failure, or the response of the server, as readable text.
    public let message: String
}
