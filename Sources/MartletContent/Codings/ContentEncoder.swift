import CMartletZlib

/// The error of a compression: its library could not allocate its memory.
package struct ContentEncodingError: Error, Hashable, Sendable, CustomStringConvertible {
    let coding: ContentCoding

    /// The error as a sentence without a full stop.
    package var description: String { "not enough memory to compress the body with \(coding.rawValue)" }
}

/// A streaming encoder of one content coding for one body. It stores only the state of its library. One consumer owns
/// it.
package final class ContentEncoder {
    /// The maximum number of bytes that one call consumes, so that it ends soon: 256 KiB.
    private static let inputLimit = 256 << 10
    /// The maximum number of bytes that one call returns: 32 KiB.
    private static let outputLimit = 32 << 10

    private let coding: ContentCoding
    private let encoder: any CodingEncoder

    /// Creates an encoder for one body.
    package init(_ compression: BodyCompression) throws(ContentEncodingError) {
        coding = compression.coding
        guard let encoder = coding.makeEncoder(level: compression.level) else {
            throw ContentEncodingError(coding: coding)
        }
        self.encoder = encoder
    }

    /// Compresses a piece of the body, or the first part of a large piece. The encoder holds bytes back until it has
    /// enough to compress them well, so a call may return none.
    /// - Parameters:
    ///   - input: The bytes that are not consumed yet.
    ///   - endOfInput: Whether the body ends with this input; once true, it stays true.
    /// - Returns: The compressed bytes, the number of consumed bytes, and whether the body is complete. If it is not,
    ///   pass the rest of the input again.
    package func encode(_ input: ArraySlice<UInt8>, endOfInput: Bool) throws(ContentEncodingError) -> (
        bytes: [UInt8], consumed: Int, isFinished: Bool
    ) {
        let part = input.prefix(ContentEncoder.inputLimit)
        let isLast = endOfInput && part.count == input.count
        var bytes = [UInt8](repeating: 0, count: ContentEncoder.outputLimit)
        var total = CodingStep()
        let source = unsafe part.span.bytes
        var span = bytes.mutableSpan
        var room = unsafe span.mutableBytes
        try unsafe source.withUnsafeBytes { (input) throws(ContentEncodingError) in
            try unsafe room.withUnsafeMutableBytes { (output) throws(ContentEncodingError) in
                while !total.isFinished, total.produced < output.count {
                    let rest = unsafe UnsafeRawBufferPointer(rebasing: input[total.consumed...])
                    let room = unsafe UnsafeMutableRawBufferPointer(rebasing: output[total.produced...])
                    guard let step = unsafe encoder.encode(rest, endOfInput: isLast, into: room) else {
                        throw ContentEncodingError(coding: coding)
                    }
                    total.consumed += step.consumed
                    total.produced += step.produced
                    total.isFinished = step.isFinished
                    if step.consumed == 0, step.produced == 0 { break }
                }
            }
        }
        bytes.removeLast(bytes.count - total.produced)
        return (bytes, total.consumed, total.isFinished)
    }
}

/// An encoder of one content coding. Each conforming type wraps one library, and its initializer fails if the library
/// cannot allocate its memory.
protocol CodingEncoder: AnyObject {
    /// Runs the library once. The output is not empty.
    /// - Parameter endOfInput: Whether the body ends with this input; once true, it stays true.
    /// - Returns: The numbers of bytes consumed and produced, and whether the body is complete; `nil` if the library
    ///   failed.
    func encode(_ input: UnsafeRawBufferPointer, endOfInput: Bool, into output: UnsafeMutableRawBufferPointer)
        -> CodingStep?
}

extension ContentCoding {
    /// Returns an encoder for one body in this coding; `nil` if there is not enough memory.
    fileprivate func makeEncoder(level: Int?) -> (any CodingEncoder)? {
        switch self {
        case .gzip, .deflate: return Deflater(self, level: level)
        #if Brotli
            case .brotli: return BrotliEncoder(level: level)
        #endif
        #if Zstandard
            case .zstandard: return ZstandardEncoder(level: level)
        #endif
        }
    }
}

/// An encoder for gzip or deflate with zlib, which holds about 256 KiB, or less with a small window.
@safe final class Deflater: CodingEncoder {
    /// zlib's state. zlib has a pointer to it, so it must not move.
    private let stream: z_streamp

    convenience init?(_ coding: ContentCoding, level: Int?) {
        self.init(windowBits: coding == .gzip ? 15 + 16 : 15, level: level)
    }

    /// Creates an encoder; `nil` if there is not enough memory.
    /// - Parameter windowBits: zlib's number for the format and the window: from -9 to -15 for raw deflate.
    init?(windowBits: Int, level: Int?) {
        unsafe stream = z_streamp.allocate(capacity: 1)
        unsafe stream.initialize(to: z_stream())
        let level = level.map { Int32(min(max($0, 1), 9)) } ?? Z_DEFAULT_COMPRESSION
        guard unsafe martlet_deflate_init2(stream, level, Int32(windowBits)) == Z_OK else { return nil }
    }

    deinit {
        // Has no effect on a stream whose initialization failed.
        unsafe deflateEnd(stream)
        unsafe stream.deinitialize(count: 1)
        unsafe stream.deallocate()
    }

    func encode(_ input: UnsafeRawBufferPointer, endOfInput: Bool, into output: UnsafeMutableRawBufferPointer)
        -> CodingStep?
    { unsafe encode(input, flush: endOfInput ? Z_FINISH : Z_NO_FLUSH, into: output) }

    /// Runs zlib once, like ``encode(_:endOfInput:into:)``, with one of zlib's flush modes.
    func encode(_ input: UnsafeRawBufferPointer, flush: Int32, into output: UnsafeMutableRawBufferPointer)
        -> CodingStep?
    {
        // zlib reads through this pointer and never writes.
        unsafe stream.pointee.next_in = UnsafeMutablePointer(
            mutating: input.baseAddress?.assumingMemoryBound(to: Bytef.self))
        unsafe stream.pointee.avail_in = uInt(input.count)
        unsafe stream.pointee.next_out = output.baseAddress?.assumingMemoryBound(to: Bytef.self)
        unsafe stream.pointee.avail_out = uInt(output.count)
        let status = unsafe deflate(stream, flush)
        // Neither pointer may outlive the call.
        unsafe stream.pointee.next_in = nil
        unsafe stream.pointee.next_out = nil
        guard status == Z_OK || status == Z_BUF_ERROR || status == Z_STREAM_END else { return nil }
        return unsafe CodingStep(
            consumed: input.count - Int(stream.pointee.avail_in),
            produced: output.count - Int(stream.pointee.avail_out), isFinished: status == Z_STREAM_END)
    }
}
