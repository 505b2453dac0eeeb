#if Zstandard
    import CZstd

    /// Undoes Zstandard (RFC 8878) with libzstd, piece by piece.
    ///
    /// Several frames are joined, and frames to be skipped are. A frame whose window is larger than 8 MiB is refused, as RFC
    /// 9659 has it: the window is what a decoder has to keep in memory, and it is the peer who names it. A body of no bytes
    /// at all decodes to none, as for the other codings.
    @safe final class ZstandardDecoder: CodingDecoder {
        private enum State {
            /// No byte has been seen.
            case start
            /// Within a frame.
            case decoding
            /// Between two frames, or behind the last one.
            case ended
            /// The input has ended where it may.
            case finished
            /// An error was found; it is thrown again by every call.
            case failed(ContentDecodingError)
        }

        /// The window's size as a power of two: 8 MiB.
        private static let windowLogLimit: Int32 = 23

        private var state = State.start
        /// The library's state; nil before the first byte and after the end.
        private var context: OpaquePointer?
        /// Whether the first frame is complete.
        private var hasFrame = false
        /// Whether the library may hold bytes that there was no room for.
        private var mayHoldOutput = false

        deinit {
            close()
        }

        func step(
            _ input: UnsafeRawBufferPointer, endOfInput: Bool, into output: UnsafeMutableRawBufferPointer
        ) throws(ContentDecodingError) -> CodingStep {
            var step = CodingStep()
            while unsafe !output.isEmpty {
                let rest = unsafe UnsafeRawBufferPointer(rebasing: input[step.consumed...])
                switch state {
                case .failed(let error):
                    // Bytes already written in this call come first.
                    if step.produced == 0 { throw error }
                    return step
                case .finished:
                    step.isFinished = true
                    return step
                case .start, .ended:
                    if unsafe rest.isEmpty {
                        guard endOfInput else { return step }
                        state = .finished
                        close()
                    } else {
                        begin()
                    }
                case .decoding:
                    guard step.produced < output.count else { return step }
                    // The library takes calls without input and without output for a caller that is lost.
                    if unsafe rest.isEmpty, !mayHoldOutput {
                        guard endOfInput else { return step }
                        fail(.truncated(.zstandard))
                        continue
                    }
                    let room = unsafe UnsafeMutableRawBufferPointer(rebasing: output[step.produced...])
                    unsafe decode(rest, into: room, &step)
                }
            }
            return step
        }

        private func begin() {
            if unsafe context == nil {
                unsafe context = ZSTD_createDCtx()
                let status = unsafe ZSTD_DCtx_setParameter(
                    context, ZSTD_d_windowLogMax, ZstandardDecoder.windowLogLimit)
                guard unsafe context != nil, ZSTD_isError(status) == 0 else { return fail(.outOfMemory) }
            }
            state = .decoding
        }

        /// Runs the library once.
        private func decode(
            _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer,
            _ step: inout CodingStep
        ) {
            var source = unsafe ZSTD_inBuffer(src: input.baseAddress, size: input.count, pos: 0)
            var target = unsafe ZSTD_outBuffer(dst: output.baseAddress, size: output.count, pos: 0)
            let status = unsafe ZSTD_decompressStream(context, &target, &source)
            unsafe step.consumed += source.pos
            unsafe step.produced += target.pos
            unsafe mayHoldOutput = target.pos == target.size
            if ZSTD_isError(status) != 0 {
                fail(fault(ZSTD_getErrorCode(status), status))
            } else if status == 0 {
                hasFrame = true
                mayHoldOutput = false
                state = .ended
            }
        }

        private func fault(_ code: ZSTD_ErrorCode, _ status: Int) -> ContentDecodingError {
            switch code {
            case ZSTD_error_prefix_unknown: hasFrame ? .trailingData(.zstandard) : .invalidHeader(.zstandard)
            case ZSTD_error_checksum_wrong: .checksumMismatch(.zstandard)
            case ZSTD_error_memory_allocation: .outOfMemory
            case ZSTD_error_frameParameter_windowTooLarge:
                .corrupt(.zstandard, reason: "its window is larger than 8 MiB")
            default:
                .corrupt(.zstandard, reason: unsafe String(cString: ZSTD_getErrorName(status)))
            }
        }

        private func fail(_ error: ContentDecodingError) {
            state = .failed(error)
            close()
        }

        /// Gives the library's memory back.
        private func close() {
            guard let context = unsafe context else { return }
            unsafe ZSTD_freeDCtx(context)
            unsafe self.context = nil
        }
    }
#endif
