import COpenSSL

/// A set of trusted certificates in OpenSSL's form.
///
/// `@unchecked Sendable`: the pointer is set once; an `X509_STORE` has a lock of its own, and is filled
/// before it is shared.
@safe final class TrustStore: @unchecked Sendable {
    let pointer: OpaquePointer

    /// An empty store; `nil` when there is no memory left.
    init?() {
        guard let pointer = unsafe X509_STORE_new() else { return nil }
        unsafe self.pointer = pointer
    }

    deinit {
        unsafe X509_STORE_free(pointer)
    }

    /// Adds a certificate. One that is there already is passed over.
    func add(_ certificate: Certificate) {
        unsafe X509_STORE_add_cert(pointer, certificate.pointer)
        OpenSSLErrors.clear()
    }

    /// Adds the certificates of another store: shared, not copied.
    func add(_ other: TrustStore) {
        let count = unsafe martlet_store_count(other.pointer)
        for index in 0..<max(count, 0) {
            guard let certificate = unsafe martlet_store_certificate(other.pointer, index) else { continue }
            unsafe X509_STORE_add_cert(pointer, certificate)
        }
        OpenSSLErrors.clear()
    }

    /// Adds a revocation list.
    func add(_ list: RevocationList) {
        unsafe X509_STORE_add_crl(pointer, list.pointer)
        OpenSSLErrors.clear()
    }

    /// Has a folder looked at, whose files are named after the hashes of their subjects.
    func addFolder(_ path: String) {
        unsafe X509_STORE_load_path(pointer, path)
        OpenSSLErrors.clear()
    }

    /// How many certificates are loaded; those in folders come only when they are wanted.
    var count: Int {
        Int(unsafe martlet_store_count(pointer))
    }
}
