import COpenSSL

/// A key, owned: a private one, unless it was read as a public one.
@safe final class PrivateKey {
    let pointer: OpaquePointer

    /// Takes over a reference.
    init(owning pointer: OpaquePointer) {
        unsafe self.pointer = pointer
    }

    deinit {
        unsafe EVP_PKEY_free(pointer)
    }

    /// The public key in DER (SubjectPublicKeyInfo).
    var publicBytes: [UInt8] {
        var output: UnsafeMutablePointer<UInt8>?
        let count = unsafe i2d_PUBKEY(pointer, &output)
        guard count > 0, let output = unsafe output else { return [] }
        defer { unsafe CRYPTO_free(output, nil, 0) }
        return unsafe Array(UnsafeBufferPointer(start: output, count: Int(count)))
    }

    /// The same private key, tied to no library but the usual one.
    func copied() -> PrivateKey? {
        var output: UnsafeMutablePointer<UInt8>?
        let count = unsafe i2d_PrivateKey(pointer, &output)
        guard count > 0, let output = unsafe output else { return nil }
        defer { unsafe CRYPTO_clear_free(output, Int(count), nil, 0) }
        var input: UnsafePointer<UInt8>? = unsafe UnsafePointer(output)
        guard let copy = unsafe d2i_AutoPrivateKey(nil, &input, Int(count)) else { return nil }
        return unsafe PrivateKey(owning: copy)
    }
}
