import MartletContent
import MartletWire
public import SystemPackage

/// The body of a response as it arrives: an `AsyncSequence` of pieces, pulled.
///
/// Nothing is read that was not asked for: whoever stops asking holds the sender by the TCP window, and a body of any
/// size passes through less than 1 MiB. It can be read once, by one task at a time, and only within the closure it was
/// given to; behind that, reading throws.
public struct ResponseBody: AsyncSequence, Sendable {
    /// A piece of the body; never empty.
    public typealias Element = [UInt8]

    package let reader: BodyReader

    /// The length that the head announced, before content coding is undone; `nil` when it did not.
    public let announcedByteCount: UInt64?

    package init(reader: BodyReader, announcedByteCount: UInt64?) {
        self.reader = reader
        self.announcedByteCount = announcedByteCount
    }

    /// One pass over the body.
    public struct Iterator: AsyncIteratorProtocol {
        let reader: BodyReader

        /// The next piece; `nil` at the end.
        ///
        /// When the task is cancelled it throws `CancellationError` at once, and the connection is closed.
        /// - Throws: An ``HTTPError``: a clock, a limit, a truncated or malformed body.
        public mutating func next() async throws -> [UInt8]? { try await reader.next() }

        /// The next piece; `nil` at the end.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(any Error) -> [UInt8]? {
            try await reader.next()
        }
    }

    /// A pass that goes on where the last one stopped.
    public func makeAsyncIterator() -> Iterator { Iterator(reader: reader) }

    /// The exchange that this is the body of, with what was taken of the body.
    /// - Parameter isCollected: Whether that is all of it.
    package func exchange(with body: [UInt8], isCollected: Bool) -> HTTPExchange {
        reader.answer.exchange(with: body, isCollected: isCollected)
    }

    /// Collects what is left.
    /// - Throws: An ``HTTPError`` with the code `.bodyTooLarge` when there is more than the limit, whereupon the
    ///   connection is closed.
    public func collect(upTo limit: ByteCount = .mebibytes(16)) async throws -> [UInt8] {
        var whole: [UInt8] = []
        while let piece = try await reader.next() {
            guard piece.count <= limit.bytes - whole.count else { throw reader.tooLarge(limit.bytes) }
            if whole.isEmpty { whole = piece } else { whole += piece }
        }
        return whole
    }

    /// Turns what is left of the body into a download: writes it to a file, which appears under its name when it is
    /// complete.
    ///
    /// - Parameters:
    ///   - path: The file's name; its folder must exist.
    ///   - beginning: What was read of the body before, to stand first in the file; nothing by default.
    ///   - overwrites: Whether a file that has the name may be replaced; `false` by default.
    /// - Throws: An ``HTTPError``, `.fileFailed` among them; `CancellationError`.
    public func write(
        to path: FilePath, startingWith beginning: some Sequence<UInt8> = [], overwrites: Bool = false
    ) async throws {
        let download = FileDownload(path: path, overwrites: overwrites, origin: reader.origin)
        try await download.write(reader, after: ArraySlice(beginning))
    }

    /// The same body, which remembers from here on what it gives, so that ``write(to:_:overwrites:)`` can write all of it.
    ///
    /// - Parameter limit: The most bytes that are remembered; where more are taken, the whole can no longer be written.
    public func remembering(upTo limit: ByteCount = .mebibytes(1)) -> ResponseBody {
        reader.remember(upTo: limit.bytes)
        return self
    }

    /// What of a body a download of it has.
    public enum Extent: String, Hashable, Sendable {
        /// What has not been taken yet.
        case rest
        /// All of it, what was taken from a body that is ``ResponseBody/remembering(upTo:)`` included.
        case whole
    }

    /// Turns the body into a download, amid its stream: writes it to a file, which appears under its name when it is
    /// complete, without losing or doubling a byte.
    ///
    /// - Parameters:
    ///   - path: The file's name; its folder must exist.
    ///   - extent: Whether what was taken before stands first in the file.
    ///   - overwrites: Whether a file that has the name may be replaced; `false` by default.
    /// - Throws: An ``HTTPError``: `.fileFailed`; `.limitExceeded` where the whole is wanted and what was taken is not
    ///   remembered, or no longer; `.truncated` where bytes were lost to a read or a write that failed before. After a file
    ///   that could not be created, nothing is lost and another may be tried. `CancellationError`.
    public func write(to path: FilePath, _ extent: Extent, overwrites: Bool = false) async throws {
        var taken: [UInt8] = []
        if extent == .whole {
            guard let remembered = reader.remembered else {
                throw reader.limitExceeded(
                    "what was taken of the body is not remembered, and so the whole cannot be written")
            }
            taken = remembered
        }
        try await write(to: path, startingWith: taken, overwrites: overwrites)
    }

    /// Fields that came behind a chunked body, once it has been read to its end.
    public var trailers: HTTPFields? { reader.channel.trailers.map(HeadConversion.fields) }
}
