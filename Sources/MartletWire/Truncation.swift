/// What was cut off when the stream ended too early (RFC 9112 §8).
package enum Truncation: Equatable, Sendable, CustomStringConvertible {
    /// The head was incomplete.
    ///
    /// - Parameter received: bytes of the head that came.
    case head(received: Int)
    /// A body of known length was short.
    ///
    /// - Parameters:
    ///   - expected: bytes that Content-Length announced.
    ///   - received: bytes of the body that came.
    case length(expected: UInt64, received: UInt64)
    /// A chunked body ended before its last chunk and the empty line after its trailers.
    ///
    /// - Parameter received: bytes of payload that came.
    case chunked(received: UInt64)
    /// A body that ends with the connection was not ended by an orderly close.
    ///
    /// - Parameter received: bytes of the body that came.
    case untilClose(received: UInt64)

    /// What was cut off and after how many bytes, as a sentence for people.
    package var description: String {
        switch self {
        case .head(let received): "the stream ended inside the head, after \(received) bytes of it"
        case .length(let expected, let received):
            "the stream ended after \(received) of \(expected) bytes of the body"
        case .chunked(let received):
            "the stream ended before the last chunk, after \(received) bytes of the body"
        case .untilClose(let received):
            "the stream broke off without an orderly close, after \(received) bytes of the body"
        }
    }
}
