/// A streaming decoder of the content codings of one body, with limits on its expansion. Each call consumes as much of
/// the input as it can and never returns more than requested. It holds the state of each coding, and a buffer of 16 KiB
/// between two nested codings. One consumer owns it.
package final class ContentDecoder {
    /// A piece of a decoded body.
    package struct Piece: Hashable, Sendable {
        /// The decoded bytes.
        package var bytes: [UInt8]
        /// The number of bytes consumed from the input; pass the rest again.
        package var consumed: Int
        /// Whether the input has ended and all of the body was returned.
        package var isFinished: Bool
    }

    private let stages: [Stage]
    private let limits: DecompressionLimits
    /// The numbers of bytes of the body received and decoded so far.
    private var totalInput = 0
    private var totalOutput = 0
    private var failure: ContentDecodingError?

    /// One coding, with its output that the next stage has not read yet.
    private final class Stage {
        let decoder: any CodingDecoder
        var output = 0
        var isFinished = false
        var failure: ContentDecodingError?
        var buffer: [UInt8] = []
        var unread = 0..<0

        init(_ coding: ContentCoding, isLast: Bool) {
            decoder = coding.makeDecoder()
            if !isLast { buffer = [UInt8](repeating: 0, count: 16 * 1024) }
        }
    }

    /// Creates a decoder for one body.
    /// - Parameters:
    ///   - codings: The codings in the order of decoding, as in ``ContentCodingPlan/codings``. Without codings the
    ///     bytes are copied and no limit applies.
    ///   - limits: The limits on the expansion of the body.
    package init(codings: [ContentCoding], limits: DecompressionLimits = .init()) {
        self.limits = limits
        stages = codings.enumerated().map { Stage($1, isLast: $0 == codings.count - 1) }
    }

    /// Decodes a piece of the body.
    ///
    /// Call it until ``Piece/isFinished`` is true. A call that neither consumes nor produces any bytes needs more
    /// input. Bytes decoded before an error are returned first; after that, every call throws the error.
    /// - Parameters:
    ///   - input: The received bytes that are not consumed yet.
    ///   - endOfInput: Whether the body ends with this input; once true, it stays true.
    ///   - byteCount: The maximum number of bytes of the piece; at least 1.
    package func decode(_ input: ArraySlice<UInt8>, endOfInput: Bool, upTo byteCount: Int) throws(ContentDecodingError)
        -> Piece
    {
        if let failure { throw failure }
        let size = max(byteCount, 1)
        guard !stages.isEmpty else {
            let bytes = Array(input.prefix(size))
            let isFinished = endOfInput && bytes.count == input.count
            return Piece(bytes: bytes, consumed: bytes.count, isFinished: isFinished)
        }
        let limit = limits.maximumByteCount.map { max($0, 0) } ?? Int.max
        let left = limit - totalOutput
        // One byte beyond the limit is requested, to distinguish a body of exactly that size from a larger one.
        var bytes = [UInt8](repeating: 0, count: left < size ? left + 1 : size)
        var (consumed, produced) = (0, 0)
        do throws(ContentDecodingError) {
            let source = unsafe input.span.bytes
            var span = bytes.mutableSpan
            var room = unsafe span.mutableBytes
            try unsafe source.withUnsafeBytes { (input) throws(ContentDecodingError) in
                try unsafe room.withUnsafeMutableBytes { (output) throws(ContentDecodingError) in
                    produced = try unsafe run(stages.count - 1, input, endOfInput, into: output, &consumed)
                }
            }
            if produced > left {
                guard left > 0 else { throw .tooLarge(limit: limit) }
                (produced, failure) = (left, .tooLarge(limit: limit))
            }
        } catch {
            failure = error
            throw error
        }
        totalOutput += produced
        bytes.removeLast(bytes.count - produced)
        let isFinished = failure == nil && stages[stages.count - 1].isFinished
        return Piece(bytes: bytes, consumed: consumed, isFinished: isFinished)
    }

    /// Runs one stage, and the earlier stages as far as this stage needs their bytes.
    /// - Returns: The number of bytes that the stage wrote.
    private func run(
        _ index: Int, _ input: UnsafeRawBufferPointer, _ endOfInput: Bool, into output: UnsafeMutableRawBufferPointer,
        _ consumed: inout Int
    ) throws(ContentDecodingError) -> Int {
        let stage = stages[index]
        if let failure = stage.failure { throw failure }
        var produced = 0
        while !stage.isFinished, produced < output.count {
            let room = unsafe UnsafeMutableRawBufferPointer(rebasing: output[produced...])
            let step: CodingStep
            do throws(ContentDecodingError) {
                if index == 0 {
                    let rest = unsafe UnsafeRawBufferPointer(rebasing: input[consumed...])
                    step = try unsafe stage.decoder.step(rest, endOfInput: endOfInput, into: room)
                    consumed += step.consumed
                    totalInput += step.consumed
                } else {
                    step = try unsafe drainOrRefill(index, input, endOfInput, into: room, &consumed)
                }
            } catch {
                // The next stage receives the decoded bytes first; the next call throws the error again.
                guard produced == 0 else { break }
                throw error
            }
            produced += step.produced
            stage.output += step.produced
            stage.isFinished = step.isFinished
            guard !limits.isExceeded(output: stage.output, input: totalInput) else {
                let failure = ContentDecodingError.ratioExceeded(limit: max(limits.maximumRatio, 1))
                stage.failure = failure
                throw failure
            }
            if step.consumed == 0, step.produced == 0, !step.isFinished { break }
        }
        return produced
    }

    /// Runs a stage on the buffered bytes of the previous one. The previous stage runs only if no other bytes are left.
    /// So an error of the previous stage is reported after all bytes before the error are decoded, for any output size.
    private func drainOrRefill(
        _ index: Int, _ input: UnsafeRawBufferPointer, _ endOfInput: Bool, into output: UnsafeMutableRawBufferPointer,
        _ consumed: inout Int
    ) throws(ContentDecodingError) -> CodingStep {
        let decoder = stages[index].decoder
        let step = try unsafe drain(stages[index - 1], with: decoder, into: output)
        if step.consumed > 0 || step.produced > 0 || step.isFinished { return step }
        try unsafe refill(index - 1, input, endOfInput, &consumed)
        return try unsafe drain(stages[index - 1], with: decoder, into: output)
    }

    /// Runs a stage into its buffer if all of the buffer was read.
    private func refill(_ index: Int, _ input: UnsafeRawBufferPointer, _ endOfInput: Bool, _ consumed: inout Int)
        throws(ContentDecodingError)
    {
        let stage = stages[index]
        guard stage.unread.isEmpty, !stage.isFinished else { return }
        // The buffer is moved out while it is written, so that it is neither copied nor accessed twice.
        var buffer: [UInt8] = []
        swap(&buffer, &stage.buffer)
        defer { swap(&buffer, &stage.buffer) }
        var span = buffer.mutableSpan
        var bytes = unsafe span.mutableBytes
        try unsafe bytes.withUnsafeMutableBytes { (room) throws(ContentDecodingError) in
            stage.unread = 0..<(try unsafe run(index, input, endOfInput, into: room, &consumed))
        }
    }

    /// Feeds the output of a stage to the next one.
    private func drain(_ stage: Stage, with decoder: any CodingDecoder, into output: UnsafeMutableRawBufferPointer)
        throws(ContentDecodingError) -> CodingStep
    {
        let buffer = stage.buffer
        let bytes = unsafe buffer.span.bytes
        let step = try unsafe bytes.withUnsafeBytes { (all) throws(ContentDecodingError) in
            let unread = unsafe UnsafeRawBufferPointer(rebasing: all[stage.unread])
            return try unsafe decoder.step(unread, endOfInput: stage.isFinished, into: output)
        }
        stage.unread = (stage.unread.lowerBound + step.consumed)..<stage.unread.upperBound
        return step
    }
}
