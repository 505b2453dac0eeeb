/// How the end of a message's body is found (RFC 9112 §6.3).
package enum BodyFraming: Equatable, Sendable {
    /// There is no body, whatever the fields say.
    case none
    /// The body has this many bytes, 0 to 2^63 − 1.
    case length(UInt64)
    /// The body is chunked.
    case chunked
    /// The body ends with the connection. Responses only.
    case untilClose
}
