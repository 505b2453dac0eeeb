import MartletURL
import Synchronization

/// The known challenges of servers, so that later requests send credentials preemptively: nonces of Digest, and spaces of
/// Basic. It has the users of ``keyLimit`` servers, with ``spaceLimit`` spaces each, and evicts the least recently used.
struct ProtectionSpaceTable: Sendable {
    /// The maximum number of pairs of server and user.
    static let keyLimit = 64
    /// The maximum number of protection spaces of one of them.
    static let spaceLimit = 8
    /// The maximum number of nonces with counted uses, far more than there are sessions.
    static let nonceLimit = 1024
    /// The maximum number of uses of a nonce: that of eight hexadecimal digits.
    static let useLimit = UInt32.max

    private struct Space: Sendable {
        let extent: ProtectionSpace
        /// The session of Digest; `nil` for Basic.
        var session: DigestSession?
    }

    private struct Row: Sendable {
        /// Newest first.
        var spaces: [Space]
        var lastUse: UInt64
    }

    /// A nonce of a server's.
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
    /// The number of requests of each nonce, by all users, also after its session was removed: a server that sends the same
    /// nonce again takes a repeated count for a replay (RFC 7616 §3.4).
    private var uses: [Nonce: Use] = [:]
    private var clock: UInt64 = 0

    /// The number of pairs of server and user.
    var count: Int { rows.count }

    /// The scheme that a request uses preemptively.
    enum Known: Sendable {
        case basic
        case digest(DigestSession, useCount: UInt32)
    }

    /// The scheme for a path, with a nonce counted as used; `nil` if none is known.
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

    /// Stores that Basic was accepted.
    mutating func noteBasic(_ key: AuthenticationKey, extent: ProtectionSpace) { put(Space(extent: extent), for: key) }

    /// Stores a session, in place of an older one for the same realm, and uses its nonce.
    /// - Returns: The number of its uses, including this one; `nil` if it is used up.
    @discardableResult mutating func noteDigest(
        _ key: AuthenticationKey, _ session: DigestSession, extent: ProtectionSpace
    ) -> UInt32? {
        guard let count = use(session, key) else { return nil }
        put(Space(extent: extent, session: session), for: key)
        return count
    }

    /// Counts a request; `nil` if the nonce is used up.
    private mutating func use(_ session: DigestSession, _ key: AuthenticationKey) -> UInt32? {
        clock += 1
        let nonce = Nonce(party: key.party, origin: key.origin, bytes: session.nonce)
        let count = uses[nonce]?.count ?? 0
        guard count < ProtectionSpaceTable.useLimit else { return nil }
        uses[nonce] = Use(count: count + 1, last: clock)
        if uses.count > ProtectionSpaceTable.nonceLimit {
            // The older half at a time, so that this pass over all of them is rare.
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

    /// Sets the nonce that came with a response, unless the session has another by now.
    mutating func renew(_ key: AuthenticationKey, realm: [UInt8], used: [UInt8], next: [UInt8]) {
        change(key) { spaces in
            for index in spaces.indices where spaces[index].session?.nonce == used {
                guard spaces[index].session?.challenge.realm == realm else { continue }
                spaces[index].session?.renew(nonce: next)
            }
        }
    }

    /// Removes a nonce that was rejected, unless the session has another by now.
    mutating func forgetDigest(_ key: AuthenticationKey, used: [UInt8]) {
        change(key) { $0.removeAll { $0.session?.nonce == used } }
    }

    /// Removes the spaces of Basic.
    mutating func forgetBasic(_ key: AuthenticationKey) { change(key) { $0.removeAll { $0.session == nil } } }

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

/// The stored challenges of servers and proxies for a session, shared by its calls and views.
package final class AuthenticationCache: Sendable, CustomReflectable, CustomStringConvertible {
    /// Guards the table, for one query or change at a time.
    private let table = Mutex(ProtectionSpaceTable())

    /// Creates an empty memory.
    package init() {}

    /// Queries or changes the table.
    func withTable<Result>(_ body: (inout ProtectionSpaceTable) -> sending Result) -> sending Result {
        table.withLock { body(&$0) }
    }

    /// The name of the type, without contents.
    package var description: String { "AuthenticationCache" }
    /// Nothing.
    package var customMirror: Mirror { Mirror(self, children: []) }
}
