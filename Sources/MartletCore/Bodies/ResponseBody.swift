/// The body of a response as it arrives: an `AsyncSequence` of pieces, which are pulled.
///
/// Nothing is read before it is requested: a consumer that stops slows the sender down by the TCP window, and a body of any
/// size passes through less than 1 MiB. It can be read once, by one task at a time. The body of a stream can be read only within the
/// closure it was passed to, and throws after that; the body of an ``OpenResponse`` can be read at any time, and in any task.
public struct ResponseBody: AsyncSequence, Sendable {
    /// A piece of the body; never empty.
    public typealias Element = [UInt8]

    package let reader: BodyReader

    /// The length in the head, before content codings are decoded; `nil` if there is none.
    public let expectedContentLength: UInt64?

    package init(reader: BodyReader, expectedContentLength: UInt64?) {
        self.reader = reader
        self.expectedContentLength = expectedContentLength
    }

    /// One pass over the body.
    public struct Iterator: AsyncIteratorProtocol {
        let reader: BodyReader

        /// The next piece; `nil` at the end.
        ///
        /// When the task is cancelled it throws `CancellationError` immediately, and the connection is closed.
        /// - Throws: An ``HTTPError``: a timeout, a limit, a truncated or malformed body.
        public mutating func next() async throws -> [UInt8]? { try await reader.next() }

        /// The next piece; `nil` at the end.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(any Error) -> [UInt8]? {
            try await reader.next()
        }
    }

    /// A pass that continues where the last one stopped.
    public func makeAsyncIterator() -> Iterator { Iterator(reader: reader) }

    /// The exchange of the body, with the part of it that was taken.
    /// - Parameter isCollected: Whether that is all of it.
    package func exchange(with body: [UInt8], isCollected: Bool) -> HTTPExchange {
        reader.answer.exchange(with: body, isCollected: isCollected)
    }

    /// Collects the rest of the body.
    /// - Throws: An ``HTTPError`` with the code `.bodyTooLarge` if there is more than the limit; the connection is
    ///   closed then.
    public func collect(upTo limit: ByteCount = .mebibytes(16)) async throws -> [UInt8] {
        var whole: [UInt8] = []
        while let piece = try await reader.next() {
            guard piece.count <= limit.bytes - whole.count else {
                throw await reader.reason(of: reader.tooLarge(limit.bytes))
            }
            if whole.isEmpty { whole = piece } else { whole += piece }
        }
        return whole
    }

    /// Turns the rest of the body into a download: writes it to a file, which gets its name when it is complete.
    ///
    /// - Parameters:
    ///   - path: The file's name; its directory must exist.
    ///   - beginning: The part of the body that was read before, for the beginning of the file; nothing by default.
    ///   - overwrites: Whether an existing file may be replaced; `false` by default.
    /// - Throws: An ``HTTPError``, such as `.fileFailed`; `CancellationError`.
    public func write(
        to path: some FilePathConvertible, startingWith beginning: some Sequence<UInt8> = [],
        overwrites: Bool = false
    ) async throws {
        let download = FileDownload(path: path.filePath, overwrites: overwrites, call: reader.call)
        try await download.write(reader, after: ArraySlice(beginning))
    }

    /// The same body, which remembers its pieces from now on, so that ``write(to:_:overwrites:)`` can write all of it.
    ///
    /// - Parameter limit: The maximum number of bytes that are remembered; after more, the whole can no longer be written.
    public func buffering(upTo limit: ByteCount = .mebibytes(1)) -> ResponseBody {
        reader.remember(upTo: limit.bytes)
        return self
    }

    /// The part of a body that is written.
    public enum Extent: String, Hashable, Sendable {
        /// The part that has not been taken.
        case rest
        /// All of it, including the part that was taken from a body that is ``ResponseBody/buffering(upTo:)``.
        case whole
    }

    /// Turns the body into a download during its stream: writes it to a file, which gets its name when it is
    /// complete, without losing or duplicating a byte.
    ///
    /// - Parameters:
    ///   - path: The file's name; its directory must exist.
    ///   - extent: Whether the part that was taken before is written first.
    ///   - overwrites: Whether an existing file may be replaced; `false` by default.
    /// - Throws: An ``HTTPError``: `.fileFailed`; `.limitExceeded` if the whole is wanted and the part that was taken is not
    ///   remembered, or no longer; `.truncated` if bytes were lost to a read or a write that failed before. If the file
    ///   cannot be created, nothing is lost and another may be tried. `CancellationError`.
    public func write(
        to path: some FilePathConvertible, _ extent: Extent, overwrites: Bool = false
    ) async throws {
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

    /// The fields after a chunked body, once it has been read to its end.
    public var trailers: HTTPFields? { reader.channel.trailers.map(HeadConversion.fields) }
}
