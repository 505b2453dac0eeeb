/// Reads a body that is still being written, from its beginning, in whatever pieces there are.
package struct EntryTap: Sendable {
    /// What there is at a place.
    package enum Piece: Sendable, Equatable {
        /// Bytes.
        case bytes([UInt8])
        /// Nothing yet: to be asked again when the writer has taken more.
        case pending
        /// The end of the body, which is stored.
        case end
        /// Nothing more: the response was given up. What was read so far is what came.
        case abandoned
    }

    private let writer: EntryWriter

    init(_ writer: EntryWriter) {
        self.writer = writer
    }

    /// The head of the response.
    package var head: StoredHead { writer.head }

    /// What there is at an offset, at most so many bytes. It blocks on the file and never waits for the writer's peer.
    package func read(at offset: UInt64, limit: Int) throws(EntryFault) -> Piece {
        try writer.read(at: offset, limit: limit)
    }
}
