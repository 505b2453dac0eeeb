/// The type of a frame (RFC 6455 §5.2).
package enum FrameOpcode: UInt8, Hashable, Sendable {
    /// A further fragment of the current message.
    case continuation = 0x0
    /// The first fragment of a message.
    case text = 0x1, binary = 0x2
    /// A control frame, which may come between two fragments.
    case close = 0x8, ping = 0x9, pong = 0xA

    /// Whether the frame is a control frame (RFC 6455 §5.5).
    package var isControl: Bool { rawValue >= 0x8 }
}

/// The head of a frame (RFC 6455 §5.2).
package struct FrameHead: Hashable, Sendable {
    /// The type of the frame.
    package var opcode: FrameOpcode
    /// Whether the frame is the last one of its message.
    package var isFinal: Bool
    /// Whether the first reserved bit is set: the message is compressed (RFC 7692 §6).
    package var isCompressed: Bool
    /// The size of the payload in bytes, below 2^63.
    package var payloadByteCount: UInt64
    /// The key that masks the payload; `nil` in the frames of a server.
    package var maskingKey: UInt32?

    /// Creates a head.
    package init(
        _ opcode: FrameOpcode, isFinal: Bool = true, isCompressed: Bool = false, payloadByteCount: Int,
        maskingKey: UInt32? = nil
    ) {
        (self.opcode, self.isFinal, self.isCompressed) = (opcode, isFinal, isCompressed)
        (self.payloadByteCount, self.maskingKey) = (UInt64(max(0, payloadByteCount)), maskingKey)
    }

    /// The bytes of the head, at most 14.
    package var bytes: [UInt8] {
        var bytes: [UInt8] = []
        append(to: &bytes)
        return bytes
    }

    private func append(to bytes: inout [UInt8]) {
        func append(_ number: UInt64, byteCount: Int) {
            for index in 1...byteCount {
                bytes.append(UInt8(truncatingIfNeeded: number >> UInt64(8 * (byteCount - index))))
            }
        }
        bytes.append((isFinal ? 0x80 : 0) | (isCompressed ? 0x40 : 0) | opcode.rawValue)
        let mask: UInt8 = maskingKey == nil ? 0 : 0x80
        switch payloadByteCount {
        case ..<126: bytes.append(mask | UInt8(payloadByteCount))
        case ...0xFFFF:
            bytes.append(mask | 126)
            append(payloadByteCount, byteCount: 2)
        default:
            bytes.append(mask | 127)
            append(payloadByteCount, byteCount: 8)
        }
        if let maskingKey { append(UInt64(maskingKey), byteCount: 4) }
    }

    /// Masks or unmasks a part of a payload (RFC 6455 §5.3), eight bytes at a time.
    /// - Parameters:
    ///   - start: The index of the first byte.
    ///   - offset: The offset of that byte in the payload.
    package static func mask(_ bytes: inout [UInt8], from start: Int = 0, with key: UInt32, offset: Int = 0) {
        // The octet for the first byte is in the lowest bits.
        let (octets, bits) = (key.byteSwapped, UInt32(offset & 3) * 8)
        let rotated = UInt64(octets >> bits | octets << (32 - bits))
        var word = rotated << 32 | rotated
        var span = bytes.mutableSpan
        var raw = unsafe span.mutableBytes
        var index = start
        while index &+ 8 <= raw.byteCount {
            let masked = unsafe raw.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self) ^ word.littleEndian
            raw.storeBytes(of: masked, toByteOffset: index, as: UInt64.self)
            index &+= 8
        }
        while index < raw.byteCount {
            let masked = unsafe raw.unsafeLoad(fromByteOffset: index, as: UInt8.self) ^ UInt8(word & 0xFF)
            raw.storeBytes(of: masked, toByteOffset: index, as: UInt8.self)
            (index, word) = (index &+ 1, word >> 8)
        }
    }

    /// Returns a whole frame of a client, masked with a new random key (RFC 6455 §5.3), or of a server, not masked.
    package static func frame(
        _ opcode: FrameOpcode, _ payload: some Collection<UInt8>, isFinal: Bool = true, isCompressed: Bool = false,
        isMasked: Bool = true
    ) -> [UInt8] {
        // The system's generator is unpredictable, as the RFC demands, so that no script chooses the bytes on the wire.
        let key = isMasked ? UInt32.random(in: .min ... .max) : nil
        let head = FrameHead(
            opcode, isFinal: isFinal, isCompressed: isCompressed, payloadByteCount: payload.count, maskingKey: key)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(14 + payload.count)
        head.append(to: &bytes)
        let start = bytes.count
        bytes += payload
        if let key { mask(&bytes, from: start, with: key) }
        return bytes
    }
}

