public import MartletCore

/// A destination of a body in ``ResponseBody/tee(to:onFailure:)``. Its functions are called one at a time. While
/// ``write(_:)`` runs, no more of the body is read. No call follows ``abandon()`` or a successful ``finish()``.
public protocol BodySink: Sendable {
    /// Writes the next piece, which is not empty. An error ends this sink: ``abandon()`` follows. A cancelled call
    /// cancels the task that runs this function; the function should then return soon.
    func write(_ piece: [UInt8]) async throws

    /// Completes the sink; called when the body is complete.
    func finish() async throws

    /// Discards the body; called when the body failed, the call was cancelled, or this sink threw an error.
    func abandon() async
}

extension BodySink {
    /// Ignores the end of the body.
    public func finish() async throws {}

    /// Ignores the end of the body.
    public func abandon() async {}
}

/// A sink that passes each piece to a closure.
public struct ClosureSink: BodySink {
    private let take: @Sendable ([UInt8]) async throws -> Void

    /// Creates a sink with a closure.
    /// - Parameter take: Called with each piece; an error ends the sink.
    public init(_ take: @escaping @Sendable ([UInt8]) async throws -> Void) { self.take = take }

    /// Passes the piece to the closure.
    public func write(_ piece: [UInt8]) async throws { try await take(piece) }
}

/// A sink that computes a digest of the body. ``hexadecimal`` and ``bytes`` are available once the body is complete.
public actor DigestSink: BodySink {
    /// The hash functions. MD5 and SHA-1 do not protect against tampering.
    public enum Algorithm: String, Hashable, Sendable, CaseIterable, Codable {
        /// MD5, with 16 bytes (RFC 1321).
        case md5
        /// SHA-1, with 20 bytes (FIPS 180-4).
        case sha1
        /// SHA-256, with 32 bytes (FIPS 180-4).
        case sha256
        /// SHA-384, with 48 bytes (FIPS 180-4).
        case sha384
        /// SHA-512, with 64 bytes (FIPS 180-4).
        case sha512

        /// The function as a digest algorithm of OpenSSL.
        package var digest: MessageDigestAlgorithm {
            switch self {
            case .md5: .md5
            case .sha1: .sha1
            case .sha256: .sha256
            case .sha384: .sha384
            case .sha512: .sha512
            }
        }
    }

    /// The hash function of the sink.
    public nonisolated let algorithm: Algorithm
    private var digest: MessageDigest?

    /// Creates a sink that computes a digest.
    public init(_ algorithm: Algorithm) { self.algorithm = algorithm }

    /// The digest of the whole body; `nil` until it is complete.
    public private(set) var bytes: [UInt8]?

    /// The digest in lower-case hexadecimal digits; `nil` until the body is complete.
    public var hexadecimal: String? { bytes.map { String(decoding: MessageDigest.hexadecimal($0), as: UTF8.self) } }

    private func withDigest<Value>(_ body: (MessageDigest) throws(MessageDigestError) -> Value) throws(HTTPError)
        -> Value
    {
        do throws(MessageDigestError) {
            let begun = if let digest { digest } else { try MessageDigest(algorithm.digest) }
            digest = begun
            return try body(begun)
        } catch {
            throw HTTPError(
                .systemFailed, phase: .receivingBody, message: error.description, wasSent: true, underlying: error)
        }
    }

    /// Adds a piece to the digest.
    /// - Throws: An ``HTTPError`` with the code `.systemFailed` if OpenSSL on this system lacks the hash function.
    public func write(_ piece: [UInt8]) async throws { try withDigest { $0.update(piece) } }

    /// Computes the digest.
    public func finish() async throws {
        bytes = try withDigest { (digest) throws(MessageDigestError) in try digest.finish() }
    }
}

/// A sink that writes the body to a file. The complete file is synced and renamed to its final name; before that, and
/// after a failure, an existing file is unchanged. A separate thread writes; up to 1 MiB is received ahead of it.
public actor FileSink: BodySink {
    /// The path of the file.
    public nonisolated let path: FilePath
    /// Whether an existing file of that name may be replaced.
    public nonisolated let overwrites: Bool
    private let opening: FileDownload
    private var writer: BodyCopier?
    private var file: AtomicFileWriter?

    /// Creates a sink that writes a file.
    /// - Parameters:
    ///   - path: The path of the file; its directory must exist.
    ///   - overwrites: Whether an existing file of that name may be replaced; `false` by default.
    public init(_ path: some FilePathConvertible, overwrites: Bool = false) {
        let path = path.filePath
        (self.path, self.overwrites) = (path, overwrites)
        opening = FileDownload(path: path, overwrites: overwrites, call: nil)
    }

    /// Writes a piece, or queues it to be written while the next one is received.
    /// - Throws: An ``HTTPError`` with the code `.fileFailed` or `.diskFull`.
    public func write(_ piece: [UInt8]) async throws { try await opened().append(piece[...]) }

    /// Syncs the file and renames it to its final name.
    /// - Throws: An ``HTTPError`` with the code `.fileFailed` or `.diskFull`.
    public func finish() async throws {
        try await opened().finish()
        guard let file else { return }
        try Task.checkCancellation()
        try await opening.publish(file)
        (self.file, self.writer) = (nil, nil)
    }

    /// Removes the written bytes.
    public func abandon() async {
        await writer?.waitForWorker()
        if let file { await BlockingThreadPool.shared.run { file.discard() } }
        (file, writer) = (nil, nil)
    }

    private func opened() async throws -> BodyCopier {
        if let writer { return writer }
        let file = try await opening.open()
        let writer = BodyCopier(file, expected: nil, call: nil)
        (self.file, self.writer) = (file, writer)
        return writer
    }
}
