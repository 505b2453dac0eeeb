/// The status line and fields of a response (RFC 9112 §4, §5).
package struct ResponseHead: Sendable, Equatable {
    /// The version the server speaks.
    package var version: WireVersion
    /// The status, 100...999.
    package var status: Int
    /// The reason phrase: empty when missing, UTF-8 when valid, else Latin-1.
    package var reason: String
    /// The fields in the order received.
    package var fields: FieldBlock

    /// Makes a head of its parts; encoders check them, this does not.
    package init(
        version: WireVersion = .http11, status: Int, reason: String = "", fields: FieldBlock = FieldBlock()
    ) {
        self.version = version
        self.status = status
        self.reason = reason
        self.fields = fields
    }

    /// Whether this is an interim response (1xx, RFC 9110 §15.2).
    package var isInformational: Bool { status < 200 }
}
