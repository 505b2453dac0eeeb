#if Zstandard
    import CMartletZstd

    /// A decoder for Zstandard (RFC 8878) that works incrementally with libzstd. Several frames are joined, and
    /// skippable frames are skipped. A frame with a window larger than 8 MiB is rejected (RFC 9659), because the
    /// decoder stores the window, and the peer sets its size.
    @safe final class ZstandardDecoder: CodingDecoder {
        /// The maximum size of the window as a power of two: 8 MiB.
        private static let windowLogLimit: Int32 = 23

        let coding = ContentCoding.zstandard
        var state = CodingState.outside
        /// The library's state; `nil` before the first byte and after the end.
        private var context: OpaquePointer?
        /// Whether the first frame is complete.
        private var hasFrame = false
        /// Whether the library may hold output that did not fit into the last buffer.
        private var mayHoldOutput = false

        deinit { close() }

        func takeOutside(_ input: UnsafeRawBufferPointer) -> Int {
            if unsafe context == nil {
                unsafe context = ZSTD_createDCtx()
                let status = unsafe ZSTD_DCtx_setParameter(
                    context, ZSTD_d_windowLogMax, ZstandardDecoder.windowLogLimit)
                guard unsafe context != nil, ZSTD_isError(status) == 0 else {
                    fail(.outOfMemory)
                    return 0
                }
            }
            state = .inside
            return 0
        }

        func decode(
            _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer, _ step: inout CodingStep
        ) -> Bool {
            // The library treats repeated calls without progress as an error of the caller.
            guard unsafe !input.isEmpty || mayHoldOutput else { return true }
            var source = unsafe ZSTD_inBuffer(src: input.baseAddress, size: input.count, pos: 0)
            var target = unsafe ZSTD_outBuffer(dst: output.baseAddress, size: output.count, pos: 0)
            let status = unsafe ZSTD_decompressStream(context, &target, &source)
            unsafe step.consumed += source.pos
            unsafe step.produced += target.pos
            unsafe mayHoldOutput = target.pos == target.size
            if ZSTD_isError(status) != 0 {
                fail(makeError(ZSTD_getErrorCode(status), status))
            } else if status == 0 {
                hasFrame = true
                mayHoldOutput = false
                state = .outside
            }
            return false
        }

        private func makeError(_ code: ZSTD_ErrorCode, _ status: Int) -> ContentDecodingError {
            switch code {
            case ZSTD_error_prefix_unknown: hasFrame ? .trailingData(coding) : .invalidHeader(coding)
            case ZSTD_error_checksum_wrong: .checksumMismatch(coding)
            case ZSTD_error_memory_allocation: .outOfMemory
            case ZSTD_error_frameParameter_windowTooLarge: .corrupt(coding, reason: "its window is larger than 8 MiB")
            default: .corrupt(coding, reason: unsafe String(cString: ZSTD_getErrorName(status)))
            }
        }

        func close() {
            guard let context = unsafe context else { return }
            unsafe ZSTD_freeDCtx(context)
            unsafe self.context = nil
        }
    }
#endif
