import COpenSSL

/// SHA-256 by OpenSSL.
enum Digest {
    /// The 32 bytes; none when OpenSSL cannot make them.
    static func sha256(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
        var output = [UInt8](repeating: 0, count: 32)
        var count: UInt32 = 0
        guard
            unsafe EVP_Digest(bytes.baseAddress, bytes.count, &output, &count, EVP_sha256(), nil) == 1,
            count == 32
        else {
            OpenSSLErrors.clear()
            return []
        }
        return output
    }
}
