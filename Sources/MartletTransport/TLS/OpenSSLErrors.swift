import COpenSSL

/// What OpenSSL left in its error queue: the queue belongs to the thread, so it is emptied right after the
/// call.
package struct OpenSSLErrors {
    /// One entry.
    struct Entry {
        let library: Int32
        let reason: Int32
        let text: String
    }

    /// The entries, oldest first: the first is the cause, the rest is what it led to.
    let entries: [Entry]

    /// Empties the queue.
    package static func drain() -> OpenSSLErrors {
        var entries: [Entry] = []
        while true {
            let code = ERR_get_error()
            if code == 0 { break }
            let text = unsafe ERR_reason_error_string(code).map { unsafe String(cString: $0) }
            entries.append(
                Entry(
                    library: ERR_GET_LIB(code), reason: ERR_GET_REASON(code),
                    text: text ?? "OpenSSL error \(code)"))
        }
        return OpenSSLErrors(entries: entries)
    }

    /// Empties the queue without a look.
    package static func clear() {
        OpenSSLLibrary.load()
        ERR_clear_error()
    }

    /// Makes a call that may use OpenSSL while another call of OpenSSL runs on this thread, and keeps the entries of the
    /// outer call for the outer call.
    ///
    /// Without this, an inner call that clears the queue takes the outer call's reason away, and one that leaves an entry
    /// makes the outer call fail.
    static func preserving<Value, Failure: Error>(
        _ call: () throws(Failure) -> Value
    ) throws(Failure) -> Value {
        let outer = ERR_peek_error() == 0 ? nil : drain()
        defer {
            ERR_clear_error()
            for entry in outer?.entries ?? [] { martlet_err_add(entry.library, entry.reason) }
        }
        return try call()
    }

    /// Whether one of the entries is of the TLS library and has a reason.
    func contains(_ reason: Int32) -> Bool {
        entries.contains { $0.library == Int32(ERR_LIB_SSL) && $0.reason == reason }
    }

    /// Whether one of the entries is of a library and has a reason.
    func has(_ library: Int32, _ reason: Int32) -> Bool {
        entries.contains { $0.library == library && $0.reason == reason }
    }

    /// Whether an algorithm is missing, such as one that only the legacy provider has.
    var isUnsupportedAlgorithm: Bool {
        entries.contains { entry in
            switch entry.library {
            case Int32(ERR_LIB_EVP):
                // The first is what the fetching of algorithms says. Decoders say it of whatever they do not know.
                entry.reason == martlet_err_unsupported() || entry.reason == EVP_R_UNSUPPORTED_ALGORITHM
                    || entry.reason == EVP_R_UNSUPPORTED_CIPHER || entry.reason == EVP_R_UNKNOWN_CIPHER
            case Int32(ERR_LIB_PEM): entry.reason == PEM_R_UNSUPPORTED_ENCRYPTION
            default: false
            }
        }
    }

    /// The texts of the entries, cause first.
    package var text: String {
        entries.isEmpty ? "no reason given" : entries.map(\.text).joined(separator: "; ")
    }

    /// The alert that the peer sent, if that is what happened: OpenSSL tells it as 1000 and the alert's
    /// number.
    var alert: (number: Int, text: String)? {
        let entry = entries.first { $0.library == Int32(ERR_LIB_SSL) && (1000...1255).contains($0.reason) }
        return entry.map { (Int($0.reason) - 1000, $0.text) }
    }

    /// Whether the peer ended the connection without a `close_notify`.
    var isUnexpectedEnd: Bool { contains(SSL_R_UNEXPECTED_EOF_WHILE_READING) }

    /// What the entries mean for a connection, certificates' faults left aside.
    var kind: TLSError.Kind {
        if let alert {
            return alert.number == Int(SSL_AD_PROTOCOL_VERSION)
                ? .protocolVersion : .alert(number: alert.number, text: alert.text)
        }
        if isUnexpectedEnd { return .truncated }
        let versionFaults = [
            SSL_R_UNSUPPORTED_PROTOCOL, SSL_R_VERSION_TOO_LOW, SSL_R_VERSION_TOO_HIGH,
            SSL_R_WRONG_SSL_VERSION, SSL_R_NO_PROTOCOLS_AVAILABLE,
        ]
        if versionFaults.contains(where: contains) { return .protocolVersion }
        if contains(SSL_R_WRONG_VERSION_NUMBER) {
            return .handshake(reason: "the peer does not seem to speak TLS (\(text))")
        }
        return .handshake(reason: text)
    }
}

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
