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
