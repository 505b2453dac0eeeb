import COpenSSL

/// The OpenSSL library of this process.
///
/// By default OpenSSL frees its global state when the process exits (`atexit`). A thread that sets up TLS at that moment
/// then reads freed memory, and the process ends with a signal or hangs. Martlet loads the library without this clean-up:
/// a program may return from `main` while calls run, and the kernel takes the memory back.
///
/// The setting counts only if nothing has loaded the library before, so each first use of OpenSSL passes here: the event
/// loop, which every session needs, digests, pins, and ``OpenSSLErrors/clear()``, which precedes every other use.
enum OpenSSLLibrary {
    private static let loaded: Void = {
        // It can fail only without memory; then the calls that follow fail too, with their own errors.
        _ = OPENSSL_init_ssl(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
    }()

    /// Loads the library once; later calls do nothing.
    static func load() { loaded }
}
