/// A decoder of a chunked body (RFC 9112 §7.1). Lines must end with CRLF, and sizes must be digits only, because
/// leniency in these places has allowed request smuggling. Extensions and trailers have a limit per message.
package struct ChunkedDecoder: Sendable {
    package enum Event: Equatable, Sendable {
        /// The input ends before the next event, or the body has ended.
        case needMoreBytes
        /// Payload, at this range of the given span.
        case payload(Range<Int>)
        /// The body is complete. Contains the trailers; `nil` if there are none.
        case end(trailers: FieldBlock?)
    }

    /// An event and the number of bytes used up to it, payload included.
    package struct Step: Equatable, Sendable {
        /// The number of used bytes. The caller passes the rest again, followed by new bytes.
        package let consumed: Int
        package let event: Event
    }

    /// The position of the next byte in the grammar. No case carries a buffer, so changing the state copies nothing.
    private enum State: Sendable {
        /// In the hexadecimal digits of a chunk size.
        case size
        /// In blanks after the size: an extension or the line's end may follow.
        case blanks
        case extensions
        /// After the CR of a chunk-size line.
        case sizeLineFeed
        /// In chunk data; `remaining` bytes are left.
        case payload
        /// After chunk data: CR must follow.
        case footerCarriageReturn
        /// After that CR: LF must follow.
        case footerLineFeed
        /// After the last chunk's line.
        case trailers
        /// After the end of the body.
        case finished
    }

    private let limits: WireLimits
    private var state = State.size
    private var digitCount = 0
    /// The part of the chunk size read so far; in chunk data, the number of bytes left.
    private var remaining: UInt64 = 0
    private var extensionByteCount = 0
    /// The offset in the message of the next byte to be used.
    private var offset: Int
    private var trailers: FieldSectionParser?
    package private(set) var payloadByteCount: UInt64 = 0

    /// Creates a decoder at the start of a chunked body.
    /// - Parameter offset: The offset of the body in the message, for the offsets of errors.
    package init(limits: WireLimits = .default, offset: Int = 0) { (self.limits, self.offset) = (limits, offset) }

    /// The number of the next bytes that are certainly payload; 0 if the next byte is framing.
    package var directPayloadByteCount: UInt64 { state == .payload ? remaining : 0 }

    /// Records payload that was received without passing through ``decode(_:)``, at most ``directPayloadByteCount``.
    package mutating func receivedDirectly(_ count: Int) { takePayload(UInt64(clamping: count)) }

    /// Parses bytes up to the first event.
    /// - Parameter unread: The unused bytes.
    /// - Throws: A framing error, or an exceeded limit.
    package mutating func decode(_ unread: Span<UInt8>) throws(WireError) -> Step {
        var index = 0
        while index < unread.count {
            if state == .payload {
                let count = Int(min(remaining, UInt64(unread.count - index)))
                takePayload(UInt64(count))
                return Step(consumed: index + count, event: .payload(index..<index + count))
            }
            if state == .trailers { return try decodeTrailers(unread, from: index) }
            if state == .finished { return Step(consumed: index, event: .needMoreBytes) }
            try decodeFraming(unread[index])
            index += 1
            offset &+= 1
        }
        return Step(consumed: index, event: .needMoreBytes)
    }

    private mutating func takePayload(_ count: UInt64) {
        let taken = min(count, remaining)
        remaining -= taken
        payloadByteCount &+= taken
        offset &+= Int(taken)
        if remaining == 0 { state = .footerCarriageReturn }
    }

    /// Decodes one byte of a chunk-size line or chunk footer.
    private mutating func decodeFraming(_ byte: UInt8) throws(WireError) {
        switch state {
        case .size:
            if let digit = ByteClass.hexDigit(byte) {
                let limit = max(0, min(limits.chunkSizeDigitLimit, 16))
                digitCount += 1
                if digitCount > limit { throw WireError(.chunkSizeTooLong(limit: limit), at: offset) }
                remaining = remaining << 4 | digit
                if remaining > UInt64(Int64.max) { throw WireError(.chunkSizeOverflow, at: offset) }
            } else if digitCount == 0 {
                throw WireError(.invalidChunkSize, at: offset)
            } else {
                try decodeAfterSize(byte)
            }
        case .blanks: try decodeAfterSize(byte)
        case .extensions:
            if byte == ByteClass.carriageReturn {
                state = .sizeLineFeed
            } else if byte == ByteClass.lineFeed {
                throw WireError(.invalidChunkLineEnd, at: offset)
            } else if ByteClass.isFieldValue(byte) {
                try countExtensionByte()
            } else {
                throw WireError(.invalidChunkExtension(byte), at: offset)
            }
        case .sizeLineFeed:
            guard byte == ByteClass.lineFeed else { throw WireError(.invalidChunkLineEnd, at: offset) }
            digitCount = 0
            if remaining > 0 {
                state = .payload
            } else {
                state = .trailers
                trailers = FieldSectionParser(rules: .init(limits, trailersAt: offset &+ 1))
            }
        case .footerCarriageReturn:
            guard byte == ByteClass.carriageReturn else { throw WireError(.invalidChunkFooter, at: offset) }
            state = .footerLineFeed
        case .footerLineFeed:
            guard byte == ByteClass.lineFeed else { throw WireError(.invalidChunkFooter, at: offset) }
            state = .size
        case .payload, .trailers, .finished:
            // `decode` handles these states before this function is called.
            throw WireError(.illegalEvent, at: offset)
        }
    }

    /// Decodes a byte after the digits of a size, or after the blanks that follow them.
    private mutating func decodeAfterSize(_ byte: UInt8) throws(WireError) {
        switch byte {
        case ByteClass.carriageReturn: state = .sizeLineFeed
        case ByteClass.lineFeed: throw WireError(.invalidChunkLineEnd, at: offset)
        case UInt8(ascii: ";"):
            state = .extensions
            try countExtensionByte()
        case ByteClass.space where !limits.isStrict, ByteClass.tab where !limits.isStrict:
            // Some servers pad their sizes; the blanks count towards the limit of the extensions.
            state = .blanks
            try countExtensionByte()
        default: throw WireError(.invalidChunkSize, at: offset)
        }
    }

    private mutating func countExtensionByte() throws(WireError) {
        extensionByteCount += 1
        if extensionByteCount > limits.chunkExtensionByteLimit {
            throw WireError(.chunkExtensionsTooLarge(limit: limits.chunkExtensionByteLimit), at: offset)
        }
    }

    private mutating func decodeTrailers(_ unread: Span<UInt8>, from start: Int) throws(WireError) -> Step {
        guard var section = trailers.take() else { throw WireError(.illegalEvent, at: offset) }
        let rest = unread.extracting(start..<unread.count)
        if let fields = try section.readFields(rest) {
            state = .finished
            offset &+= section.lineStart
            return Step(
                consumed: start + section.lineStart, event: .end(trailers: fields.isEmpty ? nil : fields))
        }
        trailers = section
        return Step(consumed: start, event: .needMoreBytes)
    }
}

