import CMartletOpenSSL

/// The entries of OpenSSL's error queue. The queue belongs to the thread, so it is emptied right after the call.
package struct OpenSSLErrors {
    typealias Entry = (library: Int32, reason: Int32, text: String)

    /// The entries, oldest first: the first is the cause, the others are its consequences.
    let entries: [Entry]

    /// Empties the queue and returns its entries.
    package static func drain() -> OpenSSLErrors {
        var entries: [Entry] = []
        var code = ERR_get_error()
        while code != 0 {
            let text = unsafe ERR_reason_error_string(code).map { unsafe String(cString: $0) }
            entries.append((ERR_GET_LIB(code), ERR_GET_REASON(code), text ?? "OpenSSL error \(code)"))
            code = ERR_get_error()
        }
        return OpenSSLErrors(entries: entries)
    }

    package static func clear() {
        OpenSSLLibrary.load()
        ERR_clear_error()
    }

    /// Makes an inner call that may use OpenSSL, while an outer call of OpenSSL runs on this thread, and restores the
    /// entries of the outer call. Otherwise the inner call could remove the outer call's reason, or leave an entry that
    /// makes the outer call fail.
    static func preserving<Value, Failure: Error>(_ call: () throws(Failure) -> Value) throws(Failure) -> Value {
        let outer = ERR_peek_error() == 0 ? nil : drain()
        defer {
            ERR_clear_error()
            for entry in outer?.entries ?? [] { martlet_err_add(entry.library, entry.reason) }
        }
        return try call()
    }

    /// Whether an entry comes from a library, by default the TLS library, and has one of these reasons.
    func contains(_ reasons: Int32..., of library: Int32 = ERR_LIB_SSL) -> Bool {
        entries.contains { $0.library == library && reasons.contains($0.reason) }
    }

    /// Whether an algorithm is missing, such as one that only the legacy provider has.
    var isUnsupportedAlgorithm: Bool {
        // The first reason means that an algorithm was not found. Decoders use it for all input that they do not know.
        contains(
            martlet_err_unsupported(), EVP_R_UNSUPPORTED_ALGORITHM, EVP_R_UNSUPPORTED_CIPHER, EVP_R_UNKNOWN_CIPHER,
            of: ERR_LIB_EVP) || contains(PEM_R_UNSUPPORTED_ENCRYPTION, of: ERR_LIB_PEM)
    }

    /// The texts of the entries, the cause first.
    package var text: String { entries.isEmpty ? "no reason given" : entries.map(\.text).joined(separator: "; ") }

    /// The alert that the peer sent; `nil` if it sent none. OpenSSL's reason is 1000 plus the alert's number.
    var alert: (number: Int, text: String)? {
        let entry = entries.first { $0.library == Int32(ERR_LIB_SSL) && (1000...1255).contains($0.reason) }
        return entry.map { (Int($0.reason) - 1000, $0.text) }
    }

    /// Whether the peer ended the connection without a `close_notify`.
    var isUnexpectedEnd: Bool { contains(SSL_R_UNEXPECTED_EOF_WHILE_READING) }

    /// The kind of error of a connection, if no certificate is the cause.
    var kind: TLSError.Kind {
        if let alert {
            return alert.number == Int(SSL_AD_PROTOCOL_VERSION)
                ? .protocolVersion : .alert(number: alert.number, text: alert.text)
        }
        if isUnexpectedEnd { return .truncated }
        if contains(
            SSL_R_UNSUPPORTED_PROTOCOL, SSL_R_VERSION_TOO_LOW, SSL_R_VERSION_TOO_HIGH, SSL_R_WRONG_SSL_VERSION,
            SSL_R_NO_PROTOCOLS_AVAILABLE)
        {
            return .protocolVersion
        }
        if contains(SSL_R_WRONG_VERSION_NUMBER) {
            return .handshake(reason: "the peer does not seem to speak TLS (\(text))")
        }
        return .handshake(reason: text)
    }
}
