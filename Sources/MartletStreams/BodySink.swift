import MartletCore
import MartletStorage
package import MartletTransport
public import SystemPackage

/// One of the places that a body is sent to by ``ResponseBody/tee(to:onFailure:)``.
///
/// Its functions are called one after the other, by one task at a time. ``write(_:)`` holds the sender: while it does not
/// return, nothing more of the body is read. Behind ``finish()`` or ``abandon()`` nothing follows.
public protocol BodySink: Sendable {
    /// Takes the next piece, which is not empty.
    ///
    /// What it throws ends this sink: ``abandon()`` follows. When the call is cancelled its task is, and it should return or
    /// throw soon.
    func write(_ piece: [UInt8]) async throws

    /// The body is complete.
    func finish() async throws

    /// The body is not complete, and will not be: it failed, was cancelled, or this sink threw.
    func abandon() async
}

extension BodySink {
    /// Nothing.
    public func finish() async throws {}

    /// Nothing.
    public func abandon() async {}
}

/// A sink that hands each piece to a closure.
public struct ClosureSink: BodySink {
    private let take: @Sendable ([UInt8]) async throws -> Void

    /// A sink.
    /// - Parameter take: Called with each piece; what it throws ends the sink.
    public init(_ take: @escaping @Sendable ([UInt8]) async throws -> Void) { self.take = take }

    /// Hands the piece to the closure.
    public func write(_ piece: [UInt8]) async throws { try await take(piece) }
}

/// A sink that computes a digest of the body.
public actor DigestSink: BodySink {
    /// The hash functions. MD5 and SHA-1 are broken as proofs that nobody tampered.
    public enum Algorithm: String, Hashable, Sendable, CaseIterable, Codable {
        /// 16 bytes (RFC 1321).
        case md5
        /// 20 bytes (FIPS 180-4).
        case sha1
        /// 32 bytes (FIPS 180-4).
        case sha256
        /// 48 bytes (FIPS 180-4).
        case sha384
        /// 64 bytes (FIPS 180-4).
        case sha512

        /// The function as OpenSSL computes it.
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

    /// What is computed.
    public nonisolated let algorithm: Algorithm
    private var digest: MessageDigest?
    private var result: [UInt8]?

    /// A digest of nothing so far.
    public init(_ algorithm: Algorithm) { self.algorithm = algorithm }

    /// The digest of the whole body; `nil` until it is complete.
    public var bytes: [UInt8]? { result }

    /// The digest in lower-case hexadecimal digits; `nil` until the body is complete.
    public var hexadecimal: String? {
        result.map { String(decoding: MessageDigest.hexadecimal($0), as: UTF8.self) }
    }

    private func begun() throws(HTTPError) -> MessageDigest {
        if let digest { return digest }
        do throws(MessageDigestError) {
            let digest = try MessageDigest(algorithm.digest)
            self.digest = digest
            return digest
        } catch {
            throw DigestSink.failure(error)
        }
    }

    private static func failure(_ error: MessageDigestError) -> HTTPError {
        HTTPError(
            .systemFailed, phase: .receivingBody, message: error.description, wasSent: true,
            underlying: error)
    }

    /// Adds a piece.
    /// - Throws: An ``HTTPError`` where this machine's OpenSSL does not compute the function.
    public func write(_ piece: [UInt8]) async throws { try begun().update(piece) }

    /// Computes the digest.
    public func finish() async throws {
        let digest = try begun()
        do throws(MessageDigestError) {
            result = try digest.finish()
        } catch {
            throw DigestSink.failure(error)
        }
    }
}

/// A sink that writes the body to a file, which appears under its name when it is complete, synced, and not before.
///
/// Until then, and whatever fails, a file of that name is what it was. The file is written by a thread of its own while the
/// next bytes are received, at most 1 MiB ahead.
public actor FileSink: BodySink {
    /// The file's name.
    public nonisolated let path: FilePath
    /// Whether a file that has the name may be replaced.
    public nonisolated let overwrites: Bool
    private let opening: FileDownload
    private var writer: BodyPouring?
    private var file: FilePublisher?

    /// A sink.
    /// - Parameters:
    ///   - path: The file's name; its folder must exist.
    ///   - overwrites: Whether a file that has the name may be replaced; `false` by default.
    public init(_ path: FilePath, overwrites: Bool = false) {
        self.path = path
        self.overwrites = overwrites
        opening = FileDownload(path: path, overwrites: overwrites, origin: nil)
    }

    /// Writes a piece, or has it written while the next is received.
    /// - Throws: An ``HTTPError`` with the code `.fileFailed` or `.diskFull`.
    public func write(_ piece: [UInt8]) async throws { try await opened().append(piece[...]) }

    /// Syncs the file and gives it its name.
    /// - Throws: An ``HTTPError`` with the code `.fileFailed` or `.diskFull`.
    public func finish() async throws {
        try await opened().finish()
        guard let file else { return }
        try Task.checkCancellation()
        try await opening.publish(file)
        (self.file, self.writer) = (nil, nil)
    }

    /// Removes what was written.
    public func abandon() async {
        await writer?.waitForWorker()
        if let file { await BlockingWorkers.shared.run { file.discard() } }
        (file, writer) = (nil, nil)
    }

    private func opened() async throws -> BodyPouring {
        if let writer { return writer }
        let file = try await opening.open()
        let writer = BodyPouring(file, expected: nil, origin: nil)
        (self.file, self.writer) = (file, writer)
        return writer
    }
}
