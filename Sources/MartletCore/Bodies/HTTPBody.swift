public import FoundationEssentials

/// The body of a request, which knows whether it can be sent again: ``replay``.
///
/// Before a redirect, a retry or another repetition, the call checks ``replay``.
public struct HTTPBody: Sendable {
    /// The condition under which a body can be sent again.
    public enum Replay: String, Hashable, Sendable {
        /// At any time, from any offset: bytes and files.
        case replayable
        /// From its beginning: a source that can be opened again.
        case restartable
        /// Only while no part of it was read, for example after a server rejects a request with `Expect: 100-continue`.
        case once
    }

    package enum Storage: Sendable {
        case none
        case bytes([UInt8])
        case file(FilePath)
        case stream(length: UInt64?, open: @Sendable () -> any RequestBodySource)
        case once(length: UInt64?, SingleUseSource)
        case multipart(MultipartContent)
        /// A value that the call encodes.
        case value(any Encodable & Sendable)
        case failure(any Error)
    }

    package var storage: Storage
    /// The value of `Content-Type`, unless the request sets it; `nil` for none.
    public var contentType: String?
    /// The trailer that is sent after the body if it is sent in chunks.
    package var trailer: BodyTrailer?
    /// The compression of the body while it is sent; `nil` for none.
    package var compression: BodyCompression?

    package init(_ storage: Storage, contentType: String?) { (self.storage, self.contentType) = (storage, contentType) }

    /// A request without a body.
    public static let none = HTTPBody(.none, contentType: nil)

    /// Creates a body of bytes in memory.
    public static func bytes(_ bytes: some Sequence<UInt8>, contentType: String? = "application/octet-stream")
        -> HTTPBody
    { HTTPBody(.bytes(Array(bytes)), contentType: contentType) }

    /// Creates a body of text in UTF-8.
    public static func text(_ text: String, contentType: String? = "text/plain; charset=utf-8") -> HTTPBody {
        .bytes(text.utf8, contentType: contentType)
    }

    /// Creates a body of a value as JSON. The value is encoded when the call is made, by the encoder of its host or
    /// session (``SessionConfiguration/encoder``).
    ///
    /// If encoding fails, the call throws an ``HTTPError`` with the code `.invalidRequest` before anything is sent.
    public static func json(_ value: some Encodable & Sendable) -> HTTPBody {
        HTTPBody(.value(value), contentType: "application/json")
    }

    /// Creates a body of a value as JSON. The given encoder encodes it immediately; if that fails, the call throws an
    /// ``HTTPError`` with the code `.invalidRequest`.
    public static func json(_ value: some Encodable, encoder: JSONEncoder) -> HTTPBody {
        do { return .bytes(try encoder.encode(value), contentType: "application/json") } catch {
            return HTTPBody(.failure(error), contentType: nil)
        }
    }

    /// Creates a body of a JSON value, with all digits of its numbers.
    public static func json(_ value: JSONValue) -> HTTPBody { .bytes(value.bytes(), contentType: "application/json") }

    /// Creates a form (`application/x-www-form-urlencoded`) of names and values, in the given order.
    public static func form(_ items: [QueryItem]) -> HTTPBody {
        .bytes(FormEncoding.encoded(items).utf8, contentType: "application/x-www-form-urlencoded")
    }

    /// Creates a body of a file, which is read while it is sent. The length is read when the call opens the file; a
    /// file that becomes shorter or longer is an error. The path is a `String` or a `FilePath`.
    public static func file(_ path: some FilePathConvertible, contentType: String? = "application/octet-stream")
        -> HTTPBody
    { HTTPBody(.file(path.filePath), contentType: contentType) }

