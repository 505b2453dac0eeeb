package import MartletTransport

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
    public init(_ algorithm: Algorithm) {
        self.algorithm = algorithm
    }

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
    public func write(_ piece: [UInt8]) async throws {
        try begun().update(piece)
    }

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
