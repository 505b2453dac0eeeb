import MartletContent
import MartletCore

/// The output of a content decoder for an input, and its error if it failed.
struct DecodedBody: Equatable {
    private(set) var bytes: [UInt8] = []
    private(set) var error: ContentDecodingError?

    /// Decodes a body.
    ///
    /// - Throws: A finding if the output exceeds the buffer or the limit, or if the decoder neither progresses nor
    ///   ends.
    init(
        _ input: [UInt8], _ arrivals: Arrivals, _ codings: [ContentCoding], _ limits: DecompressionLimits,
        room: Int
    ) throws(FuzzFinding) {
        let decoder = ContentDecoder(codings: codings, limits: limits)
        var position = 0
        var isFinished = false
        for end in arrivals where error == nil {
            while !isFinished {
                let piece: ContentDecoder.Piece
                do throws(ContentDecodingError) {
                    piece = try decoder.decode(
                        input[position..<end], endOfInput: end == input.count, upTo: room)
                } catch {
                    self.error = error
                    break
                }
                try require(piece.bytes.count <= room, "\(piece.bytes.count) bytes were written to \(room)")
                try require(
                    piece.consumed <= end - position, "\(piece.consumed) bytes were read of \(end - position)"
                )
                bytes += piece.bytes
                position += piece.consumed
                isFinished = piece.isFinished
                let total = bytes.count
                try require(limits.maximumByteCount.map { total <= $0 } ?? true, "\(total) bytes came out")
                if piece.bytes.isEmpty, piece.consumed == 0 { break }
            }
        }
        try require(isFinished != (error != nil), "the body neither ends nor is refused, or both")
        try require(error != nil || position == input.count, "a complete body is read up to \(position)")
    }
}
