package import MartletCore

/// The limits of received messages.
package struct MessageLimits: Hashable, Sendable {
    /// The maximum size of a frame's payload in bytes.
    package var frameByteCount: Int
    /// The maximum size of a message in bytes, after decompression.
    package var messageByteCount: Int
    /// The maximum expansion of a compressed message.
    package let ratio = DecompressionLimits()

    /// Creates limits; by default only that of the ratio.
    package init(frameByteCount: Int = .max, messageByteCount: Int = .max) {
        (self.frameByteCount, self.messageByteCount) = (frameByteCount, messageByteCount)
    }
}

/// A machine that makes messages of the bytes of a connection (RFC 6455 §5, RFC 7692 §6.2). It stores at most the bytes
/// that were fed, the payload of one control frame, and the state of the decompressor. An error is permanent. After a
/// Close frame all bytes are ignored.
package struct MessageParser {
    /// Something that the peer sent.
    package enum Event: Hashable, Sendable {
        /// The beginning of a message.
        case start(WebSocketMessage.Kind)
        /// The next bytes of the message, at most 16 KiB, never empty. Those of a text are valid UTF-8, but a piece may
        /// end within a character.
        case data([UInt8])
        /// The end of the message.
        case end
        /// A Ping frame, which a Pong frame with the same payload must follow.
        case ping([UInt8])
        /// A Pong frame.
        case pong([UInt8])
        /// A Close frame, with `.noStatus` if it has no code.
        case close(WebSocketCloseCode, String)
    }

    private struct Message {
        let kind: WebSocketMessage.Kind
        let isCompressed: Bool
        var receivedByteCount = 0
        var inflatedByteCount = 0
        var byteCount = 0
        var text = UTF8Validator()
    }

    private static let pieceByteCount = 16 << 10

    private let limits: MessageLimits
    private let inflater: MessageInflater?
    private var frames: FrameParser
    private var message: Message?
    private var control: (opcode: FrameOpcode, payload: [UInt8])?
    /// Compressed bytes of the message that are not decompressed yet.
    private var compressed: ArraySlice<UInt8> = []
    /// Whether the current frame is the last one of its message.
    private var isLastFrame = false
    /// Whether all frames of the message were received, and its end was not returned.
    private var isEnding = false
    private var isClosed = false
    private var failure: WebSocketError?

    /// Creates the machine of a new connection.
    /// - Parameters:
    ///   - isServer: Whether the frames are those of a client.
    ///   - inflater: The decompressor; `nil` if no compression was negotiated.
    package init(isServer: Bool = false, limits: MessageLimits, inflater: MessageInflater?) {
        (self.limits, self.inflater, frames) = (limits, inflater, FrameParser(isServer: isServer))
    }

    /// Adds the next bytes of the connection, after ``next()`` has returned `nil`.
    package mutating func feed(_ bytes: [UInt8]) { if !isClosed, failure == nil { frames.feed(bytes) } }

    /// Returns the next event; `nil` when more bytes are needed.
    package mutating func next() throws(WebSocketError) -> Event? {
        if let failure { throw failure }
        do throws(WebSocketError) { return try advance() } catch {
            (failure, compressed) = (error, [])
            throw error
        }
    }

    private mutating func advance() throws(WebSocketError) -> Event? {
        while !isClosed {
            if let event = try pendingData() { return event }
            guard let part = try frames.next() else { return nil }
            switch part {
            case .head(let head):
                if let event = try begin(head) { return event }
            case .payload(let bytes):
                if control != nil {
                    control?.payload += bytes
                } else if message?.isCompressed == true {
                    compressed = bytes[...]
                } else {
                    return try deliver(bytes)
                }
            case .end:
                if let (opcode, payload) = control {
                    control = nil
                    return try end(opcode, payload)
                }
                isEnding = isLastFrame
            }
        }
        return nil
    }

    private mutating func begin(_ head: FrameHead) throws(WebSocketError) -> Event? {
        if head.opcode.isControl {
            guard !head.isCompressed else { throw .protocolViolation("a control frame has a reserved bit") }
            control = (head.opcode, [])
            return nil
        }
        let isFirst = head.opcode != .continuation
        guard isFirst == (message == nil) else {
            throw .protocolViolation(
                isFirst ? "a message starts within another one" : "a continuation frame is not part of a message")
        }
        guard !head.isCompressed || (isFirst && inflater != nil) else {
            throw .protocolViolation("a frame is marked as compressed, which it cannot be")
        }
        isLastFrame = head.isFinal
        if isFirst {
            message = Message(kind: head.opcode == .text ? .text : .binary, isCompressed: head.isCompressed)
        }
        guard var message else { return nil }
        if head.payloadByteCount > UInt64(limits.frameByteCount) {
            throw .messageTooLarge(limit: limits.frameByteCount)
        }
        // Both numbers are below 2^63, so that the sum does not overflow.
        let received = UInt64(message.receivedByteCount) + head.payloadByteCount
        // Incompressible data grows a little.
        let room = UInt64(limits.messageByteCount)
        guard received <= room + (message.isCompressed ? room >> 6 + 64 : 0) else {
            throw .messageTooLarge(limit: limits.messageByteCount)
        }
        message.receivedByteCount = Int(clamping: received)
        self.message = message
        return isFirst ? .start(message.kind) : nil
    }

    /// Decompresses the next piece, and ends the message after its last frame.
    private mutating func pendingData() throws(WebSocketError) -> Event? {
        guard let message else { return nil }
        if message.isCompressed, let inflater {
            let bytes = try inflate(inflater, message)
            if !bytes.isEmpty { return try deliver(bytes) }
        }
        guard isEnding else { return nil }
        guard message.text.isComplete else { throw .invalidText }
        (self.message, isEnding) = (nil, false)
        return .end
    }

    /// Returns the next decompressed bytes; empty if more bytes are needed, and at the end of the message.
    private mutating func inflate(_ inflater: MessageInflater, _ message: Message) throws(WebSocketError) -> [UInt8] {
        do throws(ContentDecodingError) {
            while !compressed.isEmpty || inflater.hasMore {
                let (bytes, consumed) = try inflater.decode(compressed, upTo: MessageParser.pieceByteCount)
                compressed.consume(consumed)
                self.message?.inflatedByteCount += consumed
                if !bytes.isEmpty { return bytes }
                // Without progress, this would be an endless loop.
                if consumed == 0, !compressed.isEmpty { throw .corrupt(.deflate, reason: "no progress") }
            }
            // Some peers send an empty message as no bytes at all.
            guard isEnding, message.receivedByteCount > 0 else { return [] }
            return try inflater.finish(upTo: MessageParser.pieceByteCount)
        } catch { throw .invalidCompression("\(error)") }
    }

    private mutating func deliver(_ bytes: [UInt8]) throws(WebSocketError) -> Event {
        guard var message else { return .data(bytes) }
        // Errors are found in the order of the bytes, so that they do not depend on how the bytes arrive.
        let allowed = bytes.span.extracting(first: limits.messageByteCount - message.byteCount)
        if message.kind == .text, !message.text.accepts(allowed) { throw .invalidText }
        guard allowed.count == bytes.count else { throw .messageTooLarge(limit: limits.messageByteCount) }
        message.byteCount += bytes.count
        if message.isCompressed, limits.ratio.isExceeded(output: message.byteCount, input: message.inflatedByteCount) {
            throw .invalidCompression("a message expands by more than \(limits.ratio.maximumRatio) to 1")
        }
        self.message = message
        return .data(bytes)
    }

    private mutating func end(_ opcode: FrameOpcode, _ payload: [UInt8]) throws(WebSocketError) -> Event {
        switch opcode {
        case .ping: return .ping(payload)
        case .pong: return .pong(payload)
        default: break
        }
        isClosed = true
        guard let first = payload.first else { return .close(.noStatus, "") }
        guard payload.count > 1 else { throw .protocolViolation("a Close frame has 1 byte") }
        let code = WebSocketCloseCode(rawValue: UInt16(first) << 8 | UInt16(payload[1]))
        guard code.isAllowedInFrames else {
            throw .protocolViolation("a Close frame has the invalid code \(code.rawValue)")
        }
        guard let reason = String(validating: payload.dropFirst(2), as: UTF8.self) else { throw .invalidText }
        return .close(code, reason)
    }
}
