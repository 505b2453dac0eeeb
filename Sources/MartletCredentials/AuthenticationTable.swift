import MartletURL
import Synchronization

/// What servers have asked for, so that later requests answer unasked: nonces of Digest, and where Basic is wanted.
///
/// Bounded: the users of ``keyLimit`` servers, with ``spaceLimit`` protection spaces each; the least lately used goes first.
struct AuthenticationTable: Sendable {
    /// The most pairs of server and user.
    static let keyLimit = 64
    /// The most protection spaces of one of them.
    static let spaceLimit = 8
    /// The most nonces whose uses are counted, far more than there are sessions.
    static let nonceLimit = 1024
    /// The most times a nonce is used: what eight hexadecimal digits count.
    static let useLimit = UInt32.max

    /// How a protection space is answered.
    private enum Answer: Sendable {
        case basic
        case digest(DigestSession)
    }

    private struct Space: Sendable {
        let extent: ProtectionSpace
        let realm: [UInt8]
        var answer: Answer

        /// The nonce in force, where there is one.
        var nonce: [UInt8]? { if case .digest(let session) = answer { session.nonce } else { nil } }
    }

    private struct Row: Sendable {
        /// Newest first.
        var spaces: [Space]
        var lastUse: UInt64
    }

    /// A nonce of a server's.
    private struct Nonce: Hashable {
        let party: AuthenticationParty
        let origin: HTTPURL.Origin
        let bytes: [UInt8]
    }

    private struct Use {
        var count: UInt32
        var last: UInt64
    }

    private var rows: [AuthenticationKey: Row] = [:]
    /// How many requests each nonce was used for, by whomever, and whatever was forgotten of it: a server that gives the same
    /// one again takes a count that comes twice for a replay (RFC 7616 §3.4).
    private var uses: [Nonce: Use] = [:]
    private var clock: UInt64 = 0

    /// How many pairs of server and user there are.
    var count: Int { rows.count }

    /// What answers a request unasked.
    enum Known: Sendable {
        case basic
        case digest(DigestSession, useCount: UInt32)
    }

    /// What is known for a path; a nonce is counted as used. `nil` when nothing is.
    mutating func answer(for key: AuthenticationKey, path: String) -> Known? {
        guard var row = rows[key] else { return nil }
        touch(&row)
        defer { rows[key] = row.spaces.isEmpty ? nil : row }
        guard let index = row.spaces.firstIndex(where: { $0.extent.contains(path) }) else { return nil }
        switch row.spaces[index].answer {
        case .basic: return .basic
        case .digest(let session):
            guard let count = use(session, key) else {
                row.spaces.remove(at: index)
                return nil
            }
            return .digest(session, useCount: count)
        }
    }

    /// Remembers that Basic was accepted.
    mutating func noteBasic(_ key: AuthenticationKey, extent: ProtectionSpace) {
        put(Space(extent: extent, realm: [], answer: .basic), for: key)
    }

    /// Remembers a session, in place of an older one for the same realm, and uses its nonce.
    /// - Returns: How many times that was used with this one; `nil` when it is used up.
    @discardableResult
    mutating func noteDigest(
        _ key: AuthenticationKey, _ session: DigestSession, extent: ProtectionSpace
    ) -> UInt32? {
        guard let count = use(session, key) else { return nil }
        put(Space(extent: extent, realm: session.challenge.realm, answer: .digest(session)), for: key)
        return count
    }

    /// Counts a request; `nil` when the nonce is used up.
    private mutating func use(_ session: DigestSession, _ key: AuthenticationKey) -> UInt32? {
        clock += 1
        let nonce = Nonce(party: key.party, origin: key.origin, bytes: session.nonce)
        let count = uses[nonce]?.count ?? 0
        guard count < AuthenticationTable.useLimit else { return nil }
        uses[nonce] = Use(count: count + 1, last: clock)
        if uses.count > AuthenticationTable.nonceLimit {
            // The older half at once, so that the look at all of them is rare.
            let middle = uses.values.map(\.last).sorted()[uses.count / 2]
            let live = Set(rows.values.flatMap { $0.spaces.compactMap(\.nonce) })
            uses = uses.filter { $0.value.last > middle || live.contains($0.key.bytes) }
        }
        return count + 1
    }

    private mutating func put(_ space: Space, for key: AuthenticationKey) {
        var row = rows[key] ?? Row(spaces: [], lastUse: 0)
        touch(&row)
        row.spaces.removeAll { other in
            switch (other.answer, space.answer) {
            case (.digest, .digest): other.realm == space.realm
            case (.basic, .basic): other.extent == space.extent
            default: false
            }
        }
        row.spaces.insert(space, at: 0)
        if row.spaces.count > AuthenticationTable.spaceLimit { row.spaces.removeLast() }
        rows[key] = row
        guard rows.count > AuthenticationTable.keyLimit,
            let oldest = rows.min(by: { $0.value.lastUse < $1.value.lastUse })
        else { return }
        rows[oldest.key] = nil
    }

    /// Takes the nonce that came with a response, unless the session has another by now.
    mutating func renew(_ key: AuthenticationKey, realm: [UInt8], used: [UInt8], next: [UInt8]) {
        change(key) { row in
            for index in row.spaces.indices where row.spaces[index].realm == realm {
                guard case .digest(var session) = row.spaces[index].answer, session.nonce == used else {
                    continue
                }
                session.renew(nonce: next)
                row.spaces[index].answer = .digest(session)
            }
        }
    }

    /// Forgets a nonce that was refused, unless the session has another by now.
    mutating func forgetDigest(_ key: AuthenticationKey, used: [UInt8]) {
        change(key) { row in
            row.spaces.removeAll { space in
                if case .digest(let session) = space.answer { session.nonce == used } else { false }
            }
        }
    }

    /// Forgets where Basic was accepted.
    mutating func forgetBasic(_ key: AuthenticationKey) {
        change(key) { row in
            row.spaces.removeAll { space in if case .basic = space.answer { true } else { false } }
        }
    }

    private mutating func change(_ key: AuthenticationKey, _ body: (inout Row) -> Void) {
        guard var row = rows[key] else { return }
        rows[key] = nil
        body(&row)
        if !row.spaces.isEmpty { rows[key] = row }
    }

    private mutating func touch(_ row: inout Row) {
        clock += 1
        row.lastUse = clock
    }
}

/// What a session remembers of the servers and proxies that asked who is calling; its calls and views share it.
package final class AuthenticationMemory: Sendable, CustomReflectable, CustomStringConvertible {
    /// Guards the table, for the time of one look or change.
    private let table = Mutex(AuthenticationTable())

    /// A memory of nothing.
    package init() {}

    /// Looks at the table, or changes it.
    func withTable<Result>(_ body: (inout AuthenticationTable) -> sending Result) -> sending Result {
        table.withLock { body(&$0) }
    }

    /// Nothing of what it remembers.
    package var description: String { "AuthenticationMemory" }
    /// Shows nothing.
    package var customMirror: Mirror { Mirror(self, children: []) }
}
