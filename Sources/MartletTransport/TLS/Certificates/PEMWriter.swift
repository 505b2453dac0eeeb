import COpenSSL

/// Writes certificates and keys as PEM text.
enum PEMWriter {
    /// The text that a closure writes to a BIO in memory.
    /// - Parameter write: Gives 1 when it could write.
    static func text(_ write: (OpaquePointer) -> Int32) throws(TLSError) -> String {
        OpenSSLErrors.clear()
        guard let bio = unsafe BIO_new(BIO_s_mem()) else {
            throw TLSError(.configuration(reason: OpenSSLErrors.drain().text))
        }
        defer { unsafe BIO_free(bio) }
        guard unsafe write(bio) == 1 else {
            throw TLSError(.configuration(reason: OpenSSLErrors.drain().text))
        }
        var data: UnsafeMutablePointer<CChar>?
        let count = unsafe martlet_bio_memory(bio, &data)
        guard let data = unsafe data, count > 0 else { return "" }
        return unsafe String(
            decoding: UnsafeRawBufferPointer(start: data, count: Int(count)), as: UTF8.self)
    }

    /// A certificate.
    static func certificate(_ certificate: Certificate) throws(TLSError) -> String {
        unsafe try text { bio in unsafe PEM_write_bio_X509(bio, certificate.pointer) }
    }

    /// A private key, not encrypted.
    static func privateKey(_ key: PrivateKey) throws(TLSError) -> String {
        unsafe try text { bio in unsafe PEM_write_bio_PKCS8PrivateKey(bio, key.pointer, nil, nil, 0, nil, nil)
        }
    }
}
