import Synchronization

/// A source that returns bytes in memory, once.
actor BytesSource: RequestBodySource {
    private var bytes: [UInt8]?
    let trailers: HTTPFields?

    init(_ bytes: [UInt8], trailers: HTTPFields? = nil) { (self.bytes, self.trailers) = (bytes, trailers) }

    func next() async throws -> [UInt8]? { bytes.take() }
}

/// A source that reads a file on a worker thread, 256 KiB at a time. While a piece is sent, the next one is read.
actor FileSource: RequestBodySource {
    private static let pieceByteCount = 256 * 1024
    private let file: FileReader
    private var offset: UInt64 = 0
    /// The read of the next piece, which has started.
    private var ahead: OneShot<Result<[UInt8], StorageError>>?

    private init(_ file: FileReader) { self.file = file }

    static func open(_ path: FilePath) async throws(StorageError) -> FileSource {
        let name = path.string
        return FileSource(
            try await BlockingThreadPool.shared.run { () throws(StorageError) in try FileReader(path: name) })
    }

    /// The length of the file when it was opened.
    nonisolated var byteCount: UInt64 { file.byteCount }

    func next() async throws -> [UInt8]? {
        let piece = ahead.take() ?? read()
        guard case .value(let result) = await piece.wait(until: .distantFuture, on: .sharedOrStalled) else {
            throw CancellationError()
        }
        let bytes = try result.get()
        offset += UInt64(bytes.count)
        if bytes.isEmpty { return nil }
        // At the end of a file, one more read costs little, and detects a file that has grown.
        ahead = read()
        return bytes
    }

    /// Starts to read the piece at the current offset.
    private func read() -> OneShot<Result<[UInt8], StorageError>> {
        let piece = OneShot<Result<[UInt8], StorageError>>()
        let (file, offset) = (file, offset)
        let rest = file.byteCount > offset ? file.byteCount - offset : 1
        let limit = Int(min(rest, UInt64(FileSource.pieceByteCount)))
        BlockingThreadPool.shared.submit {
            piece.fulfill(Result { () throws(StorageError) in try file.read(at: offset, limit: limit) })
        }
        return piece
    }
}

/// A source that reads an asynchronous sequence.
actor SequenceSource<Pieces: AsyncSequence & Sendable>: RequestBodySource where Pieces.Element: Sequence<UInt8> {
    private var iterator: Pieces.AsyncIterator?
    /// The error of the sequence, thrown by every later read: a failed body has no end.
    private var failure: (any Error)?

    init(_ pieces: Pieces) { iterator = pieces.makeAsyncIterator() }

    func next() async throws -> [UInt8]? {
        if let failure { throw failure }
        // Removed while in use, because actors are reentrant.
        guard var current = iterator.take() else { return nil }
        do {
            guard let piece = try await current.next(isolation: self) else { return nil }
            iterator = current
            return Array(piece)
        } catch {
            failure = error
            throw error
        }
    }
}

/// A source that can be read only once. It can be opened again as long as nothing was read, for example after a
/// redirect that arrived before the body was sent.
package final class SingleUseSource: Sendable {
    private struct State {
        /// The number of times the source was opened or taken back.
        var number: UInt64 = 0
        var hasStarted = false
    }

    private let source: any RequestBodySource
    /// The lock on the right to read, used by the exchange that reads the source, and by the code that takes it back.
    private let state = Mutex(State())

    package init(_ source: any RequestBodySource) { self.source = source }

    /// Opens the source; `nil` if it was read. Earlier results of this function can then read nothing more.
    func open() -> (any RequestBodySource)? {
        let number = state.withLock { state -> UInt64? in
            guard !state.hasStarted else { return nil }
            state.number += 1
            return state.number
        }
        return number.map { Opened(source: self, number: $0) }
    }

    /// Whether the source is unread.
    var isWhole: Bool { state.withLock { !$0.hasStarted } }

    /// Takes the source back from an exchange that opened it, which can then read nothing more.
    /// - Returns: Whether the source is unread.
    func rewind() -> Bool { open() != nil }

    private func begin(_ number: UInt64) -> Bool {
        state.withLock { state in
            guard state.number == number else { return false }
            state.hasStarted = true
            return true
        }
    }

    private final class Opened: RequestBodySource {
        private let source: SingleUseSource
        private let number: UInt64

        init(source: SingleUseSource, number: UInt64) { (self.source, self.number) = (source, number) }

        func next() async throws -> [UInt8]? {
            guard source.begin(number) else {
                throw HTTPError(
                    .bodyNotReplayable, phase: .sending,
                    message: "the body can be read only once, and another request has taken it over")
            }
            return try await source.source.next()
        }
    }
}
