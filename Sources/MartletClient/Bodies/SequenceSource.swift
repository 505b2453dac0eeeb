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

/// A source that can be read but once, and opened until that is begun: a server that answers before it has seen any of a body
/// has not cost it.
final class OnceSource: Sendable {
    private struct State {
        /// How many times it was opened, or taken back.
        var number: UInt64 = 0
        var isBegun = false
    }

    private let source: any BodySource
    /// Guards who may read: the exchange that has it open, and whoever takes it back from that.
    private let state = Mutex(State())

    init(_ source: any BodySource) {
        self.source = source
    }

    /// The source, unless it was begun; whoever had it before reads nothing of it.
    func open() -> (any BodySource)? {
        let number = state.withLock { state -> UInt64? in
            guard !state.isBegun else { return nil }
            state.number += 1
            return state.number
        }
        return number.map { Opened(source: self, number: $0) }
    }

    /// Whether nothing was read.
    var isWhole: Bool { state.withLock { !$0.isBegun } }

    /// Takes it back, so that whoever has it open reads nothing of it.
    /// - Returns: Whether nothing was read.
    func takeBack() -> Bool { open() != nil }

    private func begin(_ number: UInt64) -> Bool {
        state.withLock { state in
            guard state.number == number else { return false }
            state.isBegun = true
            return true
        }
    }

    private final class Opened: BodySource {
        private let source: OnceSource
        private let number: UInt64

        init(source: OnceSource, number: UInt64) {
            self.source = source
            self.number = number
        }

        func next() async throws -> [UInt8]? {
            guard source.begin(number) else {
                throw HTTPError(
                    .bodyNotReplayable, phase: .sending,
                    message: "the body can be read only once, and was opened by another request")
            }
            return try await source.source.next()
        }
    }
}
