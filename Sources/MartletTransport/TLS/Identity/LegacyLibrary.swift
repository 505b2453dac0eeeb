import COpenSSL

/// An OpenSSL of its own with the legacy algorithms, so that the one that connections use has none of them. Gone with the
/// object.
@safe final class LegacyLibrary {
    let pointer: OpaquePointer
    private let legacy: OpaquePointer
    private let standard: OpaquePointer

    /// `nil` where the provider is not installed, as in programs that are linked statically.
    init?() {
        guard let pointer = unsafe OSSL_LIB_CTX_new() else { return nil }
        let legacy = unsafe OSSL_PROVIDER_load(pointer, "legacy")
        let standard = unsafe OSSL_PROVIDER_load(pointer, "default")
        OpenSSLErrors.clear()
        guard let legacy = unsafe legacy, let standard = unsafe standard else {
            if let legacy = unsafe legacy { unsafe OSSL_PROVIDER_unload(legacy) }
            if let standard = unsafe standard { unsafe OSSL_PROVIDER_unload(standard) }
            unsafe OSSL_LIB_CTX_free(pointer)
            return nil
        }
        unsafe (self.pointer, self.legacy, self.standard) = (pointer, legacy, standard)
    }

    deinit {
        unsafe OSSL_PROVIDER_unload(legacy)
        unsafe OSSL_PROVIDER_unload(standard)
        unsafe OSSL_LIB_CTX_free(pointer)
    }

    /// Calls a closure with this library in the place of the usual one, on this thread alone. Nothing that OpenSSL made in
    /// it may be kept for longer than the library.
    func run<Value>(_ body: () -> Value) -> Value {
        let usual = unsafe OSSL_LIB_CTX_set0_default(pointer)
        defer { _ = unsafe OSSL_LIB_CTX_set0_default(usual) }
        return body()
    }
}
