public import FoundationEssentials

/// The body of a response as it arrives: an `AsyncSequence` of pieces, which are pulled.
///
/// Nothing is read before it is requested: a consumer that stops slows the sender down by the TCP window, and a body of any
/// size passes through less than 1 MiB. It can be read once, by one task at a time: a pass continues where the one before stopped, and
/// after the end of the body another pass throws an ``HTTPError`` with the code `.bodyAlreadyRead`, unless the body is empty. The
/// body of a stream can be read only within the closure it was passed to, and throws after that; that of a response made by
/// ``HTTPSession/open(_:method:query:headers:body:timeout:options:validate:)`` can be read at any time, and in any task.
public struct ResponseBody: AsyncSequence, Sendable {
    /// A piece of the body; never empty.
    public typealias Element = [UInt8]

    package let reader: BodyReader

    /// The length in the head, before content codings are decoded; `nil` if there is none.
    public let expectedContentLength: UInt64?

    /// The `charset` of `Content-Type`.
    package var charset: String? {
        reader.answer.head.fields.firstValue(of: "content-type").flatMap { MediaType($0) }?.charset
    }

    package init(reader: BodyReader, expectedContentLength: UInt64?) {
        self.reader = reader
        self.expectedContentLength = expectedContentLength
    }

    /// One pass over the body.
    public struct Iterator: AsyncIteratorProtocol {
        let reader: BodyReader
        private var isBegun = false

        init(reader: BodyReader) { self.reader = reader }

        /// The next piece; `nil` at the end.
        ///
        /// When the task is cancelled it throws `CancellationError` immediately, and the connection is closed.
        /// - Throws: An ``HTTPError``: a timeout, a limit, a truncated or malformed body; `.bodyAlreadyRead`.
        public mutating func next() async throws -> [UInt8]? {
            if !isBegun { try reader.beginPass() }
            isBegun = true
            return try await reader.next()
        }

        /// The next piece; `nil` at the end.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> [UInt8]? {
            try await next()
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
    /// - Throws: An ``HTTPError``: `.bodyTooLarge` if there is more than the limit, and the connection is closed then;
    ///   `.bodyAlreadyRead`; the errors of reading. `CancellationError`.
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

    /// Collects the rest of the body as text, as ``HTTPExchange/text`` decodes it.
    /// - Throws: As ``collect(upTo:)``; an ``HTTPError`` with the code `.decodingFailed` for a charset that is not known.
    public func text(upTo limit: ByteCount = .mebibytes(16)) async throws -> String {
        let exchange = exchange(with: try await collect(upTo: limit), isCollected: true)
        return try exchange.checked { try TextDecoding(known: exchange.contentType?.charset).text(from: exchange.body) }
    }

    /// Collects the rest of the body and decodes it as JSON, as ``HTTPExchange/decode(_:using:status:)`` does: the status must be 2xx.
    /// - Throws: As ``collect(upTo:)`` and that function.
    public func decode<Value: Decodable>(
        _ type: Value.Type = Value.self, upTo limit: ByteCount = .mebibytes(16), using decoder: JSONDecoder? = nil
    ) async throws -> Value {
        try exchange(with: await collect(upTo: limit), isCollected: true).decode(type, using: decoder)
    }

    /// Turns the rest of the body into a download: writes it to a file, which gets its name when it is complete.
    ///
    /// - Parameters:
    ///   - path: The file's name; its directory must exist.
    ///   - beginning: The part of the body that was read before, for the beginning of the file; nothing by default.
    ///   - overwrites: Whether an existing file may be replaced; `false` by default.
    /// - Throws: An ``HTTPError``, such as `.fileFailed`; `CancellationError`.
    public func write(
        to path: some FilePathConvertible, startingWith beginning: some Sequence<UInt8> = [], overwrites: Bool = false
    ) async throws {
        let beginning = ArraySlice(beginning)
        // The file of a body that was read is complete only with what was read.
        if beginning.isEmpty { try reader.beginPass() }
        let download = FileDownload(path: path.filePath, overwrites: overwrites, call: reader.call)
        try await download.write(reader, after: beginning)
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
    public func write(to path: some FilePathConvertible, _ extent: Extent, overwrites: Bool = false) async throws {
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