/// A parser of frames in a stream of bytes, however the input is split. It stores a part of a head, and the bytes that
/// were fed and not returned. An error is permanent.
package struct FrameParser: Sendable {
    /// A part of a frame.
    package enum Part: Hashable, Sendable {
        /// The head of a frame.
        case head(FrameHead)
        /// A part of the frame's payload, unmasked, never empty.
        case payload([UInt8])
        /// The end of the frame.
        case end
    }

    /// Whether frames must be masked, as those of a client, or must not be, as those of a server (RFC 6455 §5.1).
    private let isServer: Bool
    private var unread: ArraySlice<UInt8> = []
    private var current: (head: FrameHead, offset: UInt64)?
    private var failure: WebSocketError?

    /// Creates a parser.
    /// - Parameter isServer: Whether it reads the frames of a client.
    package init(isServer: Bool = false) { self.isServer = isServer }

    /// Adds the next bytes of the stream.
    package mutating func feed(_ bytes: [UInt8]) {
        // The rest is a part of a head, or nothing, if the caller has taken all parts.
        unread = unread.isEmpty ? bytes[...] : (unread + bytes)[...]
    }

    /// Returns the next part; `nil` when more bytes are needed.
    package mutating func next() throws(WebSocketError) -> Part? {
        if let failure { throw failure }
        guard let (head, offset) = current else {
            do throws(WebSocketError) {
                guard let head = try parseHead() else { return nil }
                current = (head, 0)
                return .head(head)
            } catch {
                (failure, unread) = (error, [])
                throw error
            }
        }
        if offset == head.payloadByteCount {
            current = nil
            return .end
        }
        if unread.isEmpty { return nil }
        let count = Int(min(UInt64(unread.count), head.payloadByteCount - offset))
        var payload = Array(unread.prefix(count))
        unread.consume(count)
        if let key = head.maskingKey { FrameHead.mask(&payload, with: key, offset: Int(offset & 3)) }
        current = (head, offset + UInt64(count))
        return .payload(payload)
    }

    private mutating func parseHead() throws(WebSocketError) -> FrameHead? {
        let bytes = unread.prefix(14)
        guard let first = bytes.first else { return nil }
        // Checked before the second byte arrives: a peer that speaks another protocol may send nothing else.
        guard first & 0x30 == 0 else { throw .protocolViolation("a frame has a reserved bit") }
        guard let opcode = FrameOpcode(rawValue: first & 0x0F) else {
            throw .protocolViolation("a frame has the unknown opcode \(first & 0x0F)")
        }
        guard bytes.count >= 2 else { return nil }
        let second = bytes[bytes.startIndex + 1]
        let isMasked = second & 0x80 != 0
        guard isMasked == isServer else {
            throw .protocolViolation(isMasked ? "a frame of the server is masked" : "a frame is not masked")
        }
        let short = second & 0x7F
        let isFinal = first & 0x80 != 0
        if opcode.isControl, !isFinal || short > 125 {
            throw .protocolViolation(
                isFinal ? "a control frame has more than 125 bytes" : "a control frame is fragmented")
        }
        let extended = short == 126 ? 2 : short == 127 ? 8 : 0
        let headByteCount = 2 + extended + (isMasked ? 4 : 0)
        guard bytes.count >= headByteCount else { return nil }
        let count = bytes.dropFirst(2).prefix(extended).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        if extended > 0 {
            guard count < 1 << 63 else { throw .protocolViolation("the length of a frame has its highest bit set") }
            guard count > (extended == 2 ? 125 : 0xFFFF) else {
                throw .protocolViolation("the length of a frame is not encoded minimally")
            }
        }
        unread.consume(headByteCount)
        var head = FrameHead(opcode, isFinal: isFinal, isCompressed: first & 0x40 != 0, payloadByteCount: Int(short))
        if extended > 0 { head.payloadByteCount = count }
        if isMasked { head.maskingKey = bytes.prefix(headByteCount).suffix(4).reduce(0) { $0 << 8 | UInt32($1) } }
        return head
    }
}

extension ArraySlice<UInt8> {
    /// Drops bytes from the start. An empty slice would retain its array: 16 KiB for each idle connection.
    mutating func consume(_ count: Int) { self = count == self.count ? [] : dropFirst(count) }
}
