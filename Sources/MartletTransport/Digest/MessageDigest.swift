import COpenSSL

/// A hash that is computed piece by piece.
///
/// It belongs to one task at a time. After a fault nothing is computed any more, and ``finish()`` says so.
@safe package final class MessageDigest {
    /// What is computed.
    package let algorithm: MessageDigestAlgorithm
    private let context: OpaquePointer
    /// Whether every step so far succeeded, and the end has not been asked for.
    private var isSound = true

    /// A digest of nothing so far.
    ///
    /// - Throws: When this system's OpenSSL has no such function.
    package init(_ algorithm: MessageDigestAlgorithm) throws(MessageDigestError) {
        OpenSSLLibrary.load()
        guard let context = unsafe EVP_MD_CTX_new() else { throw MessageDigestError(algorithm: algorithm) }
        guard unsafe EVP_DigestInit_ex(context, algorithm.implementation, nil) == 1 else {
            unsafe EVP_MD_CTX_free(context)
            OpenSSLErrors.clear()
            throw MessageDigestError(algorithm: algorithm)
        }
        self.algorithm = algorithm
        unsafe self.context = context
    }

    deinit { unsafe EVP_MD_CTX_free(context) }

    /// Adds bytes.
    package func update(_ bytes: some Sequence<UInt8>) {
        let isAdded: Void? = bytes.withContiguousStorageIfAvailable { unsafe add(UnsafeRawBufferPointer($0)) }
        if isAdded == nil { add(Array(bytes)) }
    }

    private func add(_ bytes: [UInt8]) { unsafe bytes.withUnsafeBytes { unsafe add($0) } }

    /// Adds bytes where they lie.
    package func update(_ bytes: Span<UInt8>) { unsafe bytes.withUnsafeBytes { unsafe add($0) } }

    private func add(_ buffer: UnsafeRawBufferPointer) {
        guard isSound, unsafe !buffer.isEmpty else { return }
        isSound = unsafe EVP_DigestUpdate(context, buffer.baseAddress, buffer.count) == 1
    }

    /// The digest of all that was added. It can be asked for once.
    ///
    /// - Throws: When a step failed, or the digest was asked for before.
    package func finish() throws(MessageDigestError) -> [UInt8] {
        guard isSound else { throw MessageDigestError(algorithm: algorithm) }
        isSound = false
        var isComputed = false
        let digest = unsafe [UInt8](unsafeUninitializedCapacity: Int(EVP_MAX_MD_SIZE)) { buffer, count in
            var length: UInt32 = 0
            isComputed = unsafe EVP_DigestFinal_ex(context, buffer.baseAddress, &length) == 1
            count = isComputed ? Int(length) : 0
        }
        guard isComputed, digest.count == algorithm.byteCount else {
            OpenSSLErrors.clear()
            throw MessageDigestError(algorithm: algorithm)
        }
        return digest
    }

    /// The digest of bytes that are there as a whole.
    ///
    /// - Throws: When this system's OpenSSL has no such function.
    package static func digest(
        _ algorithm: MessageDigestAlgorithm, of bytes: some Sequence<UInt8>
    ) throws(MessageDigestError) -> [UInt8] {
        let digest = try MessageDigest(algorithm)
        digest.update(bytes)
        return try digest.finish()
    }

    /// Bytes as pairs of lower-case hexadecimal digits.
    package static func hexadecimal(_ bytes: some Sequence<UInt8>) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(2 * bytes.underestimatedCount)
        for byte in bytes {
            text.append(digit(byte >> 4))
            text.append(digit(byte & 0x0F))
        }
        return text
    }

    private static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + (value - 10)
    }
}

/// The hash functions that HTTP's users name: for Digest authentication, and for checksums of files.
///
/// MD5 and SHA-1 are broken as proofs that nobody tampered; they are here because servers ask for the one, and publishers
/// of files still give the other.
package enum MessageDigestAlgorithm: String, Hashable, Sendable, CaseIterable {
    /// MD5 (RFC 1321), 16 bytes.
    case md5
    /// SHA-1 (FIPS 180-4), 20 bytes.
    case sha1
    /// SHA-256 (FIPS 180-4), 32 bytes.
    case sha256
    /// SHA-384 (FIPS 180-4), 48 bytes.
    case sha384
    /// SHA-512 (FIPS 180-4), 64 bytes.
    case sha512
    /// SHA-512/256 (FIPS 180-4 §6.7), 32 bytes: a function with a beginning of its own, not SHA-512 cut short.
    case sha512_256

    /// How many bytes a digest has.
    package var byteCount: Int {
        switch self {
        case .md5: 16
        case .sha1: 20
        case .sha256, .sha512_256: 32
        case .sha384: 48
        case .sha512: 64
        }
    }

    /// Whether this machine's OpenSSL computes it: one that is bound to FIPS 140 has no MD5.
    package var isAvailable: Bool {
        do throws(MessageDigestError) {
            _ = try MessageDigest(self)
            return true
        } catch {
            return false
        }
    }

    /// OpenSSL's description of the function; it lives as long as the process.
    var implementation: OpaquePointer? {
        switch self {
        case .md5: unsafe EVP_md5()
        case .sha1: unsafe EVP_sha1()
        case .sha256: unsafe EVP_sha256()
        case .sha384: unsafe EVP_sha384()
        case .sha512: unsafe EVP_sha512()
        case .sha512_256: unsafe EVP_sha512_256()
        }
    }
}

/// A digest that could not be computed.
package struct MessageDigestError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What was to be computed.
    package let algorithm: MessageDigestAlgorithm

    /// The algorithm, and why it may be missing.
    package var description: String {
        "this system's OpenSSL does not compute \(algorithm.rawValue); a FIPS configuration forbids some algorithms"
    }
}
