/// Decodes the content codings of one body as it streams, under limits. Each call takes as much of the input as it can and
/// never returns more than requested. Between two nested codings there is a buffer of 16 KiB; nothing else is stored. One
/// consumer owns it.
package final class ContentDecoder {
    /// A piece of a decoded body.
    package struct Piece: Hashable, Sendable {
        /// The decoded bytes.
        package var bytes: [UInt8]
        /// Bytes taken from the input; pass the rest again.
        package var consumed: Int
        /// Whether the input has ended and all of the body was returned.
        package var isFinished: Bool
    }

    private let stages: [Stage]
    private let limits: DecompressionLimits
    /// Bytes of the body received and decoded so far.
    private var totalInput = 0
    private var totalOutput = 0
    private var failure: ContentDecodingError?

    /// One coding, and its output that the next one has not yet read.
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
    ///   - codings: The codings in the order of decoding, as in ``ContentCodingPlan/codings``. Without codings the bytes are
    ///     copied and no limit applies.
    ///   - limits: The limits on the expansion of the body.
    package init(codings: [ContentCoding], limits: DecompressionLimits = .init()) {
        self.limits = limits
        stages = codings.enumerated().map { Stage($1, isLast: $0 == codings.count - 1) }
    }

    /// Decodes a piece of the body.
    ///
    /// Call it until the piece is finished. A call that neither consumes nor produces anything needs more input. Bytes that
    /// were decoded before an error are returned first; after an error every call throws it again.
    /// - Parameters:
    ///   - input: The bytes that have arrived and were not yet consumed.
    ///   - endOfInput: Whether the body ends with this input; it stays true.
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
        // One byte beyond the limit is requested, to tell a body that just fits from one that does not.
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

    /// Runs one stage, and those before it as far as it needs their bytes.
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
                // The stage after this one gets the decoded bytes; asking again brings the error back.
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

    /// Lets a stage write from the bytes of the one before it, which runs only if nothing else comes: its error is seen once
    /// all bytes before it are decoded, however much room there is.
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

    /// Lets a stage write into its buffer if all of it was read.
    private func refill(_ index: Int, _ input: UnsafeRawBufferPointer, _ endOfInput: Bool, _ consumed: inout Int)
        throws(ContentDecodingError)
    {
        let stage = stages[index]
        guard stage.unread.isEmpty, !stage.isFinished else { return }
        // Taken out while it is written to, so that it is neither copied nor accessed twice.
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
