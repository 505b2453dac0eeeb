import MartletURL
import Synchronization

/// The table of known challenges, with which later requests send credentials preemptively: nonces of Digest, and
/// protection spaces of Basic. It stores ``keyLimit`` pairs of server and user, with ``spaceLimit`` spaces each, and
/// evicts the least recently used pair.
struct ProtectionSpaceTable: Sendable {
    /// The maximum number of pairs of server and user.
    static let keyLimit = 64
    /// The maximum number of protection spaces of one server and user.
    static let spaceLimit = 8
    /// The maximum number of nonces with a count of uses, far more than the number of sessions.
    static let nonceLimit = 1024
    /// The maximum number of uses of a nonce: the largest number of eight hexadecimal digits.
    static let useLimit = UInt32.max

    private struct Space: Sendable {
        let extent: ProtectionSpace
        /// The Digest session; `nil` for Basic.
        var session: DigestSession?
    }

    private struct Row: Sendable {
        /// The spaces, newest first.
        var spaces: [Space]
        var lastUse: UInt64
    }

    /// A nonce from a server.
    private struct Nonce: Hashable {
        let party: ChallengeSource
        let origin: HTTPURL.Origin
        let bytes: [UInt8]
    }

    private struct Use {
        var count: UInt32
        var last: UInt64
    }

    private var rows: [AuthenticationKey: Row] = [:]
    /// The number of requests of all users with each nonce. It is stored even after its session was removed: if a
    /// server sends the same nonce again, it treats a repeated count as a replay (RFC 7616 §3.4).
    private var uses: [Nonce: Use] = [:]
    private var clock: UInt64 = 0

    /// The number of pairs of server and user.
    var count: Int { rows.count }

    /// The scheme that a request uses preemptively.
    enum Known: Sendable {
        case basic
        case digest(DigestSession, useCount: UInt32)
    }

    /// Returns the scheme for a path, and counts a use of its nonce; `nil` if none is known.
    mutating func answer(for key: AuthenticationKey, path: String) -> Known? {
        guard var row = rows[key] else { return nil }
        touch(&row)
        defer { rows[key] = row.spaces.isEmpty ? nil : row }
        guard let index = row.spaces.firstIndex(where: { $0.extent.contains(path) }) else { return nil }
        guard let session = row.spaces[index].session else { return .basic }
        if let count = use(session, key) { return .digest(session, useCount: count) }
        row.spaces.remove(at: index)
        return nil
    }

    /// Records that Basic was accepted.
    mutating func recordBasic(_ key: AuthenticationKey, extent: ProtectionSpace) {
        put(Space(extent: extent), for: key)
    }

    /// Stores a session, replaces an older one for the same realm, and counts a use of its nonce.
    /// - Returns: The number of uses, including this one; `nil` at ``useLimit``.
    @discardableResult mutating func recordDigest(
        _ key: AuthenticationKey, _ session: DigestSession, extent: ProtectionSpace
    ) -> UInt32? {
        guard let count = use(session, key) else { return nil }
        put(Space(extent: extent, session: session), for: key)
        return count
    }

    /// Counts a use of a session's nonce, and returns the number of its uses; `nil` at ``useLimit``.
    private mutating func use(_ session: DigestSession, _ key: AuthenticationKey) -> UInt32? {
        clock += 1
        let nonce = Nonce(party: key.party, origin: key.origin, bytes: session.nonce)
        let count = uses[nonce]?.count ?? 0
        guard count < ProtectionSpaceTable.useLimit else { return nil }
        uses[nonce] = Use(count: count + 1, last: clock)
        if uses.count > ProtectionSpaceTable.nonceLimit {
            // Removes the older half, except nonces of stored sessions, so that this loop over all of them is rare.
            let middle = uses.values.map(\.last).sorted()[uses.count / 2]
            let live = Set(rows.values.flatMap { $0.spaces.compactMap(\.session?.nonce) })
            uses = uses.filter { $0.value.last > middle || live.contains($0.key.bytes) }
        }
        return count + 1
    }

    private mutating func put(_ space: Space, for key: AuthenticationKey) {
        var row = rows[key] ?? Row(spaces: [], lastUse: 0)
        touch(&row)
        row.spaces.removeAll { other in
            if let session = space.session { return other.session?.challenge.realm == session.challenge.realm }
            return other.session == nil && other.extent == space.extent
        }
        row.spaces.insert(space, at: 0)
        if row.spaces.count > ProtectionSpaceTable.spaceLimit { row.spaces.removeLast() }
        rows[key] = row
        guard rows.count > ProtectionSpaceTable.keyLimit,
            let oldest = rows.min(by: { $0.value.lastUse < $1.value.lastUse })
        else { return }
        rows[oldest.key] = nil
    }

    /// Sets the nonce from a response, unless the session already has another one.
    mutating func renew(_ key: AuthenticationKey, realm: [UInt8], used: [UInt8], next: [UInt8]) {
        change(key) { spaces in
            for index in spaces.indices where spaces[index].session?.nonce == used {
                guard spaces[index].session?.challenge.realm == realm else { continue }
                spaces[index].session?.renew(nonce: next)
            }
        }
    }

    /// Removes a rejected nonce, unless the session already has another one.
    mutating func removeDigest(_ key: AuthenticationKey, used: [UInt8]) {
        change(key) { $0.removeAll { $0.session?.nonce == used } }
    }

    /// Removes the Basic spaces of a server and user.
    mutating func removeBasic(_ key: AuthenticationKey) { change(key) { $0.removeAll { $0.session == nil } } }

    private mutating func change(_ key: AuthenticationKey, _ body: (inout [Space]) -> Void) {
        guard var row = rows[key] else { return }
        rows[key] = nil
        body(&row.spaces)
        if !row.spaces.isEmpty { rows[key] = row }
    }

    private mutating func touch(_ row: inout Row) {
        clock += 1
        row.lastUse = clock
    }
}

/// A cache of the challenges of servers and proxies, shared by a session's calls and views.
package final class AuthenticationCache: Sendable, CustomReflectable, CustomStringConvertible {
    /// The lock on the table, held for one query or change.
    private let table = Mutex(ProtectionSpaceTable())

    /// Creates an empty cache.
    package init() {}

    /// Queries or changes the table.
    func withTable<Result>(_ body: (inout ProtectionSpaceTable) -> sending Result) -> sending Result {
        table.withLock { body(&$0) }
    }

    /// The name of the type, without contents.
    package var description: String { "AuthenticationCache" }
    /// A mirror without contents.
    package var customMirror: Mirror { Mirror(self, children: []) }
}
