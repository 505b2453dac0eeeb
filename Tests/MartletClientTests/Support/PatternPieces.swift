import Martlet
import MartletTesting

/// A given number of bytes of the test pattern, generated in pieces on demand.
struct PatternPieces: AsyncSequence, Sendable {
    let byteCount: UInt64
    var pieceSize = 64 * 1024
    /// A closure that is called before each piece, with its offset.
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
    /// Returns a body of the test pattern with an announced length.
    static func pattern(_ count: UInt64) -> HTTPBody {
        .stream(length: count) { PatternPieces(byteCount: count) }
    }
}