    /// Creates a body of a sequence of pieces that can be opened again from its beginning.
    /// - Parameters:
    ///   - length: The exact length in bytes. The last piece is held back until the sequence has ended, so that a body
    ///     that is too long is never completed. `nil` sends the body in chunks.
    ///   - open: A closure that returns the sequence; called each time the body is sent.
    public static func stream<Pieces: AsyncSequence & Sendable>(
        length: UInt64? = nil, contentType: String? = "application/octet-stream",
        _ open: @escaping @Sendable () -> Pieces
    ) -> HTTPBody where Pieces.Element: Sequence<UInt8>, Pieces.AsyncIterator: SendableMetatype {
        HTTPBody(.stream(length: length, open: { SequenceSource(open()) }), contentType: contentType)
    }

    /// Creates a body of a sequence of pieces that can be read only once.
    /// - Parameter length: The length, as with ``stream(length:contentType:_:)``; `nil` sends the body in chunks.
    public static func once<Pieces: AsyncSequence & Sendable>(
        _ pieces: Pieces, length: UInt64? = nil, contentType: String? = "application/octet-stream"
    ) -> HTTPBody where Pieces.Element: Sequence<UInt8>, Pieces.AsyncIterator: SendableMetatype {
        HTTPBody(.once(length: length, SingleUseSource(SequenceSource(pieces))), contentType: contentType)
    }

    /// Returns the body compressed with a content coding while it is sent (RFC 9110 §8.4). A second call replaces the
    /// coding of the first.
    ///
    /// Bytes in memory up to 1 MiB are compressed first and sent with `Content-Length`, or uncompressed if they would
    /// not be smaller. Larger and other bodies are compressed piece by piece and sent in chunks. Empty bodies are not
    /// compressed. `Content-Encoding` is set to match; see <doc:Uploads>. All properties of the body, and ``pieces``,
    /// remain those of the uncompressed body. After a 415, the request is repeated once uncompressed, if possible.
    /// - Parameter level: A number from 1 (fast) to the coding's maximum (small); see ``BodyCompression``. Other values
    ///   are clamped. `nil` (the default) for the default of the coding.
    public func compressed(_ coding: BodyCompression, level: Int? = nil) -> HTTPBody {
        var body = self
        body.compression = coding
        body.compression?.level = level
        return body
    }

    /// The condition under which the body can be sent again.
    public var replay: Replay {
        switch storage {
        case .none, .bytes, .file, .value, .failure: .replayable
        case .stream: .restartable
        case .once: .once
        case .multipart(let content): content.replay
        }
    }

    /// Whether the body can be sent now: its ``replay`` allows it, or no part of it was read.
    var isWhole: Bool {
        switch storage {
        case .once(_, let once): once.isWhole
        case .multipart(let content): content.isWhole
        case .none, .bytes, .file, .stream, .value, .failure: true
        }
    }

    /// Takes a body that can be read only once back from the exchange that opened it, which can read no more of it.
    /// - Returns: Whether the body can be sent again, like ``isWhole``.
    func rewind() -> Bool {
        switch storage {
        case .once(_, let once): once.rewind()
        case .multipart(let content): content.rewind()
        case .none, .bytes, .file, .stream, .value, .failure: true
        }
    }

    /// The length in bytes; `nil` for files, streams of unknown length, and values that are not encoded yet.
    public var length: UInt64? {
        switch storage {
        case .none: 0
        case .bytes(let bytes): UInt64(bytes.count)
        case .stream(let length, _), .once(let length, _): length
        case .multipart(let content): content.length
        case .file, .value, .failure: nil
        }
    }

    /// The bytes, if all of them are in memory; an error if they could not be encoded. `nil` for other bodies.
    package var bytesInMemory: Result<[UInt8], any Error>? {
        switch encoded(by: BodyEncoder()).storage {
        case .none: .success([])
        case .bytes(let bytes): .success(bytes)
        case .failure(let error): .failure(error)
        case .multipart(let content): content.bytes.map { .success($0) }
        case .file, .stream, .once, .value: nil
        }
    }

