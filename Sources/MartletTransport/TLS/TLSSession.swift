import COpenSSL

/// One session to resume, owned.
///
/// `@unchecked Sendable`: OpenSSL counts the references atomically. All it ever changes in this copy is a mark that it is
/// not resumable, under the lock of the context, where a connection that it was offered on ends by an alert; sessions
/// of a place whose handshake failed are not offered again, so nobody depends on the mark.
@safe final class TLSSession: @unchecked Sendable {
    let pointer: OpaquePointer
    /// What the pins were compared with on the connection that made it; `nil` where nothing is pinned.
    let evidence: ChainEvidence?

    /// Copies a session. A copy, because OpenSSL marks a session as not resumable when its connection ends
    /// without a `close_notify`, as those of many servers do.
    init?(copying session: OpaquePointer, evidence: ChainEvidence? = nil) {
        guard unsafe SSL_SESSION_is_resumable(session) == 1, let copy = unsafe SSL_SESSION_dup(session) else {
            return nil
        }
        unsafe pointer = copy
        self.evidence = evidence
    }

    deinit {
        unsafe SSL_SESSION_free(pointer)
    }

    /// Whether the session may be used for one connection only: those of TLS 1.3, so that nobody on the path
    /// can link connections by their tickets (RFC 8446 §C.4).
    var servesOnce: Bool {
        unsafe SSL_SESSION_get_protocol_version(pointer) >= TLS1_3_VERSION
    }

    /// Whether its time is not over. Seconds since 1970.
    func isGood(at now: Int) -> Bool {
        let made = unsafe SSL_SESSION_get_time(pointer)
        let age = now - made
        let lifetime = unsafe SSL_SESSION_get_timeout(pointer)
        return age >= 0 && age < lifetime
    }
}
