/// How the length of a response's body is told to the client (RFC 9112 §6).
public enum OriginFraming: Sendable, Hashable {
    /// Content-Length where the length is known, else chunked; for HTTP/1.0 the end of the connection.
    case automatic
    /// Chunked, in chunks of at most so many bytes; `nil` leaves them as they were written.
    case chunked(size: Int? = nil)
    /// The body ends with the connection.
    case untilClose
}