/// An encoder of a chunked body (RFC 9112 §7.1). ``chunk(_:)`` encodes a whole chunk, so that a receiver gets its end
/// immediately. With ``header(byteCount:)`` the payload is written separately, and the footer of a chunk together with
/// the next header, so that a chunk costs two writes instead of three.
package struct ChunkEncoder: Sendable {
    private enum State { case betweenChunks, inChunk, finished }

    private var state = State.betweenChunks

    package init() {}

    /// Encodes the bytes before the next payload: the footer of an open chunk, and the header of a new one. Returns no
    /// bytes after the last chunk, and for an empty payload, because an empty chunk would end the body.
    /// - Parameter byteCount: The size of the payload.
    package mutating func header(byteCount: Int) -> [UInt8] {
        guard byteCount > 0, state != .finished else { return [] }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(20)
        appendFooter(to: &bytes)
        bytes.append(contentsOf: String(byteCount, radix: 16).utf8)
        bytes.append(ByteClass.carriageReturn)
        bytes.append(ByteClass.lineFeed)
        state = .inChunk
        return bytes
    }

    /// Encodes a whole chunk: header, payload and footer; no bytes for an empty payload, and after the last chunk.
    /// - Returns: The bytes to send, and the range of the payload in them.
    package mutating func chunk(_ payload: [UInt8]) -> (bytes: [UInt8], payload: Range<Int>) {
        var bytes = header(byteCount: payload.count)
        guard !bytes.isEmpty else { return ([], 0..<0) }
        let range = bytes.count..<bytes.count + payload.count
        bytes.reserveCapacity(range.upperBound + 2)
        bytes += payload
        appendFooter(to: &bytes)
        state = .betweenChunks
        return (bytes, range)
    }

    /// Encodes the end of the body: the last chunk, the trailers and the empty line.
    /// - Throws: `invalidFieldName`, `invalidFieldValue`, or `forbiddenTrailer` for a field that must not be a trailer
    ///   (RFC 9110 §6.5.1). After an error the body is still open.
    package mutating func lastChunk(trailers: [(String, String)] = []) throws(WireError) -> [UInt8] {
        if state == .finished { return [] }
        var encoder = HeadEncoder()
        encoder.beginLines()
        for (name, value) in trailers {
            if ChunkEncoder.isForbidden(name) { throw WireError(.forbiddenTrailer, at: 0) }
            try encoder.field(name: name, value: value)
        }
        encoder.end()
        var bytes: [UInt8] = []
        appendFooter(to: &bytes)
        bytes += Array("0\r\n".utf8) + encoder.bytes
        state = .finished
        return bytes
    }

    private func appendFooter(to bytes: inout [UInt8]) {
        guard state == .inChunk else { return }
        bytes.append(ByteClass.carriageReturn)
        bytes.append(ByteClass.lineFeed)
    }

    private static func isForbidden(_ name: String) -> Bool {
        switch name.lowercased() {
        case "transfer-encoding", "content-length", "host", "trailer", "connection", "te", "upgrade",
            "content-encoding", "content-type", "content-range", "authorization", "proxy-authorization", "set-cookie",
            "cookie", "cache-control", "expect", "max-forwards", "range":
            true
        default: false
        }
    }
}
