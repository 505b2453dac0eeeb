/// Undoes the content codings of one body as it streams, under limits.
///
/// Pull style: each call takes what it can of the input and never writes more than the output holds. Between
/// two nested codings stands a buffer of 16 KiB; nothing else is kept. One consumer owns it.
package final class ContentDecoder {
    /// What one call did.
    package struct Progress: Hashable, Sendable {
        /// Bytes taken from the input; pass the rest again.
        package var consumed: Int
        /// Bytes written to the output.
        package var produced: Int
        /// Whether the input has ended and all of the body was written.
        package var isFinished: Bool
    }

    private let stages: [Stage]
    private let limits: DecompressionLimits
    /// Bytes of the body received and decoded so far.
    private var totalInput = 0
    private var totalOutput = 0
    private var failure: ContentDecodingError?

    /// One coding, and the bytes it wrote that the next one has not yet read.
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

    /// A decoder for one body.
    ///
    /// - Parameters:
    ///   - codings: The codings in the order they are undone, as ``ContentCodingPlan/codings`` has them.
    ///     Without any the bytes are copied and no limit applies.
    ///   - limits: What the body may expand to.
    package init(codings: [ContentCoding], limits: DecompressionLimits = .init()) {
        self.limits = limits
        stages = codings.enumerated().map { Stage($1, isLast: $0 == codings.count - 1) }
    }

    /// Decodes a piece of the body.
    ///
    /// Call until the progress is finished. A call that neither consumes nor produces anything wants more
    /// input. What was decoded before an error is handed out first; after an error every call throws it
    /// again.
    ///
    /// - Parameters:
    ///   - input: What has arrived and was not yet consumed.
    ///   - endOfInput: Whether the body ends with this input; stays true once said.
    ///   - output: Where the decoded bytes go; not empty.
    /// - Throws: ``ContentDecodingError``.
    package func decode(
        _ input: UnsafeRawBufferPointer, endOfInput: Bool, into output: UnsafeMutableRawBufferPointer
    ) throws(ContentDecodingError) -> Progress {
        if let failure { throw failure }
        guard !stages.isEmpty else { return unsafe copy(input, endOfInput: endOfInput, into: output) }
        var progress = Progress(consumed: 0, produced: 0, isFinished: false)
        // One byte beyond the limit is asked for, to tell a body that just fits from one that does not.
        let limit = limits.maximumByteCount.map { max($0, 0) } ?? Int.max
        let window = limit - totalOutput < output.count ? limit - totalOutput + 1 : output.count
        let room = unsafe UnsafeMutableRawBufferPointer(rebasing: output[..<window])
        do throws(ContentDecodingError) {
            try unsafe run(stages.count - 1, input, endOfInput, into: room, &progress)
            if totalOutput + progress.produced > limit {
                let excess = ContentDecodingError.tooLarge(limit: limit)
                progress.produced = limit - totalOutput
                progress.isFinished = false
                guard progress.produced > 0 else { throw excess }
                failure = excess
            }
        } catch {
            failure = error
            throw error
        }
        totalOutput += progress.produced
        return progress
    }

    /// Lets one stage write, and those before it as far as it needs their bytes.
    private func run(
        _ index: Int, _ input: UnsafeRawBufferPointer, _ endOfInput: Bool,
        into output: UnsafeMutableRawBufferPointer, _ progress: inout Progress
    ) throws(ContentDecodingError) {
        let stage = stages[index]
        if let failure = stage.failure { throw failure }
        var produced = 0
        while !stage.isFinished, produced < output.count {
            let room = unsafe UnsafeMutableRawBufferPointer(rebasing: output[produced...])
            let step: CodingStep
            do throws(ContentDecodingError) {
                if index == 0 {
                    let rest = unsafe UnsafeRawBufferPointer(rebasing: input[progress.consumed...])
                    step = try unsafe stage.decoder.step(rest, endOfInput: endOfInput, into: room)
                    progress.consumed += step.consumed
                    totalInput += step.consumed
                } else {
                    step = try unsafe drainOrRefill(index, input, endOfInput, into: room, &progress)
                }
            } catch {
                // The stage after this one gets what was decoded; asking again brings the error back.
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
        if index == stages.count - 1 {
            progress.produced = produced
            progress.isFinished = stage.isFinished
        } else {
            stage.unread = 0..<produced
        }
    }

    /// Lets a stage write from the bytes of the one before it, which is asked for more only when nothing else
    /// comes: an error there is seen when all that came before it was decoded, however much room there is.
    private func drainOrRefill(
        _ index: Int, _ input: UnsafeRawBufferPointer, _ endOfInput: Bool,
        into output: UnsafeMutableRawBufferPointer, _ progress: inout Progress
    ) throws(ContentDecodingError) -> CodingStep {
        let decoder = stages[index].decoder
        let step = try unsafe drain(stages[index - 1], with: decoder, into: output)
        if step.consumed > 0 || step.produced > 0 || step.isFinished { return step }
        try unsafe refill(stages[index - 1], index - 1, input, endOfInput, &progress)
        return try unsafe drain(stages[index - 1], with: decoder, into: output)
    }

    /// Has a stage write into its buffer if that was read to the end.
    private func refill(
        _ stage: Stage, _ index: Int, _ input: UnsafeRawBufferPointer, _ endOfInput: Bool,
        _ progress: inout Progress
    ) throws(ContentDecodingError) {
        guard stage.unread.isEmpty, !stage.isFinished else { return }
        // Taken out while it is written to, so that it is neither copied nor accessed twice.
        var buffer: [UInt8] = []
        swap(&buffer, &stage.buffer)
        defer { swap(&buffer, &stage.buffer) }
        var span = buffer.mutableSpan
        var bytes = unsafe span.mutableBytes
        try unsafe bytes.withUnsafeMutableBytes { (room) throws(ContentDecodingError) in
            try unsafe run(index, input, endOfInput, into: room, &progress)
        }
    }

    /// Feeds what a stage has written to the next one.
    private func drain(
        _ stage: Stage, with decoder: any CodingDecoder, into output: UnsafeMutableRawBufferPointer
    ) throws(ContentDecodingError) -> CodingStep {
        let buffer = stage.buffer
        let bytes = unsafe buffer.span.bytes
        let step = try unsafe bytes.withUnsafeBytes { (all) throws(ContentDecodingError) in
            let unread = unsafe UnsafeRawBufferPointer(rebasing: all[stage.unread])
            return try unsafe decoder.step(unread, endOfInput: stage.isFinished, into: output)
        }
        stage.unread = (stage.unread.lowerBound + step.consumed)..<stage.unread.upperBound
        return step
    }

    /// The identity coding.
    private func copy(
        _ input: UnsafeRawBufferPointer, endOfInput: Bool, into output: UnsafeMutableRawBufferPointer
    ) -> Progress {
        let count = min(input.count, output.count)
        if count > 0 { unsafe output.copyMemory(from: UnsafeRawBufferPointer(rebasing: input[..<count])) }
        return Progress(consumed: count, produced: count, isFinished: endOfInput && count == input.count)
    }
}

extension ContentDecoder {
    /// A piece of a decoded body.
    package struct Piece: Hashable, Sendable {
        /// The decoded bytes.
        package var bytes: [UInt8]
        /// Bytes taken from the input; pass the rest again.
        package var consumed: Int
        /// Whether the input has ended and all of the body was handed out.
        package var isFinished: Bool
    }

    /// Decodes a piece of the body into an array of at most `byteCount` bytes; otherwise as
    /// ``decode(_:endOfInput:into:)``.
    package func decode(
        _ input: ArraySlice<UInt8>, endOfInput: Bool, upTo byteCount: Int
    ) throws(ContentDecodingError) -> Piece {
        var bytes = [UInt8](repeating: 0, count: max(byteCount, 1))
        var progress = Progress(consumed: 0, produced: 0, isFinished: false)
        let source = unsafe input.span.bytes
        do {
            var span = bytes.mutableSpan
            var room = unsafe span.mutableBytes
            try unsafe source.withUnsafeBytes { (input) throws(ContentDecodingError) in
                try unsafe room.withUnsafeMutableBytes { (output) throws(ContentDecodingError) in
                    progress = try unsafe decode(input, endOfInput: endOfInput, into: output)
                }
            }
        }
        bytes.removeLast(bytes.count - progress.produced)
        return Piece(bytes: bytes, consumed: progress.consumed, isFinished: progress.isFinished)
    }
}
