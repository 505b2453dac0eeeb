#if Zstandard
    import CMartletZstd

    /// An encoder for Zstandard (RFC 8878) with libzstd. Levels above 19 would use a window larger than 8 MiB, which
    /// servers reject (RFC 9659).
    @safe final class ZstandardEncoder: CodingEncoder {
        private let context: OpaquePointer

        init?(level: Int?) {
            guard let context = unsafe ZSTD_createCCtx() else { return nil }
            unsafe self.context = context
            let status = unsafe ZSTD_CCtx_setParameter(
                context, ZSTD_c_compressionLevel, Int32(min(max(level ?? 3, 1), 19)))
            guard ZSTD_isError(status) == 0 else { return nil }
        }

        deinit { unsafe ZSTD_freeCCtx(context) }

        func encode(_ input: UnsafeRawBufferPointer, endOfInput: Bool, into output: UnsafeMutableRawBufferPointer)
            -> CodingStep?
        {
            var source = unsafe ZSTD_inBuffer(src: input.baseAddress, size: input.count, pos: 0)
            var target = unsafe ZSTD_outBuffer(dst: output.baseAddress, size: output.count, pos: 0)
            let status = unsafe ZSTD_compressStream2(
                context, &target, &source, endOfInput ? ZSTD_e_end : ZSTD_e_continue)
            guard ZSTD_isError(status) == 0 else { return nil }
            return unsafe CodingStep(
                consumed: source.pos, produced: target.pos, isFinished: endOfInput && status == 0)
        }
    }
#endif
