import CMartletZlib

/// The end of each flushed message, which is not sent (RFC 7692 §7.2.1): an empty stored block without its first bits.
private let messageTail: [UInt8] = [0x00, 0x00, 0xFF, 0xFF]

/// A decompressor for the messages of one direction of a connection, in raw deflate (RFC 7692 §7.2.2). It holds zlib's
/// state, about 40 KiB with the largest window, from the first message on; without a context only during a message. One
/// consumer owns it.
package final class MessageInflater {
    private let windowBits: Int
    private let keepsContext: Bool
    private var inflater: Inflater?
    private var tail = messageTail[...]
    /// Whether a call without input may return bytes, or throw the error that followed the last bytes.
    package private(set) var hasMore = false

    /// Creates a decompressor.
    /// - Parameters:
    ///   - windowBits: The base-two logarithm of the window's size, from 8 to 15.
    ///   - keepsContext: Whether a message may refer to the previous ones.
    package init(windowBits: Int, keepsContext: Bool) {
        // zlib writes windows of 256 bytes as 512, so data for the smaller one is decoded with the larger one.
        (self.windowBits, self.keepsContext) = (min(max(windowBits, 9), 15), keepsContext)
    }

    /// Decompresses a part of a message.
    /// - Parameters:
    ///   - input: The bytes that are not consumed yet.
    ///   - byteCount: The maximum number of bytes to return, at least 1.
    /// - Returns: The decompressed bytes, and the number of consumed bytes. Call it until all are consumed and
    ///   ``hasMore`` is false.
    /// - Throws: An error, after the bytes before it were returned.
    package func decode(_ input: ArraySlice<UInt8>, upTo byteCount: Int) throws(ContentDecodingError) -> (
        bytes: [UInt8], consumed: Int
    ) {
        let inflater = inflater ?? Inflater(rawWindowBits: windowBits)
        self.inflater = inflater
        var bytes = [UInt8](repeating: 0, count: max(byteCount, 1))
        let source = unsafe input.span.bytes
        var span = bytes.mutableSpan
        var room = unsafe span.mutableBytes
        let step = try unsafe source.withUnsafeBytes { (input) throws(ContentDecodingError) in
            try unsafe room.withUnsafeMutableBytes { (output) throws(ContentDecodingError) in
                try unsafe inflater.step(input, endOfInput: false, into: output)
            }
        }
        hasMore = step.produced == bytes.count || inflater.hasFailed
        bytes.removeLast(bytes.count - step.produced)
        return (bytes, step.consumed)
    }

    /// Decompresses the rest of a message whose bytes are all consumed.
    /// - Returns: The bytes; empty at the end of the message. Call it until then.
    /// - Throws: `.truncated` if the message ends within a block.
    package func finish(upTo byteCount: Int) throws(ContentDecodingError) -> [UInt8] {
        inflater?.stopsAfterBlock = true
        if !tail.isEmpty || inflater?.isBetweenBlocks != true {
            let (bytes, consumed) = try decode(tail, upTo: byteCount)
            // The next call of this function continues.
            hasMore = false
            tail = tail.dropFirst(consumed)
            if !bytes.isEmpty { return bytes }
        }
        guard tail.isEmpty, inflater?.isBetweenBlocks == true else { throw .truncated(.deflate) }
        tail = messageTail[...]
        inflater?.stopsAfterBlock = false
        if !keepsContext { inflater = nil }
        return []
    }
}

/// A compressor for the messages of one direction of a connection, in raw deflate (RFC 7692 §7.2.1). It holds zlib's
/// state, 256 KiB with the largest window, from the first message on; without a context only during a message. One
/// consumer owns it.
package final class MessageDeflater {
    private let windowBits: Int
    private let keepsContext: Bool
    private let level: Int?
    private var deflater: Deflater?
    /// The tail of the last part, which is sent before the next part.
    private var held: [UInt8] = []

    /// Creates a compressor.
    /// - Parameters:
    ///   - windowBits: The base-two logarithm of the window's size, from 9 to 15; zlib has no raw data for 8.
    ///   - keepsContext: Whether a message refers to the previous ones.
    ///   - level: zlib's level from 1 to 9; `nil` for its default.
    package init(windowBits: Int, keepsContext: Bool, level: Int?) {
        (self.windowBits, self.keepsContext, self.level) = (min(max(windowBits, 9), 15), keepsContext, level)
    }

    /// Compresses a part of a message.
    /// - Parameters:
    ///   - input: The part; only the last of several parts may be empty.
    ///   - isLast: Whether the message ends with this part.
    /// - Returns: The compressed bytes, hardly more than those of the input. The peer can decompress all of the part.
    package func compress(_ input: ArraySlice<UInt8>, isLast: Bool) throws(ContentEncodingError) -> [UInt8] {
        guard let deflater = deflater ?? Deflater(windowBits: -windowBits, level: level) else {
            throw ContentEncodingError(coding: .deflate)
        }
        self.deflater = deflater
        var output = held
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        var (consumed, isFull) = (0, true)
        while isFull || consumed < input.count {
            // zlib counts the input of a call with 32 bits.
            let part = input[(input.startIndex + consumed)...].prefix(1 << 20)
            let source = unsafe part.span.bytes
            var span = buffer.mutableSpan
            var room = unsafe span.mutableBytes
            let step = unsafe source.withUnsafeBytes { input in
                unsafe room.withUnsafeMutableBytes { output in
                    unsafe deflater.encode(input, flush: Z_SYNC_FLUSH, into: output)
                }
            }
            guard let step else { throw ContentEncodingError(coding: .deflate) }
            consumed += step.consumed
            isFull = step.produced == buffer.count
            output += buffer[..<step.produced]
        }
        held = output.suffix(4) == messageTail[...] ? messageTail : []
        output.removeLast(held.count)
        if isLast {
            held = []
            if !keepsContext { self.deflater = nil }
        }
        return output
    }
}
