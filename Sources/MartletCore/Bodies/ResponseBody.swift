public import FoundationEssentials

/// The body of a response as it arrives: an `AsyncSequence` of pieces.
///
/// Nothing is read before it is requested: the TCP window makes the sender as slow as the consumer, and a body of any
/// size needs less than 1 MiB of memory. The body can be read once, by one task at a time: a pass continues where the
/// previous one stopped. After the end, another pass throws an ``HTTPError`` with the code `.bodyAlreadyRead`, unless
/// the body is empty. The body of a stream can be read only within the closure it was passed to; that of an
/// ``OpenResponse`` at any time, and in any task.
public struct ResponseBody: AsyncSequence, Sendable {
    /// A piece of the body; never empty.
    public typealias Element = [UInt8]

    package let reader: BodyReader
    /// The length that the head specifies, before content codings are decoded; `nil` if the head has none.
    public var expectedContentLength: UInt64? { reader.answer.expectedContentLength }

    /// One pass over the body.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let reader: BodyReader
        fileprivate var hasStarted = false

        /// Returns the next piece; `nil` at the end.
        ///
        /// If the task is cancelled, this throws `CancellationError` immediately, and the connection is closed.
        /// - Throws: An ``HTTPError``: a timeout, a limit, a truncated or malformed body; `.bodyAlreadyRead`.
        public mutating func next() async throws -> [UInt8]? {
            if !hasStarted { try reader.beginPass() }
            hasStarted = true
            return try await reader.next()
        }

        /// Returns the next piece; `nil` at the end.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> [UInt8]? {
            try await next()
        }
    }

    /// Returns a pass that continues where the last one stopped.
    public func makeAsyncIterator() -> Iterator { Iterator(reader: reader) }

    /// Returns the exchange of the body, with the part that was read.
    /// - Parameter isCollected: Whether that part is the whole body.
    package func exchange(with body: [UInt8], isCollected: Bool) -> HTTPExchange {
        reader.answer.exchange(with: body, isCollected: isCollected)
    }

    /// Collects the rest of the body.
    /// - Throws: An ``HTTPError``: `.bodyTooLarge` above the limit, and the connection is closed; `.bodyAlreadyRead`;
    ///   the errors of reading. `CancellationError`.
    public func collect(upTo limit: ByteCount = .mebibytes(16)) async throws -> [UInt8] {
        try reader.beginPass()
        var whole: [UInt8] = []
        while let piece = try await reader.next() {
            guard piece.count <= limit.bytes - whole.count else {
                throw await reader.reason(of: reader.tooLarge(limit.bytes))
            }
            if whole.isEmpty { whole = piece } else { whole += piece }
        }
        return whole
    }

    /// Collects the rest of the body and decodes it as text, like ``HTTPExchange/text``.
    /// - Throws: The errors of ``collect(upTo:)``; an ``HTTPError`` (`.decodingFailed`) for an unknown charset.
    public func text(upTo limit: ByteCount = .mebibytes(16)) async throws -> String {
        let exchange = exchange(with: try await collect(upTo: limit), isCollected: true)
        return try exchange.checked { try TextDecoding(known: exchange.contentType?.charset).text(from: exchange.body) }
    }

    /// Collects the rest of the body and decodes it as JSON, like `HTTPExchange.decode`: the status must be 2xx.
    /// - Throws: The errors of ``collect(upTo:)`` and `HTTPExchange.decode`.
    public func decode<Value: Decodable>(
        _ type: Value.Type = Value.self, upTo limit: ByteCount = .mebibytes(16), using decoder: JSONDecoder? = nil
    ) async throws -> Value {
        try exchange(with: await collect(upTo: limit), isCollected: true).decode(type, using: decoder)
    }

    /// Writes the rest of the body to a file, which is renamed to its final name when it is complete.
    ///
    /// - Parameters:
    ///   - path: The file's name; its directory must exist.
    ///   - beginning: The part of the body that the caller has already read, which is written first; empty by default.
    ///   - overwrites: Whether an existing file may be replaced; `false` by default.
    /// - Throws: An ``HTTPError``, such as `.fileFailed`; `CancellationError`.
    public func write(
        to path: some FilePathConvertible, startingWith beginning: some Sequence<UInt8> = [], overwrites: Bool = false
    ) async throws {
        let beginning = ArraySlice(beginning)
        // With a beginning, a body that was read to its end can still be written.
        if beginning.isEmpty { try reader.beginPass() }
        let download = FileDownload(path: path.filePath, overwrites: overwrites, call: reader.call)
        try await download.write(reader, after: beginning)
    }

    /// Returns the same body, which now buffers the pieces that are read: ``write(to:_:overwrites:)`` can then write
    /// the whole body.
    /// - Parameter limit: The maximum number of bytes to buffer; above it, the whole body can no longer be written.
    public func buffering(upTo limit: ByteCount = .mebibytes(1)) -> ResponseBody {
        reader.remember(upTo: limit.bytes)
        return self
    }

    /// The part of a body that is written.
    public enum Extent: String, Hashable, Sendable {
        /// The part that has not been read.
        case rest
        /// The whole body. The part that was read must have been buffered: ``ResponseBody/buffering(upTo:)``.
        case whole
    }

    /// Writes the body to a file while it is streamed. The file is renamed to its final name when it is complete. No
    /// byte is lost or duplicated.
    ///
    /// - Parameters:
    ///   - path: The file's name; its directory must exist.
    ///   - extent: Whether the part that was already read is written first.
    ///   - overwrites: Whether an existing file may be replaced; `false` by default.
    /// - Throws: An ``HTTPError``: `.fileFailed`; `.limitExceeded` for `.whole` if the part that was read is not
    ///   buffered; `.bodyAlreadyRead` for `.rest` after the end; `.truncated` if an earlier read or write lost bytes.
    ///   If the file cannot be created, nothing is lost, and another file may be tried. `CancellationError`.
    public func write(to path: some FilePathConvertible, _ extent: Extent, overwrites: Bool = false) async throws {
        var taken: [UInt8] = []
        if extent == .whole {
            guard let remembered = reader.remembered else {
                throw reader.rejection(
                    .limitExceeded,
                    "the part that was already read is not buffered, so the whole body cannot be written")
            }
            taken = remembered
        }
        try await write(to: path, startingWith: taken, overwrites: overwrites)
    }

    /// The trailers of a chunked body; available after the body was read to its end.
    public var trailers: HTTPFields? { reader.channel.trailers.map(HeadConversion.fields) }
}
