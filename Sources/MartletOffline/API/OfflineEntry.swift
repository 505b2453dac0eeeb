public import MartletCore

/// What an ``OfflineQueue`` knows of a request that it holds.
public struct OfflineEntry: Sendable {
    /// What is to become of it.
    public enum State: Sendable {
        /// It waits for its turn, or for its lane.
        case waiting
        /// It is being sent.
        case sending
        /// It is not sent again by itself.
        case dead(OfflineDeadLetter)
        /// It is not known whether it took effect.
        case uncertain(OfflineDeadLetter)
    }

    /// Which one.
    public let ticket: OfflineTicket
    /// What is to become of it.
    public let state: State
    /// How often it was sent, over all processes.
    public let attempts: Int
    /// When it was submitted, in milliseconds since 1970.
    public let submitted: Int64
    /// When it expires, in milliseconds since 1970.
    public let expires: Int64
    /// How many bytes its body has.
    public let bodyByteCount: UInt64
    /// The fields that were not stored, and that the closure of the queue has to add.
    public let secretFields: [String]
}

/// What a frozen request is known by in its queue, in other processes too.
public struct OfflineID: Hashable, Sendable, Codable, Comparable, CustomStringConvertible {
    /// The number.
    public let number: UInt64

    /// An identity by its number.
    public init(_ number: UInt64) { self.number = number }

    /// Orders by number: those that were submitted first come first.
    public static func < (left: OfflineID, right: OfflineID) -> Bool { left.number < right.number }

    /// The number.
    public var description: String { "\(number)" }
}

/// Why a request is not sent again by itself.
public struct OfflineDeadLetter: Hashable, Sendable {
    /// What kind of end it was.
    public enum Reason: String, Hashable, Sendable, CaseIterable {
        /// The server refused it, and would again.
        case refused
        /// What happened after it was sent is not known.
        case unanswered
        /// The process ended while it was being sent.
        case interrupted
        /// The file that was to be its body is not what it was when the request was submitted.
        case bodyChanged
        /// What was kept of its body is damaged.
        case bodyDamaged
        /// Its time was up before a server accepted it.
        case expired
        /// It cannot be sent: the session's settings do not allow it.
        case unsendable
    }

    /// What kind of end it was.
    public let reason: Reason
    /// What was wrong, in words.
    public let message: String
    /// The status of the answer; `nil` where there was none.
    public let statusCode: Int?
    /// The fields of the answer, without those that are secret.
    public let fields: HTTPFields
    /// The beginning of the answer's body, 64 KiB at most.
    public let body: [UInt8]

    /// How much of an answer's body is kept, in bytes.
    static let bodyLimit = 64 * 1024

    init(
        _ reason: Reason, message: String, statusCode: Int? = nil, fields: HTTPFields = HTTPFields(),
        body: [UInt8] = []
    ) {
        self.reason = reason
        self.message = String(String.UnicodeScalarView(message.unicodeScalars.prefix(4096)))
        self.statusCode = statusCode
        self.fields = fields
        self.body = body
    }

    init(_ reason: Reason, message: String, answer: HTTPExchange, secrets: SecretFields) {
        self.init(
            reason, message: message, statusCode: answer.statusCode,
            fields: OfflineDeadLetter.bounded(secrets.stripped(from: answer.response.headerFields).kept),
            body: Array(answer.body.prefix(OfflineDeadLetter.bodyLimit)))
    }

    /// How much room a record has for a dead letter, in bytes: that of the body, the message, the fields, and what stands
    /// around them.
    static let byteLimit = 1 << 20
    private static let fieldByteLimit = 512 * 1024

    /// Fields that fit a record: the first thousand, as long as they are of some sane length together.
    private static func bounded(_ fields: HTTPFields) -> HTTPFields {
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

/// Why a request of an ``OfflineQueue`` is sent again later, and when.
public struct OfflinePostponement: Sendable {
    /// Why.
    public enum Reason: String, Hashable, Sendable, CaseIterable {
        /// No connection could be opened, or it broke: tried again when the network's path comes back, at once.
        case unreachable
        /// The server answered that it cannot, just now; or it does not know yet what became of an earlier try.
        case refused
        /// The server wants credentials that were not to be had: tried again when ``OfflineQueue/credentialsChanged()`` says
        /// so, and at the longest interval.
        case unauthorized
        /// The closure that adds the credentials threw.
        case credentialsFailed
        /// A file could not be read or written.
        case storage
    }

    /// Why.
    public let reason: Reason
    /// How long its lane waits; something else may make it shorter.
    public let delay: Duration
    /// What failed, or what the server said, in words.
    public let message: String

    init(_ reason: Reason, delay: Duration, message: String) {
        self.reason = reason
        self.delay = delay
        self.message = message
    }
}
