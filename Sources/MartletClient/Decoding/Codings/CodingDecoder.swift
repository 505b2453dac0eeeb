/// Undoes one content coding, piece by piece, and never produces more than the buffer it is given. One consumer owns it.
protocol CodingDecoder: AnyObject {
    /// Decodes as much of the input as fits into the output.
    ///
    /// Call again with what was not consumed until the step is finished; `endOfInput` says that nothing comes after this
    /// input and stays true once said. What was decoded before an error is handed out first: the error is thrown by the
    /// call that has nothing else to give. With an empty output nothing happens.
    func step(
        _ input: UnsafeRawBufferPointer, endOfInput: Bool, into output: UnsafeMutableRawBufferPointer
    ) throws(ContentDecodingError) -> CodingStep
}

/// What one call of a decoder did.
struct CodingStep {
    /// Bytes taken from the input.
    var consumed = 0
    /// Bytes written to the output.
    var produced = 0
    /// Whether the input has ended and everything was written.
    var isFinished = false
}

extension ContentCoding {
    /// A decoder for one body in this coding.
    func makeDecoder() -> any CodingDecoder {
        switch self {
        case .gzip, .deflate: return Inflater(self)
        #if Brotli
            case .brotli: return BrotliDecoder()
        #endif
        #if Zstandard
            case .zstandard: return ZstandardDecoder()
        #endif
        }
    }
}
