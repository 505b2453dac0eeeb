/// The request line and fields of a request (RFC 9112 §3, §5).
package struct RequestHead: Sendable, Equatable {
    /// The method, in the case it was sent.
    package var method: String
    /// The request target as sent: visible ASCII, never empty.
    package var target: String
    /// The version the client speaks.
    package var version: WireVersion
    /// The fields in the order received.
    package var fields: FieldBlock

    /// Makes a head of its parts; encoders check them, this does not.
    package init(
        method: String, target: String, version: WireVersion = .http11, fields: FieldBlock = FieldBlock()
    ) {
        self.method = method
        self.target = target
        self.version = version
        self.fields = fields
    }
}
