import MartletCore

/// The encoder of the messages that a connection sends: it makes fragments of the parts of a message, and compresses
/// them. The parts of one message follow each other.
actor MessageWriter {
    private let deflater: MessageDeflater?
    private let threshold: Int
    private var isFirst = true
    private var isCompressed = false
    private var text: UTF8Validator?

    /// Creates an encoder.
    init(_ negotiation: DeflateNegotiation?, _ compression: WebSocketCompression?) {
        deflater = negotiation?.deflater(level: compression?.level)
        threshold = max(compression?.threshold ?? 0, 1)
    }

    /// Returns the frame of a part.
    /// - Parameters:
    ///   - part: The bytes, which may end within a character; not empty unless it is the last part.
    ///   - isLast: Whether the message ends with this part.
    /// - Throws: A ``WebSocketError``: `.invalidText`; an error of the compressor without memory.
    func frame(_ part: ArraySlice<UInt8>, of kind: WebSocketMessage.Kind, isLast: Bool) throws -> [UInt8] {
        if isFirst {
            // The size of a streamed message is unknown: it is compressed.
            isCompressed = deflater != nil && (!isLast || part.count >= threshold)
            text = kind == .text ? UTF8Validator() : nil
        }
        if text?.accepts(part.span) == false || (isLast && text?.isComplete == false) {
            throw WebSocketError.invalidText
        }
        let payload = try isCompressed ? deflater?.compress(part, isLast: isLast)[...] ?? [] : part
        let opcode: FrameOpcode = !isFirst ? .continuation : kind == .text ? .text : .binary
        defer { isFirst = isLast }
        return FrameHead.frame(opcode, payload, isFinal: isLast, isCompressed: isFirst && isCompressed)
    }
}
