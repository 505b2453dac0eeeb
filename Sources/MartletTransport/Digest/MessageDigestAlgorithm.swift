import COpenSSL

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
