#if Brotli
    import CMartletBrotli

    /// An encoder for Brotli (RFC 7932) with libbrotlienc and a window of 4 MiB.
    @safe final class BrotliEncoder: CodingEncoder {
        private let encoder: OpaquePointer

        init?(level: Int?) {
            guard let encoder = unsafe BrotliEncoderCreateInstance(nil, nil, nil) else { return nil }
            unsafe self.encoder = encoder
            unsafe BrotliEncoderSetParameter(encoder, BROTLI_PARAM_QUALITY, UInt32(min(max(level ?? 5, 0), 11)))
        }

        deinit { unsafe BrotliEncoderDestroyInstance(encoder) }

        func encode(_ input: UnsafeRawBufferPointer, endOfInput: Bool, into output: UnsafeMutableRawBufferPointer)
            -> CodingStep?
        {
            var inputLeft = input.count
            var outputLeft = output.count
            var nextInput = unsafe input.baseAddress?.assumingMemoryBound(to: UInt8.self)
            var nextOutput = unsafe output.baseAddress?.assumingMemoryBound(to: UInt8.self)
            let operation = endOfInput ? BROTLI_OPERATION_FINISH : BROTLI_OPERATION_PROCESS
            guard
                unsafe BrotliEncoderCompressStream(
                    encoder, operation, &inputLeft, &nextInput, &outputLeft, &nextOutput, nil) != 0
            else { return nil }
            return unsafe CodingStep(
                consumed: input.count - inputLeft, produced: output.count - outputLeft,
                isFinished: BrotliEncoderIsFinished(encoder) != 0)
        }
    }
#endif
