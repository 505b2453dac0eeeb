/// Writes what stands between the payloads of a chunked body (RFC 9112 §7.1).
///
/// A chunk whose bytes are at hand is made whole by ``chunk(_:)``: whoever waits for its end before going on has it at once.
/// Where the payload is written apart, the footer of a chunk goes out with the header of the next, so that a chunk costs two
/// writes and not three: header, payload, header, payload, …, last chunk.
package struct ChunkEncoder: Sendable {
    private var hasOpenChunk = false
    private var isFinished = false

    /// Makes an encoder at the start of a body.
    package init() {}

    /// What goes before the next payload.
    ///
    /// - Parameter byteCount: the payload's bytes. For 0 or less nothing is written, since an empty chunk
    ///   would end the body; after the last chunk neither.
    /// - Returns: the bytes to send before the payload.
    package mutating func header(byteCount: Int) -> [UInt8] {
        guard byteCount > 0, !isFinished else { return [] }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(20)
        appendFooter(to: &bytes)
        bytes.append(contentsOf: String(byteCount, radix: 16).utf8)
        bytes.append(ByteClass.carriageReturn)
        bytes.append(ByteClass.lineFeed)
        hasOpenChunk = true
        return bytes
    }

    /// A whole chunk: header, payload and footer.
    ///
    /// - Parameter payload: its bytes; of none, and after the last chunk, nothing is made.
    /// - Returns: the bytes to send, and which of them are the payload.
    package mutating func chunk(_ payload: [UInt8]) -> (bytes: [UInt8], payload: Range<Int>) {
        var bytes = header(byteCount: payload.count)
        guard !bytes.isEmpty else { return ([], 0..<0) }
        let range = bytes.count..<bytes.count + payload.count
        bytes.reserveCapacity(range.upperBound + 2)
        bytes += payload
        appendFooter(to: &bytes)
        hasOpenChunk = false
        return (bytes, range)
    }

    /// The end of the body: the last chunk, the trailers and the empty line. Nothing more comes after it.
    ///
    /// - Parameter trailers: fields to send behind the body.
    /// - Returns: the bytes to send.
    /// - Throws: `invalidFieldName`, `invalidFieldValue`, or `forbiddenTrailer` for a field that frames,
    ///   routes or authenticates (RFC 9110 §6.5.1); the body is still open then.
    package mutating func lastChunk(trailers: [(String, String)] = []) throws(WireError) -> [UInt8] {
        if isFinished { return [] }
        var writer = HeadWriter()
        writer.open()
        for (name, value) in trailers {
            if ChunkEncoder.isForbidden(name) { throw WireError(.forbiddenTrailer, at: 0) }
            try writer.field(name: name, value: value)
        }
        writer.end()
        var bytes: [UInt8] = []
        appendFooter(to: &bytes)
        bytes.append(contentsOf: "0\r\n".utf8)
        bytes.append(contentsOf: writer.bytes)
        isFinished = true
        return bytes
    }

    private func appendFooter(to bytes: inout [UInt8]) {
        guard hasOpenChunk else { return }
        bytes.append(ByteClass.carriageReturn)
        bytes.append(ByteClass.lineFeed)
    }

    private static func isForbidden(_ name: String) -> Bool {
        switch name.lowercased() {
        case "transfer-encoding", "content-length", "host", "trailer", "connection", "te", "upgrade",
            "content-encoding", "content-type", "content-range", "authorization", "proxy-authorization",
            "set-cookie", "cookie", "cache-control", "expect", "max-forwards", "range":
            true
        default: false
        }
    }
}

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
