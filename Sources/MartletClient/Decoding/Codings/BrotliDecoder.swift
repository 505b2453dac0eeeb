#if Brotli
    import CBrotli

    /// Undoes Brotli (RFC 7932) with libbrotlidec, piece by piece.
    ///
    /// It keeps what the stream's window asks for, 16 MiB at most: the larger windows that the format's extension allows are
    /// refused. Nothing may follow the end of the stream. A body of no bytes at all decodes to none, as for the other
    /// codings. Brotli has no checksum: a stream that was changed and still makes sense is not noticed.
    @safe final class BrotliDecoder: CodingDecoder {
        private enum State {
            /// No byte has been seen.
            case start
            /// The library is at work.
            case decoding
            /// The stream is complete; nothing may follow.
            case ended
            /// The input has ended where it may.
            case finished
            /// An error was found; it is thrown again by every call.
            case failed(ContentDecodingError)
        }

        private var state = State.start
        /// The library's state; nil before the first byte and after the end.
        private var decoder: OpaquePointer?

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
                case .start:
                    guard unsafe rest.isEmpty else {
                        begin()
                        continue
                    }
                    guard endOfInput else { return step }
                    state = .finished
                case .decoding:
                    guard step.produced < output.count else { return step }
                    let room = unsafe UnsafeMutableRawBufferPointer(rebasing: output[step.produced...])
                    guard unsafe decode(rest, into: room, &step) else { continue }
                    guard endOfInput else { return step }
                    fail(.truncated(.brotli))
                case .ended:
                    if unsafe !rest.isEmpty {
                        fail(.trailingData(.brotli))
                    } else {
                        guard endOfInput else { return step }
                        state = .finished
                    }
                }
            }
            return step
        }

        private func begin() {
            unsafe decoder = BrotliDecoderCreateInstance(nil, nil, nil)
            if unsafe decoder == nil { fail(.outOfMemory) } else { state = .decoding }
        }

        /// Runs the library once. True when only more input helps.
        private func decode(
            _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer,
            _ step: inout CodingStep
        ) -> Bool {
            var inputLeft = input.count
            var outputLeft = output.count
            var nextInput = unsafe input.baseAddress?.assumingMemoryBound(to: UInt8.self)
            var nextOutput = unsafe output.baseAddress?.assumingMemoryBound(to: UInt8.self)
            let result = unsafe BrotliDecoderDecompressStream(
                decoder, &inputLeft, &nextInput, &outputLeft, &nextOutput, nil)
            step.consumed += input.count - inputLeft
            step.produced += output.count - outputLeft
            switch result {
            case BROTLI_DECODER_RESULT_SUCCESS:
                state = .ended
                close()
                return false
            case BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT:
                return true
            case BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT:
                return false
            default:
                let code = unsafe BrotliDecoderGetErrorCode(decoder)
                // The library's codes for memory that could not be had (decode.h).
                if (-30 ... -21).contains(code.rawValue) {
                    fail(.outOfMemory)
                } else {
                    let text = unsafe BrotliDecoderErrorString(code).map { unsafe String(cString: $0) }
                    fail(.corrupt(.brotli, reason: text ?? "code \(code.rawValue)"))
                }
                return false
            }
        }

        private func fail(_ error: ContentDecodingError) {
            state = .failed(error)
            close()
        }

        /// Gives the library's memory back.
        private func close() {
            guard let decoder = unsafe decoder else { return }
            unsafe BrotliDecoderDestroyInstance(decoder)
            unsafe self.decoder = nil
        }
    }
#endif
