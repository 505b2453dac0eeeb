import CMartletOpenSSL
import Glibc
import Synchronization

/// A TLS session that can be resumed: the owner of an OpenSSL structure, which it frees.
///
/// `@unchecked Sendable`: OpenSSL counts the references atomically, and changes this copy only under the lock of the
/// context. It marks the session as not resumable when a connection that offered it ends by an alert. Martlet does not
/// read the mark: sessions of a destination whose handshake failed are removed.
@safe final class TLSSession: @unchecked Sendable {
    let pointer: OpaquePointer
    /// The pin candidates of the connection that created the session; `nil` without pins.
    let evidence: PinCandidates?

    /// Copies a session, because OpenSSL marks the original as not resumable when its connection ends without a
    /// `close_notify`, as many servers do.
    init?(copying session: OpaquePointer, evidence: PinCandidates? = nil) {
        guard unsafe SSL_SESSION_is_resumable(session) == 1, let copy = unsafe SSL_SESSION_dup(session) else {
            return nil
        }
        unsafe pointer = copy
        self.evidence = evidence
    }

    deinit { unsafe SSL_SESSION_free(pointer) }

    /// Whether the session should be used for one connection only: `true` for TLS 1.3, so that observers cannot link
    /// connections by their tickets (RFC 8446 §C.4).
    var servesOnce: Bool { unsafe SSL_SESSION_get_protocol_version(pointer) >= TLS1_3_VERSION }

    /// Whether the session has not expired at a time in seconds since 1970.
    func isGood(at now: Int) -> Bool {
        let age = unsafe now - SSL_SESSION_get_time(pointer)
        return unsafe age >= 0 && age < SSL_SESSION_get_timeout(pointer)
    }
}

/// Sessions that the next connections to the same destination resume.
///
/// A cache belongs to one context, so all of its sessions have the same trust, identity, versions and ALPN. The numbers
/// of destinations and of their sessions are limited. The least recently used destination is removed first.
final class TLSSessionCache: Sendable {
    struct Key: Hashable, Sendable {
        /// The server's name or address, in lower case.
        let host: String
        let port: Int
        /// The proxy; empty without one.
        var proxy = ""
    }

    /// Guards the sessions of each destination, newest last.
    private let state: Mutex<LeastRecentlyUsed<Key, [TLSSession]>>
    private let sessionLimit: Int

    /// Creates a cache with a limit of destinations, and one of sessions for each. A destination needs several: a pool
    /// opens several connections together, and a TLS 1.3 session should be used once (RFC 8446 §C.4).
    init(destinationLimit: Int = 256, sessionLimit: Int = 16) {
        state = Mutex(LeastRecentlyUsed(limit: destinationLimit))
        self.sessionLimit = max(1, sessionLimit)
    }

    func insert(_ session: TLSSession, for key: Key) {
        // Removed sessions are freed after the lock is released.
        _ = state.withLock { state -> ([TLSSession], [TLSSession]?) in
            var sessions = state.value(for: key) ?? []
            var dropped: [TLSSession] = []
            if !session.servesOnce { swap(&dropped, &sessions) }
            sessions.append(session)
            if sessions.count > sessionLimit { dropped.append(sessions.removeFirst()) }
            return (dropped, state.update(sessions, for: key))
        }
    }

    /// Returns the newest session of a destination that has not expired. A TLS 1.3 session is removed, so that
    /// observers cannot link the client's connections. Only the last session stays, as in curl and browsers: a full
    /// handshake would cost both sides a millisecond.
    func take(for key: Key, now: Int = time(nil)) -> TLSSession? {
        // Expired sessions are freed after the lock is released.
        let (found, _) = state.withLock { state -> (TLSSession?, [TLSSession]?) in
            guard var sessions = state.value(for: key) else { return (nil, nil) }
            var found: TLSSession?
            while found == nil, let last = sessions.last {
                let isGood = last.isGood(at: now)
                if isGood { found = last }
                if !isGood || (last.servesOnce && sessions.count > 1) { sessions.removeLast() }
            }
            return (found, state.update(sessions.isEmpty ? nil : sessions, for: key))
        }
        return found
    }

    /// Removes all sessions of a destination, after a failed handshake that an offered session may have caused.
    func removeAll(for key: Key) {
        // Freed after the lock is released.
        _ = state.withLock { $0.update(nil, for: key) }
    }

    var destinationCount: Int { state.withLock { $0.count } }
}
