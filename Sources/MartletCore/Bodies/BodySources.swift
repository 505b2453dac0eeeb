import MartletConnections
import MartletStorage
import MartletTransport
import Synchronization

/// A body's source that gives out bytes in memory, once.
actor BytesSource: BodySource {
    private var bytes: [UInt8]?

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    func next() async throws -> [UInt8]? { bytes.take() }
}

/// A body's source that reads a file, on a worker, a quarter of a MiB at a time; the next piece is read while one is sent.
actor FileSource: BodySource {
    private static let pieceByteCount = 256 * 1024
    private let file: FileReader
    private var offset: UInt64 = 0
    /// The piece behind the one that was handed out, on its way.
    private var ahead: OneShot<Result<[UInt8], StorageError>>?

    init(_ file: FileReader) { self.file = file }

    func next() async throws -> [UInt8]? {
        let piece = ahead.take() ?? read()
        guard case .value(let result) = await piece.wait(until: .distantFuture, on: .sharedOrStalled) else {
            throw CancellationError()
        }
        let bytes = try result.get()
        offset += UInt64(bytes.count)
        if bytes.isEmpty { return nil }
        // Where a file is at its end, asking once more costs little, and tells one that has grown.
        ahead = read()
        return bytes
    }

    /// Begins to read the piece at the present offset.
    private func read() -> OneShot<Result<[UInt8], StorageError>> {
        let piece = OneShot<Result<[UInt8], StorageError>>()
        let (file, offset) = (file, offset)
        let rest = file.byteCount > offset ? file.byteCount - offset : 1
        let limit = Int(min(rest, UInt64(FileSource.pieceByteCount)))
        BlockingWorkers.shared.submit {
            do throws(StorageError) {
                piece.fulfil(.success(try file.read(at: offset, limit: limit)))
            } catch {
                piece.fulfil(.failure(error))
            }
        }
        return piece
    }
}

/// A body's source that reads an asynchronous sequence.
actor SequenceSource<Pieces: AsyncSequence & Sendable>: BodySource where Pieces.Element: Sequence<UInt8> {
    private var iterator: Pieces.AsyncIterator?

    init(_ pieces: Pieces) { iterator = pieces.makeAsyncIterator() }

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
package final class OnceSource: Sendable {
    private struct State {
        /// How many times it was opened, or taken back.
        var number: UInt64 = 0
        var isBegun = false
    }

    private let source: any BodySource
    /// Guards who may read: the exchange that has it open, and whoever takes it back from that.
    private let state = Mutex(State())

    init(_ source: any BodySource) { self.source = source }

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
