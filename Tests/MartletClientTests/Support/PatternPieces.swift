import Martlet
import MartletTesting

/// So many bytes of the test pattern, piece by piece, made as they are asked for.
struct PatternPieces: AsyncSequence, Sendable {
    let byteCount: UInt64
    var pieceSize = 64 * 1024
    /// Told before each piece is given out, with its offset.
    var onPiece: (@Sendable (UInt64) async throws -> Void)?

    struct Iterator: AsyncIteratorProtocol {
        let pieces: PatternPieces
        var offset: UInt64 = 0

        mutating func next() async throws -> [UInt8]? {
            guard offset < pieces.byteCount else { return nil }
            try await pieces.onPiece?(offset)
            let count = Int(Swift.min(UInt64(pieces.pieceSize), pieces.byteCount - offset))
            defer { offset += UInt64(count) }
            return TestPattern.bytes(from: offset, count: count)
        }
    }

    func makeAsyncIterator() -> Iterator { Iterator(pieces: self) }
}

extension HTTPBody {
    /// So many bytes of the test pattern, of announced length.
    static func pattern(_ count: UInt64) -> HTTPBody {
        .stream(length: count) { PatternPieces(byteCount: count) }
    }
}
