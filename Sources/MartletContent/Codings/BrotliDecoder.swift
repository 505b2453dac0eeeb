#if Brotli
    import CMartletBrotli

    /// A decoder for Brotli (RFC 7932) that works incrementally with libbrotlidec. It stores the window of the stream,
    /// at most 16 MiB; the large-window extension is rejected. No bytes may follow the end of the stream. Brotli has no
    /// checksum, so corruption is not detected if the stream stays valid.
    @safe final class BrotliDecoder: CodingDecoder {
        let coding = ContentCoding.brotli
        var state = CodingState.outside
        /// Whether the stream is complete; no bytes may follow.
        private var isComplete = false
        /// The library's state; `nil` before the first byte and after the end.
        private var decoder: OpaquePointer?

        deinit { close() }

        func takeOutside(_ input: UnsafeRawBufferPointer) -> Int {
            if isComplete {
                fail(.trailingData(coding))
            } else {
                unsafe decoder = BrotliDecoderCreateInstance(nil, nil, nil)
                if unsafe decoder == nil { fail(.outOfMemory) } else { state = .inside }
            }
            return 0
        }

        func decode(
            _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer, _ step: inout CodingStep
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
                isComplete = true
                state = .outside
                close()
                return false
            case BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT: return true
            case BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT: return false
            default:
                let code = unsafe BrotliDecoderGetErrorCode(decoder)
                // These are the library's codes for failed allocations (decode.h).
                if (-30 ... -21).contains(code.rawValue) {
                    fail(.outOfMemory)
                } else {
                    let text = unsafe BrotliDecoderErrorString(code).map { unsafe String(cString: $0) }
                    fail(.corrupt(coding, reason: text ?? "code \(code.rawValue)"))
                }
                return false
            }
        }

        func close() {
            guard let decoder = unsafe decoder else { return }
            unsafe BrotliDecoderDestroyInstance(decoder)
            unsafe self.decoder = nil
        }
    }
#endif