    /// Returns the body with its value encoded, or a form with the values of its parts encoded; other bodies unchanged.
    package func encoded(by encoder: @autoclosure () -> BodyEncoder) -> HTTPBody {
        var body = self
        switch storage {
        case .value(let value):
            do { body.storage = .bytes(try encoder().bytes(of: value)) } catch { body.storage = .failure(error) }
        case .multipart(let content) where content.holdsValues: body.storage = content.encoded(by: encoder())
        default: break
        }
        return body
    }

    /// Whether there is a body, which may be empty.
    package var isPresent: Bool { if case .none = storage { false } else { true } }
    /// The path of the file; `nil` for another body.
    package var file: FilePath? { if case .file(let path) = storage { path } else { nil } }

    /// The pieces of the body, to sign it or to compute a digest before it is sent.
    ///
    /// Each iteration reads the body from its beginning. It throws the errors of the body's source. For a body that can
    /// be read only once, it throws an ``HTTPError`` with the code `.bodyNotReplayable`, because nothing would be left
    /// to send.
    public var pieces: Pieces { Pieces(body: self) }

    /// The pieces of a body, which are not empty; see ``HTTPBody/pieces``.
    public struct Pieces: AsyncSequence, Sendable {
        fileprivate let body: HTTPBody

        /// The state of one iteration.
        public struct Iterator: AsyncIteratorProtocol {
            fileprivate let body: HTTPBody
            fileprivate var source: (any RequestBodySource)?

            /// Returns the next piece; `nil` after the last.
            public mutating func next() async throws -> [UInt8]? {
                if source == nil {
                    guard body.replay != .once else {
                        throw HTTPError(
                            .bodyNotReplayable, phase: .preparing,
                            message: "the body can be read only once: reading it would leave nothing to send")
                    }
                    source = try await body.open().source
                }
                while let piece = try await source?.next() { if !piece.isEmpty { return piece } }
                return nil
            }
        }

        /// Returns an iterator that starts at the beginning of the body.
        public func makeAsyncIterator() -> Iterator { Iterator(body: body) }
    }

    /// Collects the body, so that it can be signed or changed before it is sent.
    ///
    /// - Parameter limit: The maximum size of the body, in bytes.
    /// - Throws: The errors of ``pieces``; an ``HTTPError`` with the code `.bodyTooLarge` above the limit.
    public func collect(upTo limit: ByteCount = .mebibytes(16)) async throws -> [UInt8] {
        if case .bytes(let bytes) = storage, bytes.count <= limit.bytes { return bytes }
        var whole: [UInt8] = []
        for try await piece in pieces {
            guard piece.count <= limit.bytes - whole.count else {
                throw HTTPError(
                    .bodyTooLarge, phase: .preparing,
                    message: "the request's body is larger than the limit of \(limit.bytes) bytes for collect(upTo:)")
            }
            whole += piece
        }
        return whole
    }

    /// Opens the body to be read once.
    /// - Returns: The source of the body, and the length if it is known.
    /// - Throws: An ``HTTPError``: `.fileFailed`, `.bodyNotReplayable`, `.invalidRequest`.
    package func open() async throws(HTTPError) -> (source: any RequestBodySource, length: UInt64?) {
        switch storage {
        case .none: return (BytesSource([]), 0)
        case .bytes(let bytes): return (BytesSource(bytes), UInt64(bytes.count))
        case .stream(let length, let open): return (open(), length)
        case .value: return try await encoded(by: BodyEncoder.json()).open()
        case .once(let length, let once):
            guard let source = once.open() else {
                throw HTTPError(
                    .bodyNotReplayable, phase: .preparing,
                    message: "the body can be read only once, and was already read")
            }
            return (source, length)
        case .multipart(let content): return try await content.open()
        case .file(let path):
            do throws(StorageError) {
                let file = try await FileSource.open(path)
                return (file, file.byteCount)
            } catch { throw HTTPError(storing: error) }
        case .failure(let error):
            throw HTTPError(
                .invalidRequest, phase: .preparing, message: "the body could not be encoded: \(error)",
                underlying: error)
        }
    }
}
