package import MartletWire
import Synchronization

/// A stored response as it was found, in memory or on disk.
///
/// It stays whole to its end, also when what is stored is replaced, evicted or removed meanwhile.
package final class StoredResponse: Sendable {
    /// Where its body is.
    package enum Body: Sendable {
        /// Here.
        case bytes([UInt8])
        /// In a file, to be read by calls that block.
        case file(EntryReader)
    }

    /// What is decided by: the head, the body's length, and what the fields say.
    package let variant: StoredVariant
    /// Which body it is. The number stays the same while heads are replaced by those of 304s, and from tier to tier and run
    /// to run; each body that is stored has another.
    package let representation: UInt64
    /// The body, as it came over the wire.
    package let body: Body
    /// Where in memory it was found; `nil` where on disk.
    let entry: MemoryEntry?
    /// At which place of memory it was found; `nil` where that was not noted.
    let place: Int?
    /// Where on disk it was found; `nil` where in memory.
    let reader: EntryReader?
    /// When it was looked up, by the changes of what is stored; `nil` where nobody may take it for what is stored now.
    let seen: InvalidationLedger.Epoch?
    /// Whether the disk had no other variant of its key that memory did not have.
    let isLastOnDisk: Bool

    /// All but the body.
    package var head: StoredHead { variant.head }

    /// Whether fields stand behind its body; for those who need no more of the head, which is large to be copied.
    package var hasTrailers: Bool { variant.head.trailers != nil }

    /// Whether memory answered.
    package var isInMemory: Bool { entry != nil }

    /// One in memory.
    init(_ entry: MemoryEntry, at place: Int? = nil) {
        self.place = place
        variant = entry.variant
        representation = entry.representation
        body = .bytes(entry.body)
        self.entry = entry
        reader = nil
        seen = nil
        isLastOnDisk = true
    }

    /// One on disk.
    init(_ reader: EntryReader, seen: InvalidationLedger.Epoch?, isLastOnDisk: Bool = false) {
        self.isLastOnDisk = isLastOnDisk
        variant = StoredVariant(head: reader.head, bodyLength: reader.byteCount)
        representation = reader.entry.generation
        body = reader.inlineBody.map { .bytes($0) } ?? .file(reader)
        entry = nil
        place = nil
        self.reader = reader
        self.seen = seen
    }

    /// The body of another, under a head that is not stored.
    package init(_ other: StoredResponse, head: StoredHead) {
        variant = StoredVariant(head: head, bodyLength: other.variant.bodyLength)
        representation = other.representation
        body = other.body
        entry = other.entry
        place = other.place
        reader = other.reader
        seen = nil
        isLastOnDisk = false
    }
}

/// Everything of a stored response but its body: what decides whether it may be used.
package struct StoredHead: Equatable, Sendable {
    /// A request field that the response was chosen by (RFC 9111 §4.1).
    package struct Selection: Hashable, Sendable {
        /// The field's name, in lower case.
        package var name: String
        /// Its normalised value in the request that was answered; `nil` where the request had no such field.
        package var value: String?

        /// A field and its value.
        package init(name: String, value: String?) {
            self.name = name
            self.value = value
        }
    }

    /// The URL and whose it is.
    package var key: CacheKey
    /// The status code.
    package var status: Int
    /// The reason phrase, as it came; empty where it was not UTF-8.
    package var reason: String
    /// The fields, in order, without those that are never stored (RFC 9111 §3.1).
    package var fields: FieldBlock
    /// Fields behind the body; `nil` for none. They are never merged into the head.
    package var trailers: FieldBlock?
    /// What `Vary` names, sorted by name; empty where it names nothing.
    package var selections: [Selection]
    /// When the request that brought it, or validated it last, was sent.
    package var requestTime: WallTime
    /// When its head came.
    package var responseTime: WallTime
    /// Whether the request had an `Authorization` field (RFC 9111 §3.5).
    package var wasAuthorized: Bool

    /// A head, field by field.
    package init(
        key: CacheKey, status: Int, reason: String, fields: FieldBlock, trailers: FieldBlock? = nil,
        selections: [Selection] = [], requestTime: WallTime, responseTime: WallTime,
        wasAuthorized: Bool = false
    ) {
        (self.key, self.status, self.reason) = (key, status, reason)
        (self.fields, self.trailers, self.selections) = (fields, trailers, selections)
        (self.requestTime, self.responseTime, self.wasAuthorized) = (requestTime, responseTime, wasAuthorized)
    }
}

/// Tells whoever wants to know which bodies are no longer stored under a key.
///
/// Both tiers report what ends in them, so each body is told of once, as far as the last ones are remembered.
final class RepresentationEnds: Sendable {
    /// Is told the key and which body it was; says whether it wants to be told of others.
    typealias Listener = @Sendable (CacheKey, UInt64) -> Bool

    private struct State {
        var listeners: [UInt64: Listener] = [:]
        var lastListener: UInt64 = 0
        var told: Set<UInt64> = []
        var order: [UInt64] = []
        var next = 0
    }

    /// How many are remembered as told.
    private static let limit = 1024

    /// Read and written by whatever thread works on a tier, for the time of a look-up.
    private let state = Mutex(State())

    /// Adds a listener.
    func add(_ listener: @escaping Listener) {
        state.withLock { state in
            state.lastListener += 1
            state.listeners[state.lastListener] = listener
        }
    }

    /// Tells all listeners that a body has ended, unless they know.
    func note(_ key: CacheKey, _ representation: UInt64) {
        let listeners = state.withLock { state -> [UInt64: Listener] in
            guard !state.listeners.isEmpty, state.told.insert(representation).inserted else { return [:] }
            if state.order.count < Self.limit {
                state.order.append(representation)
            } else {
                state.told.remove(state.order[state.next])
                state.order[state.next] = representation
                state.next = (state.next + 1) % Self.limit
            }
            return state.listeners
        }
        for (number, listener) in listeners where !listener(key, representation) {
            // Ended outside of the lock, since it may hold the last reference to something.
            let gone = state.withLock { $0.listeners.removeValue(forKey: number) }
            withExtendedLifetime(gone) {}
        }
    }
}

/// What both tiers of a store hold and were asked.
///
/// A request that is answered by memory counts there and nowhere else; the disk counts those that memory did not answer.
package struct TierStatistics: Equatable, Sendable {
    /// Memory's. Its misses are also the requests that the disk answered.
    package var memory: MemoryCache.Statistics
    /// The disk's; `nil` where there is none.
    package var disk: DiskStatistics?
    /// Responses stored in a tier or in both.
    package var stores = 0
    /// Responses that no tier took: too large, no room, a failing disk, or out of date before they were whole.
    package var refusals = 0

    /// Requests that a tier answered.
    package var hits: Int { memory.hits + (disk?.hits ?? 0) }
    /// Requests that none did.
    package var misses: Int { disk?.misses ?? memory.misses }
}
