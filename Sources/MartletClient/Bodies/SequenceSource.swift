import MartletConnections
import Synchronization

/// A body's source that reads an asynchronous sequence.
actor SequenceSource<Pieces: AsyncSequence & Sendable>: BodySource where Pieces.Element: Sequence<UInt8> {
    private var iterator: Pieces.AsyncIterator?

    init(_ pieces: Pieces) {
        iterator = pieces.makeAsyncIterator()
    }

    func next() async throws -> [UInt8]? {
        // Taken out while it is asked, since the actor may be entered again meanwhile; it is not, for one task asks.
        guard var current = iterator.take() else { return nil }
        let piece = try await current.next(isolation: self)
        guard let piece else { return nil }
        iterator = current
        return Array(piece)
    }
}

/// A source that gives itself out once.
final class OnceSource: Sendable {
    private let source: Mutex<(any BodySource)?>

    init(_ source: any BodySource) {
        self.source = Mutex(source)
    }

    /// The source, the first time.
    func take() -> (any BodySource)? {
        source.withLock { $0.take() }
    }
}
