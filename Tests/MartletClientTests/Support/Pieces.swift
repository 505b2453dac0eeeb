/// A sequence of texts as the pieces of a body.
struct Pieces: AsyncSequence, Sendable {
    var texts: [String]
    /// A closure that is called before each piece, with its number, and before the end.
    var onPiece: (@Sendable (Int) async throws -> Void)?

    /// Creates the sequence from texts.
    init(_ texts: String..., onPiece: (@Sendable (Int) async throws -> Void)? = nil) {
        self.texts = texts
        self.onPiece = onPiece
    }

    struct Iterator: AsyncIteratorProtocol {
        let pieces: Pieces
        var index = 0

        mutating func next() async throws -> [UInt8]? {
            try await pieces.onPiece?(index)
            guard index < pieces.texts.count else { return nil }
            defer { index += 1 }
            return Array(pieces.texts[index].utf8)
        }
    }

    func makeAsyncIterator() -> Iterator { Iterator(pieces: self) }
}
