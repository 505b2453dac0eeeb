import CZlib

/// Undoes one gzip or deflate coding with zlib, piece by piece.
///
/// It never produces more than the buffer it is given and keeps nothing back but zlib's own state, about 40
/// KiB, taken with the first byte and given back at the end, at an error or with the object. One consumer
/// owns it.
///
/// - gzip: several members are joined. After the last one zero bytes may follow, as gzip(1) accepts from
///   tapes and block devices; any other byte is an error, never dropped silently.
/// - deflate: zlib's wrapper is told from raw data by the first two bytes. Nothing may follow the end.
@safe final class Inflater: CodingDecoder {
    /// What was last seen outside the compressed data.
    private enum Place {
        /// No byte.
        case start
        /// A deflate body's first byte, which may begin zlib's header and waits for its second.
        case undecided(first: UInt8)
        /// The end of the data; what may follow depends on the coding.
        case ended
        /// Zero bytes after the last gzip member.
        case padding
    }

    let coding: ContentCoding
    var state = CodingState.outside
    private var place = Place.start
    /// zlib's state; nil before the first byte and after the end. It may not move: zlib points back at it.
    private var stream: z_streamp?
    /// Whether the first gzip member is complete.
    private var hasMember = false

    /// An inflater for one body.
    init(_ coding: ContentCoding) { self.coding = coding }

    deinit { close() }

    func takeOutside(_ input: UnsafeRawBufferPointer) -> Int {
        let byte = unsafe input[0]
        switch place {
        case .start where coding == .gzip: begin(windowBits: 15 + 16, prefix: [byte])
        case .start:
            // zlib's first byte names method 8 and a window of at most 32 KiB; in raw data the same bits
            // would be a stored block with set padding bits, which no compressor writes.
            if byte & 0x0F == 8, byte >> 4 <= 7 {
                place = .undecided(first: byte)
            } else {
                begin(windowBits: -15, prefix: [byte])
            }
        case .undecided(let first):
            let isWrapped = (UInt(first) << 8 | UInt(byte)) % 31 == 0
            begin(windowBits: isWrapped ? 15 : -15, prefix: [first, byte])
        case .ended where coding == .gzip && byte == 0x1F: begin(windowBits: 15 + 16, prefix: [byte])
        case .ended where coding == .gzip && byte == 0, .padding where byte == 0: place = .padding
        default: fail(.trailingData(coding))
        }
        return 1
    }

    var faultAtEnd: ContentDecodingError? { if case .undecided = place { .truncated(coding) } else { nil } }

    /// Starts zlib on the bytes seen so far, which give no output yet.
    private func begin(windowBits: Int32, prefix: [UInt8]) {
        guard prepare(windowBits: windowBits) == Z_OK else {
            fail(.outOfMemory)
            return
        }
        state = .inside
        // Room for one byte, because zlib wants some; at most two bytes of header or of a block's head fit
        // none.
        var scratch: UInt8 = 0
        var step = CodingStep()
        unsafe prefix.withUnsafeBytes { bytes in
            unsafe withUnsafeMutableBytes(of: &scratch) { room in _ = unsafe decode(bytes, into: room, &step)
            }
        }
    }

    /// Takes zlib's memory for the first data, and clears it for each gzip member after that.
    private func prepare(windowBits: Int32) -> Int32 {
        if let stream = unsafe stream { return unsafe inflateReset(stream) }
        let fresh = z_streamp.allocate(capacity: 1)
        unsafe fresh.initialize(to: z_stream())
        let status = unsafe martlet_inflate_init2(fresh, windowBits)
        if status == Z_OK {
            unsafe stream = fresh
        } else {
            unsafe fresh.deinitialize(count: 1)
            unsafe fresh.deallocate()
        }
        return status
    }

    func decode(
        _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer, _ step: inout CodingStep
    ) -> Bool {
        guard let stream = unsafe stream else { return false }
        let inputCount = min(input.count, Int(Int32.max))
        let outputCount = min(output.count, Int(Int32.max))
        // zlib reads through this pointer and never writes.
        unsafe stream.pointee.next_in = UnsafeMutablePointer(
            mutating: input.baseAddress?.assumingMemoryBound(to: Bytef.self))
        unsafe stream.pointee.avail_in = uInt(inputCount)
        unsafe stream.pointee.next_out = output.baseAddress?.assumingMemoryBound(to: Bytef.self)
        unsafe stream.pointee.avail_out = uInt(outputCount)
        let status = unsafe inflate(stream, Z_NO_FLUSH)
        let inputLeft = unsafe Int(stream.pointee.avail_in)
        let outputLeft = unsafe Int(stream.pointee.avail_out)
        // Neither pointer may outlive the call.
        unsafe stream.pointee.next_in = nil
        unsafe stream.pointee.next_out = nil
        step.consumed += inputCount - inputLeft
        step.produced += outputCount - outputLeft
        switch status {
        case Z_STREAM_END:
            hasMember = true
            place = .ended
            state = .outside
            // Another gzip member may follow.
            if coding != .gzip { close() }
            return false
        case Z_OK, Z_BUF_ERROR: return inputLeft == 0 && inputCount == input.count && outputLeft > 0
        case Z_NEED_DICT: fail(.corrupt(coding, reason: "a preset dictionary is needed"))
        case Z_MEM_ERROR: fail(.outOfMemory)
        default:
            let reason = unsafe stream.pointee.msg.map { unsafe String(cString: $0) }
            fail(fault(reason ?? "zlib status \(status)"))
        }
        return false
    }

    /// zlib tells its data errors apart by text alone.
    private func fault(_ reason: String) -> ContentDecodingError {
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
