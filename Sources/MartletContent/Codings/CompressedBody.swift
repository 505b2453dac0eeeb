/// A reader that compresses the pieces of a body while it is read, and checks its length.
package actor CompressedBody {
    /// The error of a body that is longer or shorter than stated.
    package struct LengthError: Error, CustomStringConvertible {
        let stated: UInt64
        let actual: UInt64

        package init(stated: UInt64, actual: UInt64) { (self.stated, self.actual) = (stated, actual) }

        /// The error as a sentence without a full stop.
        package var description: String {
            "the given length of the body is \(stated) bytes, but its source returned \(actual)\(actual > stated ? " or more" : "")"
        }
    }

    private let source: @Sendable () async throws -> [UInt8]?
    private let length: UInt64?
    private let encoder: ContentEncoder
    private var rest: ArraySlice<UInt8> = []
    private var byteCount: UInt64 = 0
    private var hasEnded = false
    private var isFinished = false

    /// Creates a reader.
    /// - Parameters:
    ///   - length: The length that the body must have, if it is known.
    ///   - source: A function that returns the next piece of the body; `nil` after the last.
    package init(
        _ compression: BodyCompression, length: UInt64?, _ source: @escaping @Sendable () async throws -> [UInt8]?
    ) throws(ContentEncodingError) {
        (self.source, self.length) = (source, length)
        encoder = try ContentEncoder(compression)
    }

    /// Returns the next compressed bytes, which may be empty; `nil` after the last. A call reads at most one piece, and
    /// compresses at most a part of it.
    /// - Throws: The errors of the source, ``LengthError``, ``ContentEncodingError``. The body is never completed after
    ///   an error.
    package func next() async throws -> [UInt8]? {
        if isFinished { return nil }
        if rest.isEmpty, !hasEnded {
            let piece = try await source()
            byteCount += UInt64(piece?.count ?? 0)
            if let length, byteCount > length || piece == nil && byteCount < length {
                throw LengthError(stated: length, actual: byteCount)
            }
            (rest, hasEnded) = ((piece ?? [])[...], piece == nil)
        }
        let piece = try encoder.encode(rest, endOfInput: hasEnded)
        rest = rest.dropFirst(piece.consumed)
        isFinished = piece.isFinished
        return piece.bytes
    }
}
