import CMartletZlib

/// A decoder for one gzip or deflate coding, or for a sequence of messages, that works incrementally with zlib.
///
/// It stores only zlib's state, about 40 KiB, from the first byte to the end or an error. One consumer owns it.
///
/// - gzip: several members are joined. Zero bytes may follow the last one, as gzip(1) accepts from tapes and block
///   devices; any other byte is an error.
/// - deflate: the first two bytes distinguish zlib's wrapper from raw data. No bytes may follow the end.
@safe final class Inflater: CodingDecoder {
    /// The position outside the compressed data.
    private enum Phase {
        /// Before the first byte.
        case start
        /// After the first byte of a deflate body, which may start zlib's header, and before its second byte.
        case undecided(first: UInt8)
        /// After the end of the data; the coding determines what may follow.
        case ended
        /// Within zero bytes after the last gzip member.
        case padding
    }

    let coding: ContentCoding
    var state = CodingState.outside
    private var phase = Phase.start
    /// zlib's state; `nil` before the first byte and after the end. zlib has a pointer to it, so it must not move.
    private var stream: z_streamp?
    /// Whether the first gzip member is complete.
    private var hasMember = false
    /// Whether more blocks may follow the final one, and use its window (RFC 7692 §7.2.3.4).
    private let isEndless: Bool
    /// Whether each call ends with the current block, so that ``isBetweenBlocks`` is known.
    var stopsAfterBlock = false

    /// Creates a decoder for one body.
    init(_ coding: ContentCoding) { (self.coding, isEndless) = (coding, false) }

    /// Creates a decoder for raw deflate data without an end.
    /// - Parameter windowBits: The base-two logarithm of the window's size, from 8 to 15.
    init(rawWindowBits windowBits: Int) {
        (coding, isEndless) = (.deflate, true)
        begin(windowBits: -Int32(windowBits), prefix: [])
    }

    deinit { close() }

    func takeOutside(_ input: UnsafeRawBufferPointer) -> Int {
        let byte = unsafe input[0]
        switch phase {
        case .start where coding == .gzip: begin(windowBits: 15 + 16, prefix: [byte])
        case .start:
            // zlib's first byte names method 8 and a window of at most 32 KiB. In raw data the same bits would be a
            // stored block with set padding bits, which no compressor writes.
            if byte & 0x0F == 8, byte >> 4 <= 7 {
                phase = .undecided(first: byte)
            } else {
                begin(windowBits: -15, prefix: [byte])
            }
        case .undecided(let first):
            let isWrapped = (UInt(first) << 8 | UInt(byte)) % 31 == 0
            begin(windowBits: isWrapped ? 15 : -15, prefix: [first, byte])
        case .ended where coding == .gzip && byte == 0x1F: begin(windowBits: 15 + 16, prefix: [byte])
        case .ended where coding == .gzip && byte == 0, .padding where byte == 0: phase = .padding
        default: fail(.trailingData(coding))
        }
        return 1
    }

    var errorAtEnd: ContentDecodingError? { if case .undecided = phase { .truncated(coding) } else { nil } }

    /// Whether the last call, with ``stopsAfterBlock``, ended after a block that is not a final one, and between bytes.
    var isBetweenBlocks: Bool { unsafe stream.map { unsafe $0.pointee.data_type & 255 == 128 } ?? false }

    /// Starts zlib with the first bytes, which produce no output yet.
    private func begin(windowBits: Int32, prefix: [UInt8]) {
        let status: Int32
        if let stream = unsafe stream {
            // A further gzip member starts.
            status = unsafe inflateReset(stream)
        } else {
            let fresh = z_streamp.allocate(capacity: 1)
            unsafe fresh.initialize(to: z_stream())
            unsafe stream = fresh
            status = unsafe martlet_inflate_init2(fresh, windowBits)
        }
        guard status == Z_OK else { return fail(.outOfMemory) }
        state = .inside
        // zlib requires room for output, but one or two bytes of a header, or of a block's head, produce none.
        var scratch: UInt8 = 0
        var step = CodingStep()
        unsafe prefix.withUnsafeBytes { bytes in
            unsafe withUnsafeMutableBytes(of: &scratch) { _ = unsafe decode(bytes, into: $0, &step) }
        }
    }

    func decode(_ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer, _ step: inout CodingStep)
        -> Bool
    {
        guard let stream = unsafe stream else { return false }
        let inputCount = min(input.count, Int(Int32.max))
        let outputCount = min(output.count, Int(Int32.max))
        // zlib reads through this pointer and never writes.
        unsafe stream.pointee.next_in = UnsafeMutablePointer(
            mutating: input.baseAddress?.assumingMemoryBound(to: Bytef.self))
        unsafe stream.pointee.avail_in = uInt(inputCount)
        unsafe stream.pointee.next_out = output.baseAddress?.assumingMemoryBound(to: Bytef.self)
        unsafe stream.pointee.avail_out = uInt(outputCount)
        let status = unsafe inflate(stream, stopsAfterBlock ? Z_BLOCK : Z_NO_FLUSH)
        let inputLeft = unsafe Int(stream.pointee.avail_in)
        let outputLeft = unsafe Int(stream.pointee.avail_out)
        // Neither pointer may outlive the call.
        unsafe stream.pointee.next_in = nil
        unsafe stream.pointee.next_out = nil
        step.consumed += inputCount - inputLeft
        step.produced += outputCount - outputLeft
        switch status {
        case Z_STREAM_END where isEndless:
            // The window is kept for the blocks that follow.
            if unsafe inflateResetKeep(stream) != Z_OK { fail(.outOfMemory) }
            return false
        case Z_STREAM_END:
            hasMember = true
            phase = .ended
            state = .outside
            // Another gzip member may follow.
            if coding != .gzip { close() }
            return false
        case Z_OK, Z_BUF_ERROR: return inputLeft == 0 && inputCount == input.count && outputLeft > 0
        case Z_NEED_DICT: fail(.corrupt(coding, reason: "a preset dictionary is needed"))
        case Z_MEM_ERROR: fail(.outOfMemory)
        default:
            let reason = unsafe stream.pointee.msg.map { unsafe String(cString: $0) }
            fail(makeError(reason ?? "zlib status \(status)"))
        }
        return false
    }

    /// Returns the error for a data error of zlib. Only the text distinguishes zlib's data errors.
    private func makeError(_ reason: String) -> ContentDecodingError {
        switch reason {
        case "incorrect header check": hasMember ? .trailingData(coding) : .invalidHeader(coding)
        case "incorrect data check": .checksumMismatch(coding)
        case "incorrect length check": .lengthMismatch(coding)
        default: .corrupt(coding, reason: reason)
        }
    }

    func close() {
        guard let stream = unsafe stream else { return }
        unsafe inflateEnd(stream)
        unsafe stream.deinitialize(count: 1)
        unsafe stream.deallocate()
        unsafe self.stream = nil
    }
}
