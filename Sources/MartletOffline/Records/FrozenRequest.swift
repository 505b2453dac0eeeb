package import MartletClient

/// A request that is kept until it is taken: all that is known of it in other processes.
package struct FrozenRequest: Hashable, Sendable {
    /// What is to become of it.
    package enum Stage: Hashable, Sendable {
        /// It is to be sent.
        case waiting
        /// It is being sent, or was when the process ended.
        case sending
        /// It is not sent again by itself.
        case dead(OfflineDeadLetter)
        /// It is not known whether it took effect.
        case uncertain(OfflineDeadLetter)
    }

    /// Its number.
    package var id: OfflineID
    /// The line it stands in.
    package var lane: String
    /// What the caller calls it.
    package var tag: String?
    /// The method.
    package var method: String
    /// Where it goes; without user info and fragment.
    package var url: HTTPURL
    /// Its fields but the secret ones.
    package var fields: HTTPFields
    /// The names of the fields that are not stored.
    package var secretFields: [String] = []
    /// The value of its field `Idempotency-Key`, which is not among ``fields``.
    package var idempotencyKey: String?
    /// What `Content-Type` says unless the fields do.
    package var contentType: String?
    /// Its body.
    package var body = FrozenBody.none
    /// When it was submitted, in milliseconds since 1970.
    package var submitted: Int64
    /// When it expires, in milliseconds since 1970.
    package var expires: Int64
    /// The same moment on the clock that counts from the start of the computer, which no clock step moves.
    package var bootDeadline: BootDeadline?
    /// How often it was begun to be sent.
    package var attempts: UInt32 = 0
    /// What is to become of it.
    package var stage = Stage.waiting

    /// A request that waits.
    package init(
        id: OfflineID, lane: String, method: String, url: HTTPURL, fields: HTTPFields = HTTPFields(),
        submitted: Int64, expires: Int64
    ) {
        self.id = id
        self.lane = lane
        self.method = method
        self.url = url
        self.fields = fields
        self.submitted = submitted
        self.expires = expires
    }

    /// Whether sending it twice does no harm: the method is idempotent (RFC 9110 §9.2.2), or the server knows a repetition
    /// by its key.
    package var isRepeatable: Bool { idempotencyKey != nil || isIdempotent }

    /// Whether its effect is the same however often it is carried out.
    package var isIdempotent: Bool {
        HTTPRequest.Method(rawValue: method)?.isIdempotent ?? false
    }
}
