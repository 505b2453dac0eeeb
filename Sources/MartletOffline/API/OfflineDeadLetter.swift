public import MartletClient

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
