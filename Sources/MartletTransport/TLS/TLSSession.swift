import COpenSSL
import Glibc
import Synchronization

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

    deinit { unsafe SSL_SESSION_free(pointer) }

    /// Whether the session may be used for one connection only: those of TLS 1.3, so that nobody on the path
    /// can link connections by their tickets (RFC 8446 §C.4).
    var servesOnce: Bool { unsafe SSL_SESSION_get_protocol_version(pointer) >= TLS1_3_VERSION }

    /// Whether its time is not over. Seconds since 1970.
    func isGood(at now: Int) -> Bool {
        let made = unsafe SSL_SESSION_get_time(pointer)
        let age = now - made
        let lifetime = unsafe SSL_SESSION_get_timeout(pointer)
        return age >= 0 && age < lifetime
    }
}

/// Sessions that servers gave tickets for, to be resumed by the next connection to the same place.
///
/// A cache belongs to one context, so its sessions were all made with the same trust, identity, versions and
/// ALPN, and none can reach a connection that is set up otherwise. Bounded in places and in sessions a place;
/// the place unused for longest goes first.
final class TLSSessionCache: Sendable {
    /// The place a session was made with.
    struct Key: Hashable, Sendable {
        /// The server's name or address, in lower case.
        let host: String
        /// The server's port.
        let port: Int
        /// The proxy that the connection goes through; empty where there is none.
        var proxy = ""
    }

    private struct Entry {
        /// Newest last.
        var sessions: [TLSSession]
        var lastUse: UInt64
    }

    private struct State {
        var entries: [Key: Entry] = [:]
        var clock: UInt64 = 0
    }

    /// Guards the entries.
    private let state = Mutex(State())
    private let placeLimit: Int
    private let sessionLimit: Int

    /// A cache of so many places, with so many sessions each: TLS 1.3 sessions should serve once (RFC 8446 §C.4),
    /// and a pool opens several connections together.
    init(placeLimit: Int = 256, sessionLimit: Int = 16) {
        self.placeLimit = max(1, placeLimit)
        self.sessionLimit = max(1, sessionLimit)
    }

    /// Keeps a session.
    func insert(_ session: TLSSession, for key: Key) {
        // Sessions that go are freed after the lock.
        var dropped: [TLSSession] = []
        state.withLock { state in
            state.clock += 1
            var entry = state.entries[key] ?? Entry(sessions: [], lastUse: 0)
            if !session.servesOnce {
                dropped = entry.sessions
                entry.sessions = []
            }
            entry.sessions.append(session)
            if entry.sessions.count > sessionLimit { dropped.append(entry.sessions.removeFirst()) }
            entry.lastUse = state.clock
            state.entries[key] = entry
            if state.entries.count > placeLimit {
                let oldest = state.entries.min { $0.value.lastUse < $1.value.lastUse }
                if let oldest { dropped += state.entries.removeValue(forKey: oldest.key)?.sessions ?? [] }
            }
        }
        dropped.removeAll()
    }

    /// The newest session with a place that is still good.
    ///
    /// One of TLS 1.3 is taken out, so that watchers cannot tell that connections are the same client's, unless it is the
    /// last: then a handshake that costs both sides a millisecond weighs more, as curl and browsers have it.
    func take(for key: Key, now: Int = time(nil)) -> TLSSession? {
        var dropped: [TLSSession] = []
        let found = state.withLock { state -> TLSSession? in
            guard var entry = state.entries[key] else { return nil }
            state.clock += 1
            entry.lastUse = state.clock
            var found: TLSSession?
            while found == nil, let last = entry.sessions.last {
                let isGood = last.isGood(at: now)
                if isGood { found = last }
                let isTaken = last.servesOnce && entry.sessions.count > 1
                if !isGood || isTaken { dropped.append(entry.sessions.removeLast()) }
            }
            state.entries[key] = entry.sessions.isEmpty ? nil : entry
            return found
        }
        dropped.removeAll()
        return found
    }

    /// Forgets every session with a place: one that was offered may be why its handshake failed.
    func removeAll(for key: Key) {
        var dropped: [TLSSession] = []
        state.withLock { state in dropped = state.entries.removeValue(forKey: key)?.sessions ?? [] }
        dropped.removeAll()
    }

    /// How many places have sessions.
    var placeCount: Int { state.withLock { $0.entries.count } }
}
