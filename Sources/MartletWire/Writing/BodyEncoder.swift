/// Frames an outgoing body, and holds its source to what was announced: a body of known length that is short
/// or long would make the peer take the next message for its rest (RFC 9112 §6.2).
///
/// For each payload: send ``prefix(byteCount:)``, then the payload; at the end send ``finish(trailers:)``.
/// After a fault the message cannot be completed and its connection must be closed.
package struct BodyEncoder: Sendable {
    /// What is left to be sent, by kind of framing.
    private enum State: Sendable {
        /// A body of known length; so many of its bytes were not sent yet.
        case length(announced: UInt64, remaining: UInt64)
        /// A chunked body.
        case chunked(ChunkEncoder)
        /// A body that ends with the connection: nothing is framed.
        case untilClose
    }

    private var state: State

    /// Makes the encoder of a body framed in this way; ``BodyFraming/none`` is a body of no bytes.
    package init(_ framing: BodyFraming) {
        switch framing {
        case .none: state = .length(announced: 0, remaining: 0)
        case .length(let length): state = .length(announced: length, remaining: length)
        case .chunked: state = .chunked(ChunkEncoder())
        case .untilClose: state = .untilClose
        }
    }

    /// What goes before the next payload.
    ///
    /// - Parameter byteCount: the payload's bytes.
    /// - Returns: the bytes to send before it; often none.
    /// - Throws: `bodyTooLong`, with the count of bytes that fitted; no byte of this payload may be sent.
    package mutating func prefix(byteCount: Int) throws(WireError) -> [UInt8] {
        switch state {
        case .length(let announced, let remaining):
            let count = UInt64(max(0, byteCount))
            guard count <= remaining else {
                throw WireError(
                    .bodyTooLong(announced: announced), at: Int(clamping: announced - remaining))
            }
            state = .length(announced: announced, remaining: remaining - count)
            return []
        case .chunked(var encoder):
            let bytes = encoder.header(byteCount: byteCount)
            state = .chunked(encoder)
            return bytes
        case .untilClose: return []
        }
    }

    /// The end of the body.
    ///
    /// - Parameter trailers: fields behind a chunked body; other framings have none and drop them.
    /// - Returns: the bytes to send; often none.
    /// - Throws: `bodyTooShort`, with the count of bytes sent; or what ``ChunkEncoder/lastChunk(trailers:)``
    ///   refuses.
    package mutating func finish(trailers: [(String, String)] = []) throws(WireError) -> [UInt8] {
        switch state {
        case .length(let announced, let remaining):
            if remaining == 0 { return [] }
            throw WireError(.bodyTooShort(announced: announced), at: Int(clamping: announced - remaining))
        case .chunked(var encoder):
            let bytes = try encoder.lastChunk(trailers: trailers)
            state = .chunked(encoder)
            return bytes
        case .untilClose: return []
        }
    }
}
