import CMartletOpenSSL

/// A hash that one task at a time computes incrementally. ``finish()`` throws the errors of updates.
@safe package final class MessageDigest {
    package let algorithm: MessageDigestAlgorithm
    private let context: OpaquePointer
    /// Whether every step so far succeeded, and the digest has not been returned.
    private var isSound = true

    /// Creates the digest of no bytes.
    /// - Throws: An error if this system's OpenSSL does not have the function.
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

    package func update(_ bytes: some Sequence<UInt8>) {
        let isAdded: Void? = bytes.withContiguousStorageIfAvailable { unsafe add(UnsafeRawBufferPointer($0)) }
        if isAdded == nil { unsafe Array(bytes).withUnsafeBytes { unsafe add($0) } }
    }

    /// Adds bytes without copying them.
    package func update(_ bytes: Span<UInt8>) { unsafe bytes.withUnsafeBytes { unsafe add($0) } }

    private func add(_ buffer: UnsafeRawBufferPointer) {
        guard isSound, unsafe !buffer.isEmpty else { return }
        isSound = unsafe EVP_DigestUpdate(context, buffer.baseAddress, buffer.count) == 1
    }

    /// Returns the digest of all bytes.
    /// - Throws: An error if a step failed, and in every call after the first.
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

    /// Returns the digest of bytes.
    /// - Throws: An error if this system's OpenSSL does not have the function.
    package static func digest(_ algorithm: MessageDigestAlgorithm, of bytes: some Sequence<UInt8>)
        throws(MessageDigestError) -> [UInt8]
    {
        let digest = try MessageDigest(algorithm)
        digest.update(bytes)
        return try digest.finish()
    }

    /// The 32 bytes of SHA-256; empty for empty input (from a failed encoder), or if OpenSSL cannot compute it.
    static func sha256(_ bytes: [UInt8]) -> [UInt8] { bytes.isEmpty ? [] : (try? digest(.sha256, of: bytes)) ?? [] }

    /// Returns bytes as pairs of lower-case hexadecimal digits.
    package static func hexadecimal(_ bytes: some Sequence<UInt8>) -> [UInt8] {
        let digits = Array("0123456789abcdef".utf8)
        return bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
    }
}

/// The hash functions for Digest authentication, and for checksums of files. MD5 and SHA-1 do not protect against
/// tampering; they exist because servers still request MD5, and publishers of files still use both.
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
    /// SHA-512/256 (FIPS 180-4 §6.7), 32 bytes: a function with its own initial value, not a truncated SHA-512.
    case sha512_256

    package var byteCount: Int {
        switch self {
        case .md5: 16
        case .sha1: 20
        case .sha256, .sha512_256: 32
        case .sha384: 48
        case .sha512: 64
        }
    }

    /// Whether this machine's OpenSSL has the function: in FIPS 140 mode it has no MD5.
    package var isAvailable: Bool { (try? MessageDigest(self)) != nil }

    /// SHA-256, which every handshake needs. OpenSSL 3 would search its implementation in each ``MessageDigest``. Set
    /// once, and never changed or freed.
    private nonisolated(unsafe) static let fetchedSHA256 = unsafe EVP_MD_fetch(nil, "SHA256", nil)

    /// OpenSSL's implementation of the function, which is never freed.
    var implementation: OpaquePointer? {
        switch self {
        case .md5: unsafe EVP_md5()
        case .sha1: unsafe EVP_sha1()
        case .sha256: unsafe MessageDigestAlgorithm.fetchedSHA256
        case .sha384: unsafe EVP_sha384()
        case .sha512: unsafe EVP_sha512()
        case .sha512_256: unsafe EVP_sha512_256()
        }
    }
}

package struct MessageDigestError: Error, Equatable, Sendable, CustomStringConvertible {
    package let algorithm: MessageDigestAlgorithm

    package var description: String {
        "this system's OpenSSL does not compute \(algorithm.rawValue); a FIPS configuration forbids some algorithms"
    }
}
